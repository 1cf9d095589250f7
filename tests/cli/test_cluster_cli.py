"""`widemargin train --dask`: on processes of this machine, at an address, and refused in one line; models and Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from widemargin import ClusterError, LinearSVC, RankSVM, load_model, open_blocks, train_file, write_blocks
from widemargin.problems.certificates import Sides  # noqa: F401

"""Support vector machines at the speed of memory, each model with a proof of how good it is."""

from widemargin.data.textfile import read_svmlight, write_svmlight
from widemargin.errors import ConvergenceWarning, FormatError
from widemargin.models.linear import LinearSVC, LinearSVR

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "FormatError",
    "LinearSVC",
    "LinearSVR",
    "read_svmlight",
    "write_svmlight",
]

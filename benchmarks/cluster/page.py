"""Fits on a Dask cluster: against one process, the same bits, killed workers, Spark, and a model of large clusters.

Files, and the environments of the peers, are made in the build folder when they are not there. A quick run has less
data.
"""

from benchmarks.cluster.fits import WORKERS_OF_BITS, bits_table, killed_table, local_table
from benchmarks.cluster.model import model_table
from benchmarks.cluster.peers import COSTS, peers_table
from benchmarks.cluster.pictures import draw
from benchmarks.cluster.words import INTRODUCTION, SECTIONS
from benchmarks.machinery.page import Frame, Table
from benchmarks.machinery.records import BUILD


def finish(page):
    """Draw."""
    if {"killed", "model"} <= set(page.facts):
        draw(page.facts, page.picture("cluster.png"))


FOLDER = BUILD / "data"
FOLDER.mkdir(parents=True, exist_ok=True)
PAGE = Frame(
    INTRODUCTION,
    SECTIONS,
    {
        "local": Table(local_table, ["covertype, repeated", "splice stand-in"], ["covertype, repeated"], 2.5),
        "bits": Table(bits_table, WORKERS_OF_BITS, WORKERS_OF_BITS[:2], 1.5),
        "killed": Table(killed_table, [10], [1], 2),
        "peers": Table(peers_table, COSTS, [], 3),
        "model": Table(model_table, ["covertype, repeated"], ["covertype, repeated"], 1),
    },
    options={"folder": FOLDER, "scale": 1.0},
    quick_options={"scale": 0.1},
    finish=finish,
)

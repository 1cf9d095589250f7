"""Training on files larger than memory: OCAS's fifteen million rows on two cores and three gigabytes.

    python -m benchmarks.larger_than_memory [--folder DIR] [--rows N] [--only splice,rows,proportional,sgd,...]

Writes benchmarks/results/larger-than-memory.md and docs/larger-than-memory.png. The files are generated when they are
not there (about 18 GB). Every fit runs in a process of its own whose memory is limited, cached files included; before
each fit the file is dropped from the cache.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

from benchmarks.larger_data import ROWS, ranking_blocks, splice_blocks, wide_blocks
from benchmarks.memory_limit import MemoryGroup, drop_from_cache
from benchmarks.page import Page, machine, versions
from widemargin.data.blocks.writer import write_blocks

ROOT = Path(__file__).parents[1]
PAGE, FACTS = ROOT / "benchmarks/results/larger-than-memory.md", "larger-than-memory.json"
GIGABYTE = 10**9
LIMIT, RANKING_LIMIT = 3 * GIGABYTE, 2 * GIGABYTE
FIXED_MEMORY = 460_000_000  # of every fit: the process, its libraries, blocks that are being read, and a reserve
COSTS = (1e-4, 1e-2, 1.0)
OCAS_SECONDS, OCAS_CORES = 671, 16  # Franc and Sonnenburg 2009, 15,028,326 rows
LARGEST_IN_MEMORY = 4_000_000
SECTIONS = {
    "splice": (
        "Fifteen million rows under three gigabytes",
        "Hinge loss, no intercept, two threads, to a certified relative gap of 10⁻³. C is that of the sum of losses."
        f" OCAS's paper reports {OCAS_SECONDS} s on {OCAS_CORES} cores with 32 GB in memory for the real set. *Lower"
        " bound* is the larger of the bytes read at the speed of a sequential read of the same file in the same run,"
        " and of the time of the same fit in memory, scaled from four million rows.",
    ),
    "rows": (
        "Seconds against rows",
        "The same fit, C = 0.01, of smaller sizes: from disk under the same limit, and in memory. Sizes that fit into"
        " the limit are read once, larger ones in every pass, so that the exponent of the time in rows is that of two"
        " kinds of fits.",
    ),
    "proportional": (
        "Seconds against rows, memory in proportion",
        f"The same fit, C = 0.01, with {FIXED_MEMORY / GIGABYTE:g} GB for what every process needs, and the rest of the"
        " 3 GB in proportion to the rows: every size is read in every pass, and the exponent of the time in rows"
        " compares like with like.",
    ),
    "sgd": (
        "SGDClassifier.partial_fit on the same blocks",
        "scikit-learn's SGD over the same blocks, C = 0.01, one thread, no limit of memory: its objective after each"
        " pass over all rows, divided by the certified optimum. It has no certificate and no stopping rule.",
    ),
    "ranking": (
        "Ranking",
        "Ten million rows of 136 dense float32 columns in 100,000 queries (5.5 GB), under 2 GB; RankSVM, C = 1.",
    ),
    "wide": (
        "A million columns",
        "Five million rows of 100 values in a million columns under 3 GB, squared hinge, C = 1, and LIBLINEAR in memory"
        " on the part of the rows that fits into the same memory.",
    ),
}
INTRODUCTION = (
    "# Data larger than memory\n\nMade by `python -m benchmarks.larger_than_memory`, each section in one run."
)


def main():
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    page = Page(PAGE, INTRODUCTION, SECTIONS)
    facts_file = options.folder / FACTS
    facts = json.loads(facts_file.read_text()) if facts_file.exists() else {}
    for name in options.only:
        facts[name] = globals()[f"run_{name}"](page, options, facts)
        facts_file.write_text(json.dumps(facts))
    words = f"{machine()}; {versions('widemargin', 'numpy', 'numba', 'pyarrow', 'scikit-learn')}"
    for name in options.only:
        page.note(name, f"{words}; load before the run {os.getloadavg()[0]:.1f}")
    if {"splice", "rows"} <= set(facts):
        from benchmarks.larger_pictures import draw

        draw(facts, ROOT / "docs/larger-than-memory.png")


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("larger-than-memory-data"))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SECTIONS))
    return parser.parse_args()


def _file(options, name, n_rows, blocks):
    """Return the path of a generated file, which is written if it is not there."""
    path = options.folder / f"{name}-{n_rows}.arrow"
    if not path.exists():
        print(f"writing {path}: ", end="", flush=True)
        print(write_blocks(path, blocks(n_rows), max_memory="2GB"))
    return str(path)


def _fit(path, limit, parameters, estimator="LinearSVC", **options):
    """Fit in a process of its own, whose memory is limited unless limit is None; return what it reports."""
    drop_from_cache(path)
    task = {"do": "fit", "path": path, "estimator": estimator, "parameters": parameters, **options}
    with MemoryGroup(limit) as group:
        return group.run("benchmarks.larger_worker", task)


def _read_speed(path):
    drop_from_cache(path)
    with MemoryGroup(LIMIT) as group:
        found = group.run("benchmarks.larger_worker", {"do": "read", "path": path})
    return found["bytes"] / found["seconds"]


def _linear(C, limit=LIMIT):
    """Return the parameters of the fits of this page."""
    memory = None if limit is None else limit - GIGABYTE // 10
    return {"C": C, "loss": "hinge", "fit_intercept": False, "tol": 1e-3, "n_jobs": 2, "max_memory": memory}


def run_splice(page, options, facts):
    path = _file(options, "splice", options.rows, splice_blocks)
    small = _file(options, "splice", min(LARGEST_IN_MEMORY, options.rows), splice_blocks)
    columns = ["C", "seconds", "OCAS, 16 cores", "gap", "steps", "passes", "GB read", "MB/s", "waiting for disk",
               "peak GB", "lower bound s", "ratio"]  # fmt: skip
    found = {}
    for C in COSTS:
        speed = _read_speed(path)
        here = _fit(path, LIMIT, _linear(C))
        memory = _fit(small, None, _linear(C, None))
        scaled = memory["seconds"] * here["rows"] / memory["rows"]
        bound = max(here["bytes"] / speed, scaled)
        page.put("splice", columns, [
            f"{C:g}", f"{here['seconds']:.1f}", f"{OCAS_SECONDS}", f"{here['gap']:.1e}", here["steps"],
            f"{here['passes']:.1f}", f"{here['bytes'] / 1e9:.1f}", f"{here['bytes'] / 1e6 / here['seconds']:.0f}",
            f"{here['waited'] / 2 / here['seconds']:.0%}", f"{here['peak'] / 1e9:.2f}",
            f"{bound:.1f} ({'disk' if bound > scaled else 'memory'})", f"{here['seconds'] / bound:.2f}",
        ], n_key=1)  # fmt: skip
        found[f"{C:g}"] = {"disk": here, "memory": memory, "speed": speed}
    return found


def run_rows(page, options, facts):
    columns = ["rows", "from disk s", "gap", "passes", "in memory s", "gap in memory"]
    found = []
    for n in _sizes(options):
        path = _file(options, "splice", n, splice_blocks)
        disk = _fit(path, LIMIT, _linear(0.01), streaming=True)
        memory = _fit(path, None, _linear(0.01, None)) if n <= LARGEST_IN_MEMORY else None
        cells = ["–", "–"] if memory is None else [f"{memory['seconds']:.1f}", f"{memory['gap']:.1e}"]
        page.put("rows", columns, [n, f"{disk['seconds']:.1f}", f"{disk['gap']:.1e}", f"{disk['passes']:.1f}", *cells],
                 n_key=1)  # fmt: skip
        found.append({"rows": n, "disk": disk["seconds"], "memory": memory and memory["seconds"]})
    page.put("rows", columns, ["exponent", f"{_exponent(found):.2f}", "", "", "", ""], n_key=1)
    return found


def run_proportional(page, options, facts):
    columns = ["rows", "limit GB", "seconds", "gap", "steps", "passes", "GB read", "s per million rows and pass"]
    found = []
    for n in _sizes(options):
        path = _file(options, "splice", n, splice_blocks)
        limit = round(FIXED_MEMORY + (LIMIT - FIXED_MEMORY) * n / ROWS)
        here = _fit(path, limit, _linear(0.01, limit))
        page.put("proportional", columns, [
            n, f"{limit / 1e9:.2f}", f"{here['seconds']:.1f}", f"{here['gap']:.1e}", here["steps"],
            f"{here['passes']:.1f}", f"{here['bytes'] / 1e9:.1f}",
            f"{here['seconds'] / (n / 1e6 * here['passes']):.3f}",
        ], n_key=1)  # fmt: skip
        found.append({"rows": n, "disk": here["seconds"], "passes": here["passes"]})
    page.put("proportional", columns, ["exponent", "", f"{_exponent(found):.2f}", "", "", "", "", ""], n_key=1)
    return found


def _sizes(options):
    """Return the numbers of rows of tables of seconds against rows."""
    return [n for n in (1_000_000, 2_000_000, 4_000_000, 8_000_000) if n < options.rows] + [options.rows]


def _exponent(found):
    """Return the exponent of the seconds from disk in the number of rows, by least squares of the logarithms."""
    return np.polyfit(np.log([one["rows"] for one in found]), np.log([one["disk"] for one in found]), 1)[0]


def run_sgd(page, options, facts):
    path = _file(options, "splice", options.rows, splice_blocks)
    with MemoryGroup(None) as group:
        found = group.run("benchmarks.larger_worker", {"do": "sgd", "path": path, "C": 0.01, "seconds": 120})
    best = facts["splice"]["0.01"]["disk"]
    optimum = best["objective"] * (1.0 - best["gap"])
    for seconds, value in found["curve"]:
        page.put("sgd", ["seconds", "objective / optimum"], [f"{seconds:.0f}", f"{value / optimum:.4f}"], n_key=1)
    return found["curve"]


def run_ranking(page, options, facts):
    path = _file(options, "ranking", 10_000_000, ranking_blocks)
    memory = RANKING_LIMIT - GIGABYTE // 10
    parameters = {"C": 1.0, "tol": 1e-3, "n_jobs": 2, "max_memory": memory}
    found = _fit(path, RANKING_LIMIT, parameters, "RankSVM", warm_rows=100_000)
    page.put("ranking", ["rows", "seconds", "gap", "planes", "passes", "GB read", "peak GB"], [
        found["rows"], f"{found['seconds']:.0f}", f"{found['gap']:.1e}", found["steps"], f"{found['passes']:.1f}",
        f"{found['bytes'] / 1e9:.1f}", f"{found['peak'] / 1e9:.2f}",
    ], n_key=1)  # fmt: skip
    return found


def run_wide(page, options, facts):
    path = _file(options, "wide", 5_000_000, wide_blocks)
    columns = ["who", "rows", "seconds", "objective", "gap", "passes", "GB read", "peak GB"]
    parameters = {"C": 1.0, "fit_intercept": False, "tol": 1e-3, "n_jobs": 2, "max_memory": LIMIT - GIGABYTE // 10}
    ours = _fit(path, LIMIT, parameters)
    page.put("wide", columns, [
        "widemargin", ours["rows"], f"{ours['seconds']:.0f}", f"{ours['objective']:.6g}", f"{ours['gap']:.1e}",
        f"{ours['passes']:.1f}", f"{ours['bytes'] / 1e9:.1f}", f"{ours['peak'] / 1e9:.2f}",
    ])  # fmt: skip
    with MemoryGroup(LIMIT) as group:
        task = {"do": "liblinear", "path": path, "n_rows": 500_000, "C": 1.0}
        theirs = group.run("benchmarks.larger_worker", task)
    peak = f"{theirs['peak'] / 1e9:.2f}"
    page.put("wide", columns, ["LIBLINEAR, -s 1 -e 0.01", theirs["rows"], f"{theirs['seconds']:.0f}",
                               f"{theirs['objective']:.6g}", "–", "–", "–", peak])  # fmt: skip
    return {"ours": ours, "liblinear": theirs}


if __name__ == "__main__":
    main()

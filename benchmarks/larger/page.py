"""Training on files larger than memory: OCAS's fifteen million rows on two cores and three gigabytes.

The files, about 14 GB, are generated into the build folder when they are not there; generating is part of the minutes
of the page, not of any figure. Every fit runs in a process of its own whose memory is limited, cached files included;
before each fit the file is dropped from the cache. A quick run has fewer rows, and memory in proportion.
"""

import numpy as np

from benchmarks.larger.data import ROWS, ranking_blocks, splice_blocks, wide_blocks
from benchmarks.larger.memory_limit import MemoryGroup, drop_from_cache
from benchmarks.larger.pictures import draw
from benchmarks.machinery.page import Frame, Table
from benchmarks.machinery.records import BUILD
from widemargin.data.blocks.writer import write_blocks

GIGABYTE = 10**9
LIMIT, RANKING_LIMIT = 3 * GIGABYTE, 2 * GIGABYTE
FIXED_MEMORY = 460_000_000  # of every fit: the process, its libraries, blocks that are being read, and a reserve
COSTS = (1e-4, 1e-2, 1.0)
OCAS_SECONDS, OCAS_CORES = 671, 16  # Franc and Sonnenburg 2009, 15,028,326 rows
LARGEST_IN_MEMORY = 4_000_000
SIZES = [1_000_000, 2_000_000, 4_000_000, 8_000_000]
QUICK_ROWS = 1_000_000
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
        "The same fit, C = 0.01, of the first rows of the file: from disk under the same limit, and in memory. Sizes"
        " that fit into the limit are read once, larger ones in every pass, so that the exponent of the time in rows is"
        " that of two kinds of fits.",
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
INTRODUCTION = """# Data larger than memory

Made by `python -m benchmarks run larger-than-memory`. A fit is made once.

![Seconds against rows, and the objective of SGD](../../docs/larger-than-memory.png)"""


def _file(name, n_rows, blocks):
    """Return the path of a generated file, which is written if it is not there."""
    folder = BUILD / "data"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{n_rows}.arrow"
    if not path.exists():
        print(f"writing {path}", flush=True)
        write_blocks(path, blocks(n_rows), max_memory="2GB")
    return str(path)


def _splice(options):
    return _file("splice", options.rows, splice_blocks)


def _asked(task, path, limit):
    """Ask a process of its own, whose memory is limited unless limit is None; return what it reports."""
    drop_from_cache(path)
    with MemoryGroup(limit) as group:
        return group.run("benchmarks.larger.worker", task | {"path": path})


def _fit(path, limit, C, n_rows=None, **options):
    """Fit the linear classifier of this page."""
    memory = None if limit is None else limit - GIGABYTE // 10
    parameters = {"C": C, "loss": "hinge", "fit_intercept": False, "tol": 1e-3, "n_jobs": 2, "max_memory": memory}
    task = {"do": "fit", "estimator": "LinearSVC", "parameters": parameters, "n_rows": n_rows, **options}
    return _asked(task, path, limit)


def _limit(n_rows):
    """Return a limit of memory in proportion to the rows: that of the page for all of them."""
    return round(FIXED_MEMORY + (LIMIT - FIXED_MEMORY) * n_rows / ROWS)


def splice_table(page, costs, options):
    """All rows from disk, at several C, against the lower bound."""
    columns = ["C", "seconds", "OCAS, 16 cores", "gap", "steps", "passes", "GB read", "MB/s", "waiting for disk",
               "peak GB", "lower bound s", "seconds / bound"]  # fmt: skip
    for C in page.each("splice", costs):
        path = _splice(options)
        read = _asked({"do": "read"}, path, LIMIT)
        here = _fit(path, _limit(options.rows), C)
        memory = _fit(path, None, C, min(LARGEST_IN_MEMORY, options.rows))
        scaled = memory["seconds"] * here["rows"] / memory["rows"]
        bound = max(here["bytes"] * read["seconds"] / read["bytes"], scaled)
        page.put("splice", columns, [
            f"{C:g}", f"{here['seconds']:.1f}", f"{OCAS_SECONDS}", f"{here['gap']:.1e}", here["steps"],
            f"{here['passes']:.1f}", f"{here['bytes'] / 1e9:.1f}", f"{here['bytes'] / 1e6 / here['seconds']:.0f}",
            f"{here['waited'] / 2 / here['seconds']:.0%}", f"{here['peak'] / 1e9:.2f}",
            f"{bound:.1f} ({'disk' if bound > scaled else 'memory'})", f"{here['seconds'] / bound:.2f}",
        ], n_key=1)  # fmt: skip
        page.keep(f"splice: {C:g}", here)


def rows_table(page, sizes, options):
    """Seconds against rows under one limit, from disk and in memory."""
    columns = ["rows", "from disk s", "gap", "passes", "in memory s", "gap in memory"]
    for n in page.each("rows", [*sizes, options.rows]):
        path = _splice(options)
        disk = _fit(path, LIMIT, 0.01, n, streaming=True)
        memory = _fit(path, None, 0.01, n) if n <= LARGEST_IN_MEMORY else None
        cells = ["–", "–"] if memory is None else [f"{memory['seconds']:.1f}", f"{memory['gap']:.1e}"]
        cells = [n, f"{disk['seconds']:.1f}", f"{disk['gap']:.1e}", f"{disk['passes']:.1f}", *cells]
        page.put("rows", columns, cells, n_key=1)
        page.keep(f"rows: {n}", {"rows": n, "disk": disk["seconds"], "memory": memory and memory["seconds"]})


def proportional_table(page, sizes, options):
    """Seconds against rows, memory in proportion."""
    columns = ["rows", "limit GB", "seconds", "gap", "steps", "passes", "GB read", "s per million rows and pass"]
    for n in page.each("proportional", [*sizes, options.rows]):
        here = _fit(_splice(options), _limit(n), 0.01, n)
        page.put("proportional", columns, [
            n, f"{_limit(n) / 1e9:.2f}", f"{here['seconds']:.1f}", f"{here['gap']:.1e}", here["steps"],
            f"{here['passes']:.1f}", f"{here['bytes'] / 1e9:.1f}",
            f"{here['seconds'] / (n / 1e6 * here['passes']):.3f}",
        ], n_key=1)  # fmt: skip
        page.keep(f"proportional: {n}", {"rows": n, "disk": here["seconds"]})


def sgd_table(page, costs, options):
    """scikit-learn's SGD over the same blocks."""
    for C in page.each("sgd", costs):
        found = _asked({"do": "sgd", "C": C, "seconds": options.sgd_seconds}, _splice(options), None)
        best = page.facts[f"splice: {C:g}"]
        optimum = best["objective"] * (1.0 - best["gap"])
        for seconds, value in found["curve"]:
            page.put("sgd", ["seconds", "objective / optimum"], [f"{seconds:.0f}", f"{value / optimum:.4f}"], n_key=1)
        page.keep("sgd", [(seconds, value / optimum) for seconds, value in found["curve"]])


def ranking_table(page, sizes, options):
    """RankSVM from disk."""
    columns = ["rows", "seconds", "gap", "planes", "passes", "GB read", "peak GB"]
    for n in page.each("ranking", sizes):
        parameters = {"C": 1.0, "tol": 1e-3, "n_jobs": 2, "max_memory": RANKING_LIMIT - GIGABYTE // 10}
        task = {"do": "fit", "estimator": "RankSVM", "parameters": parameters, "warm_rows": 100_000}
        found = _asked(task, _file("ranking", n, ranking_blocks), RANKING_LIMIT)
        page.put("ranking", columns, [
            found["rows"], f"{found['seconds']:.0f}", f"{found['gap']:.1e}", found["steps"], f"{found['passes']:.1f}",
            f"{found['bytes'] / 1e9:.1f}", f"{found['peak'] / 1e9:.2f}",
        ], n_key=1)  # fmt: skip


def wide_table(page, sizes, options):
    """A million columns from disk, and LIBLINEAR in memory on a tenth of the rows."""
    columns = ["who", "rows", "seconds", "objective", "gap", "passes", "GB read", "peak GB"]
    for n in page.each("wide", sizes):
        path = _file("wide", n, wide_blocks)
        parameters = {"C": 1.0, "fit_intercept": False, "tol": 1e-3, "n_jobs": 2, "max_memory": LIMIT - GIGABYTE // 10}
        ours = _asked({"do": "fit", "estimator": "LinearSVC", "parameters": parameters}, path, LIMIT)
        page.put("wide", columns, [
            "widemargin", ours["rows"], f"{ours['seconds']:.0f}", f"{ours['objective']:.6g}", f"{ours['gap']:.1e}",
            f"{ours['passes']:.1f}", f"{ours['bytes'] / 1e9:.1f}", f"{ours['peak'] / 1e9:.2f}",
        ])  # fmt: skip
        theirs = _asked({"do": "liblinear", "n_rows": n // 10, "C": 1.0}, path, LIMIT)
        cells = [theirs["rows"], f"{theirs['seconds']:.0f}", f"{theirs['objective']:.6g}", "–", "–", "–"]
        page.put("wide", columns, ["LIBLINEAR, -s 1 -e 0.01", *cells, f"{theirs['peak'] / 1e9:.2f}"])


def finish(page):
    """Add the exponents of the time in the number of rows, and the picture."""
    for section, column in (("rows", 1), ("proportional", 2)):
        found = [value for name, value in page.facts.items() if name.startswith(f"{section}: ")]
        rows = page.rows(section)
        if len(found) > 1:
            exponent = np.polyfit(*(np.log([one[what] for one in found]) for what in ("rows", "disk")), 1)[0]
            cells = ["exponent", *([""] * (len(rows[0]) - 1))]
            cells[column] = f"{exponent:.2f}"
            page.put(section, page.columns(section), cells, n_key=1)
    if page.rows("rows") and page.rows("proportional") and "splice: 0.01" in page.facts:
        draw(page)


PAGE = Frame(
    INTRODUCTION,
    SECTIONS,
    {
        "splice": Table(splice_table, COSTS, [0.01], 5),
        "rows": Table(rows_table, SIZES, [QUICK_ROWS // 4], 1.5),
        "proportional": Table(proportional_table, SIZES, [QUICK_ROWS // 2], 1.5),
        "sgd": Table(sgd_table, [0.01], [0.01], 1),
        "ranking": Table(ranking_table, [10_000_000], [200_000], 2),
        "wide": Table(wide_table, [5_000_000], [50_000], 3),
    },
    options={"rows": ROWS, "sgd_seconds": 45.0},
    quick_options={"rows": QUICK_ROWS, "sgd_seconds": 3.0},
    finish=finish,
    quiet_cores=0.5,  # the system's own threads read and write the files
)

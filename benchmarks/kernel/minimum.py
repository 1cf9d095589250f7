"""Our fits of kernel machines against the least that they must compute: the support vectors' kernel rows, once."""

from benchmarks.kernel.cases import HARD, LARGE, QUICK, Case
from benchmarks.kernel.peers import CONTENDERS, Field, Fit
from benchmarks.kernel.turns import BOTH, Fits
from benchmarks.machinery.figures import ratio, shown, take_turns
from benchmarks.machinery.page import Frame, Table

_INTRODUCTION = """# Kernel machines against the minimum

Made by `python -m benchmarks run kernel-minimum`: the fits of the page [kernel](kernel.md), by this package alone, and
two larger ones. The minimum is the time of computing the kernel rows of the model's support vectors once, in the same
precision, on as many threads, into memory that is there already; with several classes, each pair's support vectors
against its rows. *By NumPy*: a matrix product of BLAS, the addition of norms and the exponential, in place, by blocks
that fit the second cache; sparse rows have been made dense. *By our code*: by the loops of this package, which is the
stricter measure where they are faster than NumPy. A solver does not know the support vectors before it has found
them."""
_COLUMNS = ["set", "parameters", "threads", "seconds", "by NumPy", "seconds / by NumPy", "by our code"]
_COLUMNS += ["seconds / by our code", "support vectors' rows", "rows computed", "computed / support vectors' rows"]
_COLUMNS += ["in cache"]
_LARGER = [Case("mnist", 10.0, 0.02), Case("covtype.libsvm.binary.scale:100000", 10.0, 1.0)]


def minimum_table(page, cases, options):
    """Our seconds, of one thread and of all, against the minimum."""
    for case in page.each("minimum", cases, lambda case: case.set):
        with Field(case.set, {label: CONTENDERS[label] for label in BOTH}) as field:
            for one in [case, case.hard()] if case.set in HARD else [case]:
                fits = Fits(field, one, options)
                for label in BOTH:
                    cells = [one.set, one.shown(), CONTENDERS[label].options["n_jobs"], *_cells(fits, label)]
                    page.put("minimum", _COLUMNS, cells, n_key=3)


def _cells(fits, label):
    """Return seconds, those of the minimum, rows computed, and the part of the support vectors' rows that fits."""
    fit, options = fits.fits.get(label), fits.options
    if fit is None:
        return [f">{options.limit:g}", *["–"] * (len(_COLUMNS) - 4)]
    counts, cells = fit.counts, [fits.shown(label)]
    runners = {verb: lambda verb=verb: Fit(fits.field.least(label, verb), None) for verb in ("by_numpy", "by_us")}
    for _, least in take_turns(runners, 3).values():
        cells += [shown(least), ratio(fits.seconds(label), least)]
    held = min(1.0, options.cache * 2**20 * counts["problems"] / counts["bytes"])
    cells += [counts["support"], f"{counts['computed']:.0f}", f"{counts['computed'] / counts['support']:.2f}"]
    return [*cells, f"{100 * held:.0f}%"]


_WORDS = """Rows computed count in proportion to their columns where the problem has shrunk. *In cache*: the part of
the support vectors' rows that fits, on average over pairs of classes."""
PAGE = Frame(
    _INTRODUCTION,
    {"minimum": ("Seconds", _WORDS)},
    {"minimum": Table(minimum_table, [*LARGE, *_LARGER], QUICK[:1])},
    options={"limit": 60.0, "patience": 4.0, "repeats": 3, "cache": 1000.0, "tol": 1e-3},
    quick_options={"limit": 20.0, "repeats": 2, "patience": 2.0},
)

"""All pages: what each proves, and the minutes that it may take. `python -m benchmarks` prints this table."""

from dataclasses import dataclass, field

_ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # its threads would go on spinning into the next fit


@dataclass(frozen=True)
class Entry:
    """A page: the module that has its frame, its minutes, those of a quick run, and what it proves."""

    module: str
    minutes: float
    quick_minutes: float
    proves: str
    environment: dict = field(default_factory=dict)


PAGES = {  # in the order in which they are made: the short ones first
    "reading": Entry("benchmarks.reading", 1, 0.4, "reading and writing text against scikit-learn, equal to the bit"),
    "first-seconds": Entry(
        "benchmarks.first_seconds", 5, 0.9, "import, --version and first fits in new processes against scikit-learn"
    ),
    "small": Entry(
        "benchmarks.small",
        0.8,
        0.5,
        "55 default calls on 50 to 4,435 rows against scikit-learn and scikit-learn-intelex",
    ),
    "nested-threads": Entry(
        "benchmarks.nested_threads", 0.7, 0.4, "searches around estimators that have threads do not oversubscribe"
    ),
    "probabilities": Entry(
        "benchmarks.probabilities",
        3,
        0.2,
        "probabilities from one fit: Brier scores and times against those of six fits",
    ),
    "one-class": Entry(
        "benchmarks.one_class", 0.3, 0.1, "linear one-class machines against LIBLINEAR's -s 21, to the same objective"
    ),
    "ranking": Entry(
        "benchmarks.ranking", 1.5, 0.2, "ranking with a kernel against the linear machine: NDCG@10 on MQ2008"
    ),
    "linear": Entry(
        "benchmarks.linear.page",
        19,
        0.9,
        "all linear solvers over a grid of C against LIBLINEAR and svmocas; the grid with folds; sweeps; threads",
        _ONE_BLAS_THREAD,
    ),
    "l1": Entry("benchmarks.l1", 7, 0.2, "L1 penalties over a grid of C against LIBLINEAR", _ONE_BLAS_THREAD),
    "logistic": Entry(
        "benchmarks.logistic",
        8,
        0.2,
        "logistic regression over a grid of C against LIBLINEAR and scikit-learn's solvers",
        _ONE_BLAS_THREAD,
    ),
    "benchopt": Entry("benchmarks.curves", 3, 0.4, "the objective against time, by benchopt", _ONE_BLAS_THREAD),
    "choice": Entry(
        "benchmarks.choice", 6, 0.3, "what `auto` chooses is near the best of our solvers", _ONE_BLAS_THREAD
    ),
    "defaults": Entry(
        "benchmarks.defaults", 7, 0.4, "every default call on every set converges, and how fast against scikit-learn"
    ),
    "grid": Entry("benchmarks.grid", 9.5, 0.4, "grids of C and gamma with folds against GridSearchCV"),
    "cutting-planes": Entry(
        "benchmarks.planes.page",
        10,
        0.3,
        "cutting planes against the OCAS program and QP libraries; the figures of the papers",
        _ONE_BLAS_THREAD,
    ),
    "kernel": Entry(
        "benchmarks.kernel.page", 27, 0.9, "kernel machines against scikit-learn, LIBSVM and scikit-learn-intelex"
    ),
    "kernel-minimum": Entry(
        "benchmarks.kernel.minimum", 8, 0.2, "fits of kernel machines against computing the support vectors' rows once"
    ),
    "cluster": Entry(
        "benchmarks.cluster.page", 9, 0.9, "fits on a Dask cluster: ratio to one process, same bits, killed workers"
    ),
    "larger-than-memory": Entry(
        "benchmarks.larger.page", 11, 0.8, "fifteen million rows from disk under 3 GB; ranking; a million columns"
    ),
    "kernel-large": Entry(
        "benchmarks.kernel.large", 17, 0.9, "exact kernel machines on covertype up to a million rows, and on mnist"
    ),
    "kernels-at-scale": Entry(
        "benchmarks.kernels_at_scale",
        26,
        0.4,
        "kernel machines on a fixed basis against Nystroem and random features; ten million rows; compressed models",
    ),
}
MOST_MINUTES, MOST_QUICK_MINUTES = 180, 10  # of all pages together

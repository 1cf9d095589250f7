"""SVM-light, SVM-Perf and SVM-rank, against outputs that were recorded: these programs are in no Debian package."""

import numpy as np

from benchmarks.programs.running import Case, Figure, Section, data_file, here, recorded
from benchmarks.programs.running import found as numbers
from widemargin import read_svmlight

_LEARNED = {
    "dual objective": r"dval=([0-9.]+)", "norm of w": r"\|w\|=([0-9.]+)", "SV": r"Number of SV: ([0-9]+)",
    "at bound": r"including ([0-9]+) at upper", "loss": r"loss=([0-9.]+)", "error, %": r"error<=([0-9.]+)%",
    "recall, %": r"recall=>([0-9.]+)%", "precision, %": r"precision=>([0-9.]+)%",
}  # fmt: skip
_STRUCT = {
    "dual objective": r"dval=([0-9.]+)", "primal objective": r"pval=([0-9.]+)", "norm of w": r"\|w\|=([0-9.]+)",
    "slack": r"\(global\): xi=([0-9.]+)",
}  # fmt: skip
_SWAPPED = {
    "swapped pairs": r"Total Num Swappedpairs *: *([0-9]+)", "average loss": r"Average loss on test set: ([0-9.]+)",
    "queries with swapped pairs, %": r"Zero/one-error on test set: ([0-9.]+)%",
}  # fmt: skip
_MEASURES = ("Accuracy", "Precision", "Recall", "F1", "PRBEP", "ROCArea", "AvgPrec")
_CLASSIFIED = {name: rf"^{name} *: *([0-9.]+)" for name in _MEASURES}


def _recorded(patterns, program):
    def figures(case, folder):
        if case.expected:
            return dict(case.expected)
        return numbers(recorded(f"{program}-{case.stem}.out"), patterns)

    return figures


def _here(patterns, program):
    def figures(case, folder):
        words = [*case.options.split(), data_file(case.data, folder), "model"]
        return numbers(here(program, words, folder), patterns)

    return figures


def _recorded_predictions(case, folder):
    return _sums(np.array(recorded(f"svm_learn-{case.stem}.predictions").split(), float))


def _predictions_here(case, folder):
    (folder / "original.model").write_text(recorded(f"svm_learn-{case.stem}.model"))
    here("svm_classify", [data_file(case.data, folder), "original.model", "predictions"], folder)
    return _sums(np.loadtxt(folder / "predictions"))


def _swapped_in_recorded(case, folder):
    _, y, query = read_svmlight(folder / data_file(case.data, folder))
    scores = np.array(recorded(f"svm_learn-{case.stem}.predictions").split(), float)
    swapped = []
    for one in np.unique(query):
        rows = np.flatnonzero(query == one)
        swapped.append([scores[i] <= scores[j] for i in rows for j in rows if y[i] > y[j]])
    return {
        "swapped pairs": sum(map(sum, swapped)),
        "average loss": float(np.mean([np.mean(of_query) for of_query in swapped])),
        "queries with swapped pairs, %": 100.0 * float(np.mean([any(of_query) for of_query in swapped])),
    }


def _swapped_here(case, folder):
    (folder / "original.model").write_text(recorded(f"svm_learn-{case.stem}.model"))
    return numbers(
        here("svm_rank_classify", [data_file(case.data, folder), "original.model", "predictions"], folder), _SWAPPED
    )


def _sums(values):
    return {"rows": len(values), "sum": float(values.sum()), "sum of sizes": float(np.abs(values).sum())}


def _measures_here(case, folder):
    (folder / "original.model").write_text(recorded(f"svm_perf_learn-{case.stem}.model"))
    out = here("svm_perf_classify", [data_file(case.data, folder), "original.model", "predictions"], folder)
    return numbers(out, _CLASSIFIED)


_EXAMPLE1 = (  # svm_learn -c 1 on its own example
    ("dual objective", 226.88376), ("norm of w", 19.55576), ("SV", 878), ("at bound", 117), ("loss", 35.67674),
    ("error, %", 5.85), ("recall, %", 95.40), ("precision, %", 93.07),
)  # fmt: skip
_PERF_EXAMPLE1 = {  # |w| and xi of svm_perf_learn -w 3 -c 1 on SVM-light's example, by -l
    0: (0.27898, 1.00336), 1: (6.34678, 47.85632), 2: (6.70130, 42.96208), 3: (6.70736, 42.84944),
    4: (5.62877, 55.60787), 5: (6.84000, 42.89696), 10: (6.13738, 12.34702),
}  # fmt: skip
_KERNELS = {
    "linear": "-c 1", "rbf": "-c 1 -t 2 -g 0.5", "poly": "-c 1 -t 1 -d 3 -s 0.1 -r 1",
    "sigmoid": "-c 1 -t 3 -s 0.01 -r 0", "unbiased-j2": "-b 0 -j 2 -c 1", "remove-inconsistent": "-i 1 -c 1",
}  # fmt: skip
_HEART = [Case("heart_scale", options, stem=stem) for stem, options in _KERNELS.items()]
_REGRESSION = Case("housing_scale", "-z r -w 0.5 -c 1 -t 2 -g 0.1", stem="regression-rbf")
_RANKING = Case("svmrank-example3.train", "-z p -c 0.01", stem="ranking")
_RANKING_WITH_KERNEL = Case("svmrank-example3.train", "-z p -c 0.1 -t 2 -g 0.1", stem="ranking-rbf")

SECTIONS = [
    Section(
        "svm_learn",
        "Figures of SVM-light 6.20, recorded; error, recall and precision are the ξα-estimates that it prints. With "
        "-z p support vectors are pairs of rows.",
        {
            "dual objective": Figure(relative=2e-4, absolute=2e-5),
            "norm of w": Figure(relative=1e-3),
            "SV": Figure(absolute=2, relative=0.01, shown=".0f"),
            "at bound": Figure(absolute=2, relative=0.01, shown=".0f"),
            "loss": Figure(relative=2e-3),
            "error, %": Figure(absolute=0.75),
            "recall, %": Figure(absolute=0.85),
            "precision, %": Figure(absolute=0.85),
        },
        (
            Case("svmlight-example1", "-c 1", expected=_EXAMPLE1), *_HEART, _REGRESSION, _RANKING,
            _RANKING_WITH_KERNEL,
        ),
        _recorded(_LEARNED, "svm_learn"),
        _here(_LEARNED, "svm_learn"),
    ),
    Section(
        "svm_classify",
        "Scores of the training rows by the models that SVM-light 6.20 has written, of the options above; recorded.",
        {
            "rows": Figure(shown=".0f"),
            "sum": Figure(absolute=1e-3, relative=1e-6, shown=".8g"),
            "sum of sizes": Figure(absolute=1e-3, relative=1e-6, shown=".8g"),
        },
        (*_HEART[:4], _REGRESSION, _RANKING_WITH_KERNEL),
        _recorded_predictions,
        _predictions_here,
    ),
    Section(
        "svm_perf_learn",
        "Figures of SVM-Perf 3.00 with -w 3, recorded. It stops when a constraint is violated by at most 0.1, which "
        "leaves 0.1 c of the objective open; the optimum is between dual and primal objective of both.",
        {
            "dual objective": Figure(absolute=0.12, relative=0.01),
            "primal objective": Figure(absolute=0.12, relative=0.01),
            "norm of w": Figure(absolute=0.17, relative=0.01),
            "slack": Figure(absolute=0.6),
        },
        (
            *[Case("heart_scale", f"-c 1 -l {loss}", stem=f"l{loss}") for loss in _PERF_EXAMPLE1],
            *[
                Case("svmlight-example1", f"-c 1 -l {loss}", expected=(("norm of w", length), ("slack", slack)))
                for loss, (length, slack) in _PERF_EXAMPLE1.items()
                if loss != 0  # the optimum of the zero/one loss is next to w = 0, where |w| says nothing
            ],
            Case("svmlight-example1", "-c 20 -l 2", expected=(("dual objective", 226.750), ("norm of w", 19.540))),
            Case("svmlight-example1", "-c 20 -l 10", expected=(("dual objective", 60.328), ("norm of w", 10.711))),
        ),
        _recorded(_STRUCT, "svm_perf_learn"),
        _here(_STRUCT, "svm_perf_learn"),
    ),
    Section(
        "svm_perf_classify",
        "What SVM-Perf 3.00 prints for the training rows and its own models, recorded, and what we print for these.",
        {name: Figure(absolute=0.005) for name in _MEASURES},
        tuple(Case("heart_scale", f"-l {loss}", stem=f"l{loss}") for loss in _PERF_EXAMPLE1),
        _recorded(_CLASSIFIED, "svm_perf_classify"),
        _measures_here,
    ),
    Section(
        "svm_rank_learn",
        "There is no recorded output of SVM-rank. SVM-light's -z p solves the same problem: its -c 0.01 for each pair "
        "is -c 0.03 for each of the three queries.",
        {"dual objective": Figure(absolute=2e-3), "norm of w": Figure(absolute=2e-3)},
        (Case("svmrank-example3.train", "-c 0.03", expected=(("dual objective", 0.13325), ("norm of w", 0.11619))),),
        _recorded(_STRUCT, "svm_rank_learn"),
        _here(_STRUCT, "svm_rank_learn"),
    ),
    Section(
        "svm_rank_classify",
        "There is no recorded output of SVM-rank. The first line has the pairs that the scores swap which SVM-light "
        "6.20 has written for its own models, recorded, each pair looked at by itself; tied pairs are swapped.",
        {
            "swapped pairs": Figure(shown=".0f"),
            "average loss": Figure(absolute=1e-4),
            "queries with swapped pairs, %": Figure(absolute=0.01),
        },
        (_RANKING_WITH_KERNEL,),
        _swapped_in_recorded,
        _swapped_here,
    ),
]  # fmt: skip

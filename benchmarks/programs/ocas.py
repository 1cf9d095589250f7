"""svmocas and linclassif, against the programs of Debian's libocas-tools."""

from functools import partial

from benchmarks.programs.running import Case, Figure, Section, data_file, here, original
from benchmarks.programs.running import found as numbers

_TRAINED = {"objective": r" Q_P=([0-9.]+)", "training errors, %": r"Training error: ([0-9.]+)"}
_CLASSIFIED = {"errors, %": r"Classification error: ([0-9.]+)%"}


def _trained(run, program):
    def figures(case, folder):
        return numbers(run(program, [*case.options.split(), data_file(case.data, folder), "model"], folder), _TRAINED)

    return figures


def _classified(run):
    def figures(case, folder):
        data, test = data_file(case.data, folder), data_file(case.test, folder)
        original("svmocas", ["-v", "0", *case.options.split(), data, "original.model"], folder)
        out = run("linclassif", ["-e", "-o", "labels", test, "original.model"], folder)
        labels = (folder / "labels").read_text().split()
        return {**numbers(out, _CLASSIFIED), "rows": len(labels), "predicted +1": labels.count("+1")}

    return figures


_OPTIONS = "-c 1 -b 1 -r 1e-5"
SECTIONS = [
    Section(
        "svmocas",
        "Both train with the same options.",
        {"objective": Figure(relative=2e-5, shown=".8g"), "training errors, %": Figure(absolute=0.2)},
        tuple(Case(name, _OPTIONS) for name in ("ocas-riply_trn", "heart_scale", "a1a", "svmlight-example1")),
        _trained(original, "svmocas"),
        _trained(here, "svmocas"),
    ),
    Section(
        "msvmocas",
        "Both train with the same options; labels of the sets are 1, 2, ...",
        {"objective": Figure(relative=2e-4, shown=".8g"), "training errors, %": Figure(absolute=0.2)},
        (
            Case("dna.scale", "-c 0.1 -r 1e-4"), Case("dna.scale", "-m 0 -c 0.001 -r 1e-4"),
            Case("satimage.scale", "-c 0.1 -r 1e-3"),
        ),
        _trained(original, "msvmocas"),
        _trained(here, "msvmocas"),
    ),
    Section(
        "linclassif",
        "Both classify with the model that svmocas has written.",
        {
            "rows": Figure(shown=".0f"),
            "errors, %": Figure(absolute=1e-4),
            "predicted +1": Figure(shown=".0f"),
        },
        (
            Case("ocas-riply_trn", _OPTIONS, "ocas-riply_tst"), Case("heart_scale", _OPTIONS, "heart_scale"),
            Case("a1a", _OPTIONS, "a1a"), Case("svmlight-example1", _OPTIONS, "svmlight-example1"),
        ),
        _classified(partial(original, status=1)),  # which is that of success
        _classified(partial(here, status=1)),
    ),
]  # fmt: skip

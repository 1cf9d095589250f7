"""svm-train, svm-predict and svm-scale, against the programs of Debian's libsvm-tools."""

import re

import numpy as np

from benchmarks.programs.running import Case, Figure, Section, data_file, here, original
from benchmarks.programs.running import found as numbers
from widemargin import read_svmlight

_PAIR = re.compile(r"obj = (-?[0-9.]+), rho = (-?[0-9.]+)\nnSV = ([0-9]+), nBSV = ([0-9]+)")


def _trained(run):
    """Objective, SV and bounded SV are summed over the pairs of classes; rho is that of two classes."""

    def figures(case, folder):
        words = [*case.options.split(), data_file(case.data, folder), "model"]
        out = run("svm-train", words, folder)
        objective, rho, n_support, n_bounded = np.array(_PAIR.findall(out), float).T
        shown = {"objective": objective.sum(), "SV": n_support.sum(), "at bound": n_bounded.sum()}
        return shown | ({"rho": rho[0]} if len(rho) == 1 else numbers(out, {"total SV": r"Total nSV = ([0-9]+)"}))

    return figures


def _predicted(run):
    def figures(case, folder):
        data, test = data_file(case.data, folder), data_file(case.test, folder)
        original("svm-train", ["-q", *case.options.split(), data, "original.model"], folder)
        out = run("svm-predict", [test, "original.model", "predictions"], folder)
        labels = np.loadtxt(folder / "predictions")
        return {
            **numbers(out, {"accuracy, %": r"Accuracy = ([0-9.e+-]+)%", "squared error": r"error = ([0-9.e+-]+)"}),
            "rows": len(labels),
            "sum of predictions": float(labels.sum()),
        }

    return figures


def _scaled(run):
    def figures(case, folder):
        words = [*case.options.split(), "-s", "range", data_file(case.data, folder)]
        (folder / "scaled").write_text(run("svm-scale", words, folder))
        X, _, _ = read_svmlight(folder / "scaled")
        return {
            "values": X.nnz,
            "sum of values": float(X.sum()),
            "sum of squares": float(X.multiply(X).sum()),
            "lines of the range file": len((folder / "range").read_text().splitlines()),
        }

    return figures


SECTIONS = [
    Section(
        "svm-train",
        "Both train with the same options. Objectives are those of LIBSVM's dual, rho is minus the intercept; of "
        "several classes, objectives and support vectors are sums over pairs.",
        {
            "objective": Figure(relative=1e-4, shown=".6f"),
            "rho": Figure(absolute=5e-3, relative=1e-3, shown=".6f"),
            "SV": Figure(absolute=2, relative=0.02, shown=".0f"),
            "at bound": Figure(absolute=2, relative=0.02, shown=".0f"),
            "total SV": Figure(absolute=2, relative=0.02, shown=".0f"),
        },
        (
            Case("heart_scale"), Case("heart_scale", "-t 0 -e 1e-6"), Case("heart_scale", "-t 1"),
            Case("heart_scale", "-s 1"), Case("heart_scale", "-s 2"), Case("a1a"), Case("svmguide1", "-c 2 -g 2"),
            Case("housing_scale", "-s 3"), Case("housing_scale", "-s 4"), Case("dna.scale", "-c 4 -g 0.01"),
        ),
        _trained(original),
        _trained(here),
    ),
    Section(
        "svm-predict",
        "Both predict with the model that svm-train has written.",
        {
            "rows": Figure(shown=".0f"),
            "accuracy, %": Figure(absolute=1e-4),
            "squared error": Figure(relative=1e-5),
            "sum of predictions": Figure(absolute=1e-6, relative=1e-5, shown=".8g"),
        },
        (
            Case("heart_scale", test="heart_scale"), Case("a1a", test="a1a.t"),
            Case("svmguide1", "-c 2 -g 2", "svmguide1.t"), Case("dna.scale", "-c 4 -g 0.01", "dna.scale.t"),
            Case("housing_scale", "-s 3", "housing_scale"),
        ),
        _predicted(original),
        _predicted(here),
    ),
    Section(
        "svm-scale",
        "Values are written with six digits by both.",
        {
            "values": Figure(shown=".0f"),
            "sum of values": Figure(absolute=1e-3, relative=1e-6, shown=".8g"),
            "sum of squares": Figure(relative=1e-6, shown=".8g"),
            "lines of the range file": Figure(shown=".0f"),
        },
        (Case("heart"), Case("svmguide1", "-l 0"), Case("german.numer"), Case("australian", "-l -2 -u 2")),
        _scaled(original),
        _scaled(here),
    ),
]  # fmt: skip

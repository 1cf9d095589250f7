"""The programs by name."""

from importlib import import_module

MODULES = {
    "svm_learn": "svm_learn",
    "svm_classify": "svm_classify",
    "svm_perf_learn": "svm_perf_learn",
    "svm_perf_classify": "svm_perf_classify",
    "svm_rank_learn": "svm_rank_learn",
    "svm_rank_classify": "svm_rank_classify",
    "svm-train": "svm_train",
    "svm-predict": "svm_predict",
    "svm-scale": "svm_scale",
    "train": "liblinear_train",
    "predict": "liblinear_predict",
    "svmocas": "svmocas",
    "msvmocas": "msvmocas",
    "linclassif": "linclassif",
}


def program(name):
    """Return the Program of a name of MODULES."""
    return import_module(f"widemargin.cli.programs.{MODULES[name]}").PROGRAM

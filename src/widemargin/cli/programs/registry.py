"""The programs by name, and those that cannot be had."""

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
    "linclassif": "linclassif",
}
REFUSED = {
    "msvmocas": "there are no cutting planes for several classes at once; "
    "widemargin train --multi-class crammer_singer solves the same problem"
}


def program(name):
    """Return the Program of a name of MODULES."""
    return import_module(f"widemargin.cli.programs.{MODULES[name]}").PROGRAM

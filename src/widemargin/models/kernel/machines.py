"""The kernel machines and the kernels in the order of LIBSVM's options -s and -t, with the parameters of each."""

from typing import NamedTuple

from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC, NuSVC
from widemargin.models.kernel.svr import SVR, NuSVR


class Machine(NamedTuple):
    """One of LIBSVM's types of SVM: its name, estimator and task, and the parameters that only some types have."""

    name: str
    estimator: type
    task: str
    takes: frozenset


MACHINES = [  # by LIBSVM's -s
    Machine("C-SVC", SVC, "classification", frozenset({"C", "class_weight"})),
    Machine("nu-SVC", NuSVC, "classification", frozenset({"nu", "class_weight"})),
    Machine("one-class SVM", OneClassSVM, "oneclass", frozenset({"nu"})),
    Machine("epsilon-SVR", SVR, "regression", frozenset({"C", "epsilon"})),
    Machine("nu-SVR", NuSVR, "regression", frozenset({"C", "nu"})),
]
KERNELS = {  # by LIBSVM's -t
    "linear": frozenset(),
    "poly": frozenset({"gamma", "coef0", "degree"}),
    "rbf": frozenset({"gamma"}),
    "sigmoid": frozenset({"gamma", "coef0"}),
    "precomputed": frozenset(),
}


def machine_of(model):
    """Return the Machine of a model; None if it is not a kernel machine."""
    return next((machine for machine in MACHINES if machine.estimator is type(model)), None)

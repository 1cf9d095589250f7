"""The kernel machines and the kernels in the order of LIBSVM's options -s and -t, with the parameters of each."""

from importlib import import_module
from typing import NamedTuple


class Machine(NamedTuple):
    """One of LIBSVM's types of SVM: its name, where its estimator is, its task, and the parameters
    that only some types have."""

    name: str
    place: str
    task: str
    takes: frozenset

    @property
    def estimator(self) -> type:
        """The class, imported when it is first asked for."""
        module, _, name = self.place.rpartition(".")
        return getattr(import_module(f"widemargin.models.kernel.{module}"), name)


MACHINES = [  # by LIBSVM's -s
    Machine("C-SVC", "svc.SVC", "classification", frozenset({"C", "class_weight", "basis"})),
    Machine("nu-SVC", "svc.NuSVC", "classification", frozenset({"nu", "class_weight"})),
    Machine("one-class SVM", "one_class.OneClassSVM", "oneclass", frozenset({"nu", "basis"})),
    Machine("epsilon-SVR", "svr.SVR", "regression", frozenset({"C", "epsilon", "basis"})),
    Machine("nu-SVR", "svr.NuSVR", "regression", frozenset({"C", "nu"})),
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

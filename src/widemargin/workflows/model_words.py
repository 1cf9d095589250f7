"""What kind of machine an estimator is, in a few words."""

from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.models.kernel.machines import MACHINES, machine_of
from widemargin.models.linear import LinearSVC
from widemargin.problems.row_loss import RowLoss

_ORDERS = {
    RankSVM: "RankSVM, pairs within queries, linear",
    OrdinalSVC: "OrdinalSVC, ranks by thresholds, linear",
    ROCAreaSVC: "ROCAreaSVC, area under the ROC curve, linear",
}


def model_words(model):
    """Return what a model is, in words: machine, and kernel or loss."""
    machine = machine_of(model)
    if machine is not None:
        return f"{machine.name}, {model.kernel} kernel; LIBSVM's -s {MACHINES.index(machine)}"
    if type(model) in _ORDERS:
        return _ORDERS[type(model)]
    if isinstance(model, MeasureSVC):
        name = getattr(model.measure, "__name__", "a function") if callable(model.measure) else model.measure
        return f"MeasureSVC, {name}, linear"
    kind = "linear SVC" if isinstance(model, LinearSVC) else "linear SVR"
    is_joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    if isinstance(model.loss, RowLoss):
        return f"{kind}, {model.loss}"
    loss = "Crammer and Singer's" if is_joint else model.loss.replace("_", " ").replace("epsilon i", "epsilon-i")
    return f"{kind}, {loss} loss"

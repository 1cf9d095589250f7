"""What `multi_class="crammer_singer"` of LinearSVC does not take."""

from widemargin.problems.classification import ENTROPIES
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.problems.row_loss import RowLoss
from widemargin.solvers.registry import specs_of
from widemargin.solvers.spec import Start


def check_crammer_singer(model, X):
    """Refuse parameters and rows that the problem of Crammer and Singer, or its solver, has no place for."""
    if not X.is_in_memory:
        how = "centred, which would make sparse rows dense" if X.is_centred else "in blocks on disk"
        raise ValueError(
            f"multi_class='crammer_singer' needs all rows in memory as they are; these are {how}. Use "
            "multi_class='ovr'."
        )
    if model.checkpoint is not None:
        raise ValueError(f"multi_class='crammer_singer' keeps no checkpoints, got checkpoint={model.checkpoint!r}.")
    if isinstance(model.loss, RowLoss) or model.loss in ENTROPIES:
        raise ValueError(
            f"multi_class='crammer_singer' has a loss of its own, got loss={model.loss!r}: use multi_class='ovr'."
        )
    if specs_of(DualQP)[model.solver].starts_from is not Start.DUAL or model._intercept is Intercept.FREE:
        raise ValueError(
            "multi_class='crammer_singer' has a dual coordinate solver of its own, and penalises the intercept; "
            f"got solver={model.solver!r}, penalize_intercept={model.penalize_intercept}."
        )

"""`multi_class="crammer_singer"` of LinearSVC: what it does not take, and how it is solved."""

from widemargin._runtime.words import listed
from widemargin.data.blocks.placement import VECTORS_OF_PLANES, VECTORS_OF_ROW_LOSSES
from widemargin.models.base import LinearModel, one_by_one
from widemargin.problems.classification import ENTROPIES
from widemargin.problems.formulations import DualQP, Intercept, RiskProblem
from widemargin.problems.row_loss import RowLoss
from widemargin.solvers.all_classes import by_planes, chosen
from widemargin.solvers.contract import Settings
from widemargin.solvers.coordinate_descent.crammer_singer import CRAMMER_SINGER
from widemargin.solvers.registry import specs_of
from widemargin.solvers.spec import Start


class AllClassesAtOnce(LinearModel):
    """The part of a linear classifier that concerns the problem of all classes at once."""

    @property
    def _solves_all_classes_at_once(self):
        """Whether the problem is that of Crammer and Singer, which for two classes is that of one weight vector."""
        return self.multi_class == "crammer_singer" and len(self.classes_) > 2

    @property
    def _halves_one_vector(self):
        """Whether it is the problem of Crammer and Singer for two classes, whose weights are w/2 and −w/2.

        Its objective is half of ½|w|² + 2 Σ C_i max(0, 1 − y_i (<w, x_i> + b)).
        """
        is_joint = self.multi_class == "crammer_singer" and len(self.classes_) == 2
        return is_joint and self.penalty == "l2" and not isinstance(self.loss, RowLoss) and self.loss not in ENTROPIES

    def _matrix(self, X, n_problems, n_vectors=VECTORS_OF_ROW_LOSSES):
        """Return X as a Matrix; the problem of all classes at once has vectors over rows and classes."""
        if self._solves_all_classes_at_once:
            n_problems, n_vectors = 1, VECTORS_OF_PLANES * n_problems
        return super()._matrix(X, n_problems, n_vectors)

    def _solve_problems(self, problems, X):
        """Return the Solution of each problem, or of the one of all classes."""
        if self._solves_all_classes_at_once:
            return [self._solve_all_classes(problems[0](), X)]
        return super()._solve_problems(problems, X)

    def _solve_all_classes(self, problem, X):
        """Return the Solution of a CrammerSinger problem; X is its matrix."""
        spec, why, n_classes = specs_of(DualQP)[self.solver], "", len(self.classes_)
        last, checkpoint = self._last_dual_variables(n_classes, X.n_rows), self._checkpoint_file(X)
        if spec.chooses and last is None:
            spec, why = chosen(problem, Settings(tol=self.tol, stopping=self.stopping, checkpoint=checkpoint))
        if _is_by_planes(spec):
            solve, start = by_planes(spec, why), self._last_weights(n_classes, X)
        else:
            start = None if last is None else last.T
            solve, checkpoint = CRAMMER_SINGER.solve, None
        return self._solve(one_by_one(solve), [lambda: problem], [start], checkpoint=checkpoint)[0]


def check_crammer_singer(model, X):
    """Refuse parameters and rows that the problem of Crammer and Singer, or its solver, has no place for."""
    if isinstance(model.loss, RowLoss) or model.loss in ENTROPIES:
        raise ValueError(
            f"multi_class='crammer_singer' has a loss of its own, got loss={model.loss!r}: use multi_class='ovr'."
        )
    if model._intercept is Intercept.FREE:
        raise ValueError(
            "multi_class='crammer_singer' penalises the intercept, got penalize_intercept=False: raise "
            "intercept_scaling, or use multi_class='ovr'."
        )
    spec = specs_of(DualQP)[model.solver]
    if not _takes(spec):
        names = [name for name, one in specs_of(DualQP).items() if _takes(one)]
        raise ValueError(f"multi_class='crammer_singer' needs solver={listed(names)}, got {model.solver!r}.")
    if not (_is_by_planes(spec) or (spec.chooses and model.stopping != "kkt")):
        _check_sweeps(model, X)


def _check_sweeps(model, X):
    """Refuse rows that are not in memory, and checkpoints, which coordinate descent does not have."""
    way = f"Use solver={listed(['auto', *specs_of(RiskProblem)])}, and stopping='gap'."
    if not X.is_in_memory:
        how = "centred, which would make sparse rows dense" if X.is_centred else "in blocks on disk or on a cluster"
        raise ValueError(
            f"multi_class='crammer_singer' by coordinate descent needs all rows in memory as they are; these are {how}."
            f" {way}"
        )
    if model.checkpoint is not None:
        raise ValueError(
            "multi_class='crammer_singer' by coordinate descent keeps no checkpoints, got "
            f"checkpoint={model.checkpoint!r}. {way}"
        )


def _is_by_planes(spec):
    """Return whether a solver is one of cutting planes, which take the problem as a risk of scores."""
    return RiskProblem in spec.takes


def _takes(spec):
    """Return whether a solver of LinearSVC stands for one of the problem of all classes."""
    return _is_by_planes(spec) or spec.starts_from is Start.DUAL

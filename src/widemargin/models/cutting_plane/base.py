"""Base class of the models that are fitted by cutting planes: ½|w|² plus a risk of all scores, one weight vector."""

from numbers import Integral, Real
from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from widemargin._runtime.argument_types import Floats
from widemargin.data.blocks.placement import VECTORS_OF_PLANES
from widemargin.models.argument_types import RowsOrBlocks
from widemargin.models.base import POSITIVE, WeightedModel, one_by_one
from widemargin.models.inputs import checked_rows, encode_labels
from widemargin.models.scoring import ScoresRowBlocks
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.problems.formulations import RiskProblem
from widemargin.solvers.finishing import finishing_risk
from widemargin.solvers.registry import RISK_SOLVERS, check_choice, specs_of


class PlaneModel(WeightedModel):
    """A model that minimises ½|w|² + R(X w), where R is a risk. Subclasses state the risk and keep the weights.

    Sets after fit: `n_iter_`, `gap_`, `objective_`, `history_`, `solver_`, `status_`.
    """

    _parameter_constraints: dict = {
        **WeightedModel._parameter_constraints,
        "C": [POSITIVE],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "solver": [StrOptions(set(RISK_SOLVERS))],
        "stopping": [StrOptions({"gap", "violation"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    def _check_parameters(self):
        """Raise ValueError if a parameter is not valid, or the solver does not take the stopping rule."""
        self._validate_params()
        check_choice(specs_of(RiskProblem)[self.solver], RiskProblem, stopping=self.stopping)

    def _check_rows(self, X, y, **options):
        """Return X and y, after checks of these and of the parameters."""
        self._check_parameters()
        return checked_rows(self, X, y, order="C", **options)

    def _minimise(self, X, risk, constant=0.0):
        """Return (coef, intercept), as those of the features as they are, that minimise ½|w|² + R(X w).

        The intercept is that of the constant column, 0.0 without one, and what centring adds to the scores. Sets the
        attributes that describe the solution, and warns if the solver has not converged.
        """
        matrix = self._matrix_of(X, constant, n_vectors=VECTORS_OF_PLANES + risk.n_vectors)
        return self._minimise_problem(RiskProblem(matrix, risk))

    def _minimise_problem(self, problem):
        """Return (coef, intercept) as `_minimise` does, of a RiskProblem."""
        matrix = problem.X
        last = self._last_weights(1, matrix)
        start = None if last is None else last[0]
        solve = one_by_one(finishing_risk(RISK_SOLVERS[self.solver]))
        (solution,) = self._solve(solve, [lambda: problem], [start], checkpoint=self._checkpoint_file(matrix))
        self.n_iter_ = solution.n_iter
        self._keep_record([solution])
        self._warn([solution], matrix.values_or_none)
        w = matrix.spread(solution.w)
        coef, intercept = (w[:-1], matrix.constant * float(w[-1])) if matrix.constant else (w, 0.0)
        vars(self).pop("scaling_", None)
        if matrix.scaling is None:
            return coef, intercept
        self.scaling_ = matrix.scaling
        coef, intercept = matrix.scaling.weights_of_data(coef, intercept)
        return coef, float(intercept)


class BinaryPlaneModel(ScoresRowBlocks, ClassifierMixin, PlaneModel):
    """A classifier of two classes that is fitted by cutting planes; a positive score predicts the second class."""

    classes_: NDArray[Any]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_two_classes(self, X, y):
        """Return X and labels 0 and 1. Sets `classes_`."""
        X, y = self._check_rows(X, y)
        self.classes_, label = encode_labels(y)
        self._refuse_more_than_two_classes()
        return X, label

    def _refuse_more_than_two_classes(self):
        """Raise ValueError if `classes_` has more than two labels."""
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y must hold 2 "
                f"classes, got {len(self.classes_)}."
            )

    def decision_function(self, X: RowsOrBlocks) -> Floats:
        """Return the score of each row (n_samples,)."""
        return self._scores(X).ravel()

    def predict(self, X: RowsOrBlocks) -> NDArray[Any]:
        """Return the class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int)]

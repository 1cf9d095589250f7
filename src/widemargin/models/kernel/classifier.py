"""Base class of `SVC` and `NuSVC`: one problem for each pair of classes, votes, decision values and probabilities."""

from functools import partial
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from widemargin._runtime.argument_types import Floats, Rows
from widemargin._runtime.threads import run, single_threaded_blas, split
from widemargin._runtime.warning import warn_caller
from widemargin.models.argument_types import RowsOrBlocks
from widemargin.models.inputs import check_class_weight, encode_labels
from widemargin.models.kernel.base import KernelModel, available_with_probability
from widemargin.models.kernel.solved_problem import SolvedProblem
from widemargin.models.kernel.training_rows import folds_of, n_rows_of, parts_of
from widemargin.models.multiclass import (
    blocks_of,
    labels_of,
    one_against_rest,
    order_of,
    order_of_first,
    pair_coefficients,
    pair_decisions,
    pairs_of,
    pairwise_probabilities,
    tabulate,
)
from widemargin.models.scoring import ScoresRowBlocks
from widemargin.models.sklearn_private import StrOptions
from widemargin.solvers.contract import KernelSettings
from widemargin.solvers.registry import KERNEL_SOLVERS

_needs_probability = available_with_probability(
    "predict_proba and predict_log_proba need calibration='sigmoid' or 'isotonic', or probability, when fitting."
)
_LIBSVM = "libsvm"  # the calibration by folds of LIBSVM
_MIN_ROWS_TO_CALIBRATE = 10  # of each class: the rule of ten events for a coefficient of a logistic regression
_DECISIONS_PER_TASK = 1 << 17  # from which a task of the thread pool computes probabilities
_OUT_OF_SAMPLE_TOL = 0.1  # violation to which a problem without some rows is solved: probabilities need no more


class KernelClassifier(ScoresRowBlocks, ClassifierMixin, KernelModel):
    """Base class of `SVC` and `NuSVC`, which state the problem of a pair of classes in `_problem`.

    Sets, besides the attributes of a `KernelModel`, `classes_`, `class_weight_`, `probA_`, `probB_`, and with
    calibration="isotonic" `isotonic_points_` and `isotonic_ends_`.
    """

    _parameter_constraints: dict = {
        **KernelModel._parameter_constraints,
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
        "break_ties": ["boolean"],
        "calibration": [None, StrOptions({"sigmoid", "isotonic"})],
        "predict_by": [StrOptions({"decision", "probability"})],
    }
    _one_class = "Invalid input"  # the beginning of the error message for rows of only one class, as in scikit-learn

    classes_: NDArray[Any]
    class_weight_: Floats
    n_iter_: NDArray[np.int32]
    probA_: Floats
    probB_: Floats
    isotonic_points_: Floats
    isotonic_ends_: NDArray[np.int64]

    def fit(self, X: RowsOrBlocks, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            float32 stays float32, anything else becomes float64. Row blocks need a `basis`.
        y : array-like of shape (n_samples,)
            Two classes or more. Of row blocks, None takes the labels of the file.
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of the weight of each row; a row of weight zero (or below) has no influence.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X, y, sample_weight, reused=None):
        """Fit the model; for `reused` see `fit_reusing`."""
        if self._wants_basis:
            return self._fit_pairs_on_basis(X, y, sample_weight)
        training, label = self._check_once(lambda: self._check(X, y, sample_weight), reused)
        pairs_of_models = self._pairs_of_models(training, label)
        trained = self._train_pairs(training, pairs_of_models)
        self._keep(training, label, pairs_of_models, trained)
        self._calibrate(training, label, pairs_of_models, trained)
        if self._method in ("sigmoid", "isotonic"):
            self._warn_of_few_rows(label[training.present])
        return self

    def _warn_of_few_rows(self, label):
        """Warn if a class has so few rows that probabilities say little about it."""
        counts = np.bincount(label, minlength=len(self.classes_))
        fewest = int(np.where(counts > 0, counts, len(label)).argmin())
        n_rows = int(counts[fewest])
        if n_rows < _MIN_ROWS_TO_CALIBRATE:
            warn_caller(
                f"Probabilities are fitted to {n_rows} row{'s' if n_rows != 1 else ''} of class "
                f"{self.classes_[fewest]}, and mean little with fewer than {_MIN_ROWS_TO_CALIBRATE} of each class. Fit "
                "more rows, or use decision_function, which needs no calibration."
            )

    @property
    def _method(self):
        """How probabilities are fitted: "libsvm", "sigmoid", "isotonic" or None."""
        if self.calibration is None and super()._wants_probability:
            return _LIBSVM if self.probability == _LIBSVM else "sigmoid"
        return self.calibration

    @property
    def _wants_probability(self):
        """Whether probabilities are to be fitted."""
        return self._method is not None

    def _check(self, X, y, sample_weight):
        """Return the TrainingRows, whose weights include class_weight, and labels 0 .. n_classes − 1."""
        X, label, weight = self._check_arguments(X, y, sample_weight)
        n_pairs = len(self.classes_) * (len(self.classes_) - 1) // 2
        n_problems = n_pairs * (1 + 5 * (self._method == _LIBSVM))
        return self._training_rows(X, weight, n_problems, label), label

    def _check_arguments(self, X, y, sample_weight):
        """Return rows, labels 0 .. n_classes − 1, and weights of rows that include class_weight.

        Sets `classes_` and `class_weight_`.
        """
        check_class_weight(self.class_weight)
        X, y = self._check_rows(X, y)
        self._check_calibration()
        self.classes_, label = encode_labels(y)
        self._keep_order(order_of_first(label, len(self.classes_)))
        weight = self._weigh(X, sample_weight)
        self.class_weight_ = np.ones(len(self.classes_))
        if self.class_weight is not None:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            weight = weight * self.class_weight_[label]
        may_lack = sample_weight is not None or self.class_weight is not None  # positive weights of a class
        if may_lack:
            self._refuse_one_class(np.bincount(label, weight > 0.0) > 0)
        return X, label, weight

    def _refuse_one_class(self, is_present):
        """Raise ValueError unless two classes have rows of positive weight."""
        if np.count_nonzero(is_present) < 2:
            raise ValueError(
                f"{self._one_class} - all samples with positive weights belong to the same class; "
                "there must be rows of two classes whose sample_weight and class_weight are positive."
            )

    def _fit_pairs_on_basis(self, X, y, sample_weight):
        """Fit the machine on its basis: a linear problem for each pair, in which rows of other classes cost nothing."""
        X, label, weight = self._check_arguments(X, y, sample_weight)
        pairs = pairs_of(np.flatnonzero(weight), label, len(self.classes_))
        present = [pair for pair in pairs if pair.has_both]

        def state(matrix):
            return [partial(self._problem_on_basis, matrix, pair, weight) for pair in present]

        expansion, solutions = self._fit_on_basis(X, state, len(present))
        has_both, constant = (np.array([getattr(pair, name) for pair in pairs]) for name in ("has_both", "constant"))
        self._keep_pairs_on_basis(has_both, constant, expansion, solutions)
        if self._wants_probability:
            from widemargin.models.kernel.out_of_sample import values_of_pair_on_basis

            machines = self._machines_on_basis(X, label, weight, pairs, solutions)
            self._calibrate_pairs(pairs, partial(values_of_pair_on_basis, expansion.features, machines))
        return self

    def _keep_pairs_on_basis(self, has_both, constant, expansion, solutions):
        """Set coefficients, intercepts and iterations of all pairs of classes.

        The Expansion and the solutions are those of the pairs with both classes; the decision of another is constant.
        """
        sign = -1.0 if len(self.classes_) == 2 else 1.0  # the second of two classes is positive, as in scikit-learn
        self.basis_coef_ = np.zeros((len(has_both), len(expansion.basis)))
        self.basis_coef_[has_both] = sign * expansion.coef
        self.intercept_ = sign * constant
        self.intercept_[has_both] = sign * expansion.intercept
        self.n_iter_ = np.zeros(len(has_both), dtype=np.int32)
        self.n_iter_[has_both] = [solution.n_iter for solution in solutions]
        self.probA_, self.probB_ = np.empty(0), np.empty(0)

    def _machines_on_basis(self, X, label, weight, pairs, solutions):
        """Return the BinaryMachine of each pair on a basis and the weights of its features.

        Without both classes there is no machine, and the weights are those of rows. A solver without dual variables
        leaves them to the margins.
        """
        from widemargin.models.kernel.out_of_sample import BinaryMachine, coefficients_of_losses, first_copies_on_basis

        decisions, first_copy, solved = None, first_copies_on_basis(X), iter(solutions)
        if any(solution.beta is None for solution in solutions):
            decisions = np.concatenate([self._decisions(part) for part in parts_of(X, len(pairs))])
        machines, in_data = [], self._weight_in_data(weight, label)
        for k, pair in enumerate(pairs):
            if not pair.has_both:
                machines.append((None, in_data[pair.rows]))
                continue
            solution, rows, cost = next(solved), pair.rows, self._costs_of(weight[pair.rows])
            if solution.beta is None:
                coef = coefficients_of_losses(1.0 - pair.sign * decisions[rows, k], pair.sign, cost)
            else:
                coef = solution.beta[rows]
            machine = BinaryMachine(rows, pair.sign, in_data[rows], cost, coef, float(solution.intercept))
            machines.append((machine.merged(first_copy), solution.w))
        return machines

    def _check_calibration(self):
        """Raise ValueError if parameters contradict each other; remove what an earlier fit has left."""
        if self.calibration is not None and self.probability == _LIBSVM:
            raise ValueError(
                f"calibration={self.calibration!r} and probability='libsvm' are two ways to fit probabilities: leave "
                "one of them out."
            )
        if self.predict_by == "probability" and not self._wants_probability:
            raise ValueError(
                "predict_by='probability' needs probabilities: set calibration to 'sigmoid' or 'isotonic', or leave "
                "predict_by at 'decision'."
            )
        if self._wants_basis and self._method == _LIBSVM:
            raise ValueError(
                "probability='libsvm' is the cross-validation of an exact machine; with a basis use "
                "calibration='sigmoid' or 'isotonic', or probability=True."
            )
        for name in ("isotonic_points_", "isotonic_ends_"):
            vars(self).pop(name, None)

    def _keep_order(self, order):
        """Keep the order in which classes first occur as `_seen_order`, unless it is that of `classes_`."""
        for name in ("_class_order", "_seen_order"):  # attributes of an earlier fit, or of a model file
            vars(self).pop(name, None)
        if (order[1:] < order[:-1]).any():
            self._seen_order = order

    def _pairs_of_models(self, training, label):
        """Return the pairs of classes for each model that is trained.

        The first model is that of all rows. For the probabilities of LIBSVM, there is another for each fold of
        cross-validation, trained on the rows of the other folds.
        """
        rows, n_classes = training.present, len(self.classes_)
        pairs_of_models = [pairs_of(rows, label, n_classes)]
        if self._method == _LIBSVM:
            folds = folds_of(rows, label, self.random_state)
            pairs_of_models += [pairs_of(np.setdiff1d(rows, fold), label, n_classes) for fold in folds]
        return pairs_of_models

    def _train_pairs(self, training, pairs_of_models):
        """Return, for each model, the SolvedProblem of each pair; a pair without rows of a class is not solved."""
        pairs = [pair for of_model in pairs_of_models for pair in of_model]
        have_both = [pair.has_both for pair in pairs]
        problems = [partial(self._problem, training, pair) for pair in compress(pairs, have_both)]
        solved = iter(self._train(problems, training))
        trained = [
            next(solved) if has_both else _constant(pair) for pair, has_both in zip(pairs, have_both, strict=True)
        ]
        n_pairs = len(pairs_of_models[0])
        return [trained[begin : begin + n_pairs] for begin in range(0, len(trained), n_pairs)]

    def _keep(self, training, label, pairs_of_models, trained):
        """Set the fitted attributes; warn if a solver has not converged."""
        tables = [
            tabulate(pairs, [one.coef for one in solved], [one.intercept for one in solved], label, len(self.classes_))
            for pairs, solved in zip(pairs_of_models, trained, strict=True)
        ]
        model, *others = tables
        sign = -1.0 if len(self.classes_) == 2 else 1.0  # the second of two classes is positive, as in scikit-learn
        self._keep_model(model.support, model.n_support, sign * model.dual_coef, sign * model.intercept, training)
        self.probA_, self.probB_ = np.empty(0), np.empty(0)
        if others:
            self.probA_, self.probB_ = self._sigmoids(training, label, pairs_of_models, others)
        self.n_iter_ = np.array([one.facts["iterations"] for one in trained[0]], dtype=np.int32)
        solutions = self._keep_solutions(trained[0], [one for solved in trained[1:] for one in solved])
        self._warn(solutions, self._features(training))

    def _sigmoids(self, training, label, pairs_of_models, tables):
        """Return A and B of each pair, fitted to decision values of cross-validation.

        `tables` are the models of cross-validation; each gives the decision values of the rows of its fold.
        """
        from widemargin.models.calibration import fit_sigmoid

        decisions = np.zeros((len(label), len(pairs_of_models[0])))
        present = training.present
        with self._showing("calibrating", len(present)) as advance:
            for pairs, table in zip(pairs_of_models[1:], tables, strict=True):
                held_out = np.setdiff1d(present, np.concatenate([pair.rows for pair in pairs]))
                options = {"ends": blocks_of(table.n_support), "advance": advance}
                for rows in parts_of(held_out, table.dual_coef.shape[0] * len(table.n_support)):
                    sums = training.sums(table.support, table.dual_coef, rows, **options)
                    decisions[rows] = pair_decisions(sums, table.intercept)
        fitted = [
            fit_sigmoid(decisions[pair.rows, k], pair.sign) if len(pair.rows) else (0.0, 0.0)
            for k, pair in enumerate(pairs_of_models[0])
        ]
        return np.array(fitted).T.copy()

    def _weight_in_data(self, weight, label):
        """Return the weights of rows without class_weight, which says nothing about the distribution of the data."""
        factor = self.class_weight_[label]
        return np.divide(weight, factor, out=np.zeros(len(label)), where=factor > 0.0)

    def _calibrate(self, training, label, pairs_of_models, trained):
        """Fit probabilities of each pair to decision values that follow from the models of all rows."""
        if self._method not in ("sigmoid", "isotonic"):
            return
        from widemargin.models.kernel.copies import first_copies
        from widemargin.models.kernel.out_of_sample import BinaryMachine, out_of_sample

        weight, first_copy = self._weight_in_data(training.weight, label), first_copies(training.X)
        options = {name: getattr(self, name) for name in ("cache_size", "shrinking", "working_set", "n_jobs")}
        settings = KernelSettings(tol=max(self.tol, _OUT_OF_SAMPLE_TOL), **options)
        solve = partial(KERNEL_SOLVERS[self.solver], settings=settings)

        def values_of(k, pair, seed):
            if not pair.has_both:
                return np.full(len(pair.rows), pair.constant), pair.sign, weight[pair.rows]
            solved = trained[0][k]
            cost = self._largest_coefficients(training, pair, solved)
            machine = BinaryMachine(pair.rows, pair.sign, weight[pair.rows], cost, solved.coef, solved.intercept)
            return out_of_sample(machine.merged(first_copy), training, solve, seed)

        self._calibrate_pairs(pairs_of_models[0], values_of)

    def _calibrate_pairs(self, pairs, values_of):
        """Fit probabilities of each pair; values_of(k, pair, seed) are decision values, signs and weights of rows."""
        from widemargin.models.calibration import fit_isotonic, fit_rising_sigmoid, pseudo_rows_of_pair
        from widemargin.models.kernel.out_of_sample import may_sample

        fit = {"sigmoid": fit_rising_sigmoid, "isotonic": fit_isotonic}[self._method]
        pseudo_rows = pseudo_rows_of_pair(len(self.classes_))

        def fit_pair(k, pair, seed):
            if not len(pair.rows):  # neither class has rows of positive weight
                return fit(np.zeros(2), np.array([1.0, -1.0]))
            return fit(*values_of(k, pair, seed), pseudo_rows)

        seeds = np.zeros(len(pairs), np.intp)
        if may_sample(max(len(pair.rows) for pair in pairs)):
            seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=len(pairs))
        with single_threaded_blas():
            fitted = run(fit_pair, zip(range(len(pairs)), pairs, seeds, strict=True), self.n_jobs)
        if self._method == "sigmoid":
            self.probA_, self.probB_ = np.array(fitted).T.copy()
        else:
            self.isotonic_points_ = np.concatenate(fitted)
            self.isotonic_ends_ = np.cumsum([0, *map(len, fitted)])

    def _weights(self):
        """Return Σ coef_i x_i over the support vectors of each pair, one row for each pair."""
        if len(self.classes_) == 2 or self._is_on_basis:
            return super()._weights()
        if not issparse(self.dual_coef_):
            return pair_coefficients(self.dual_coef_, self.n_support_) @ self.support_vectors_
        table = pair_coefficients(self.dual_coef_.toarray(), self.n_support_)
        return type(self.dual_coef_)(table) @ self.support_vectors_

    def _from_decisions(self, X, outcome, then=None):
        """Check rows and return outcome(decision values of the pairs, (n_rows, n_pairs)), block by block.

        `then` is a function of outcomes that is applied to more rows at a time, because it calls NumPy often.
        """
        X, n_classes = self._check_new_rows(X), len(self.classes_)
        with self._showing("predicting", n_rows_of(X)) as advance:
            found = [self._outcomes(part, outcome, advance) for part in parts_of(X, n_classes * (n_classes - 1))]
        if then is not None:
            ends = [(one, *pair) for one in found for pair in split(len(one), one.size // _DECISIONS_PER_TASK + 1)]
            found = run(lambda one, begin, end: then(one[begin:end]), ends, self.n_jobs)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _outcomes(self, Z, outcome, advance=None):
        """Return outcome(decision values of the pairs) of checked rows, some of them at a time."""
        by_class = len(self.classes_) > 2 and not self._is_on_basis
        options = {"advance": advance, "ends": blocks_of(self.n_support_) if by_class else None}
        return self._sums(Z, outcome=lambda sums: outcome(self._pair_values(sums)), **options)

    def _pair_values(self, sums):
        """Return the decision value of each pair, positive for its first class, from the sums of some rows."""
        if len(self.classes_) == 2:
            return -sums - self.intercept_
        return sums + self.intercept_ if self._is_on_basis else pair_decisions(sums, self.intercept_)

    def _decisions(self, Z):
        """Return the decision value of each pair, positive for its first class, of checked rows."""
        return self._outcomes(Z, lambda decisions: decisions)

    def decision_function(self, X: Rows) -> Floats:
        """Return the decision values of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray
            Two classes: (n_samples,), positive for the second. More: (n_samples, n_classes), the number of votes for
            each class plus a term between ±1/3 that increases with its decision values; or, for
            decision_function_shape="ovo", (n_samples, n_pairs), positive for the first class of the pair.
        """
        self._check_fitted()
        n_classes = len(self.classes_)
        if n_classes == 2:
            return self._from_decisions(X, lambda decisions: -decisions.ravel())
        if self.decision_function_shape == "ovo":
            return self._from_decisions(X, lambda decisions: decisions)
        return self._from_decisions(X, lambda decisions: one_against_rest(decisions, n_classes))

    def predict(self, X: Rows) -> NDArray[Any]:
        """Return the class of each row.

        It is that with the most votes of the pairs or, with predict_by="probability", the most probable one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.predict_by == "probability":
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self._from_decisions(X, partial(labels_of, self))

    @_needs_probability
    def predict_proba(self, X: Rows) -> Floats:
        """Return the probability of each class for each row, if fitted with `calibration` or `probability`.

        For each pair of classes, the probability is a function of the decision value, fitted to decision values of rows
        that were left out of training. Class probabilities are computed from those of the pairs (Wu, Lin and Weng). The
        most probable class may differ from the predicted one, unless predict_by="probability".

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_training) if precomputed

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; each row sums to one.
        """
        self._check_fitted()
        if not (self.probA_.size or hasattr(self, "isotonic_ends_")):
            raise self._not_calibrated("predict_proba")
        from widemargin.models.calibration import couple

        n_classes, order = len(self.classes_), order_of(self)

        def probabilities(decisions):
            pairwise = pairwise_probabilities(self._of_first_classes(decisions), n_classes)
            return couple(pairwise[:, order][:, :, order])[:, np.argsort(order)]

        return self._from_decisions(X, lambda decisions: decisions, probabilities)

    def _not_calibrated(self, name):
        """Return the error for a method of a model that was fitted without probabilities."""
        return NotFittedError(
            f"{name} is not available when fitted with probability=False and calibration=None: set one of them, "
            "and fit again."
        )

    def _of_first_classes(self, decisions):
        """Return the probability of the first class of each pair, given the decision values (n_rows, n_pairs)."""
        from widemargin.models.calibration import isotonic, sigmoid

        if self.probA_.size:
            return sigmoid(decisions, self.probA_, self.probB_)
        curves = np.split(self.isotonic_points_, self.isotonic_ends_[1:-1])
        return np.column_stack([isotonic(column, points) for column, points in zip(decisions.T, curves, strict=True)])

    @_needs_probability
    def predict_log_proba(self, X: Rows) -> Floats:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _constant(pair):
    """Return the SolvedProblem of a pair without rows of both classes; it always votes for the class with rows."""
    facts = {"obj": 0.0, "rho": -pair.constant, "nSV": 0, "nBSV": 0, "iterations": 0}
    return SolvedProblem(np.zeros(len(pair.rows)), pair.constant, facts)

"""What the kernel machines share: f(x) = Σ_i coef_i K(x_i, x) + intercept, fitted by a solver with a certificate.

Rows whose coefficient is not zero are the support vectors; they are all that is kept. Prediction goes through new
rows in parts, so that memory is bounded however many there are. A model is used through its public attributes (and
`_gamma`, the number behind gamma="scale"), so that one read from a file is as good as one fitted here.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from widemargin._runtime.argument_types import Floats, SparseMatrix
from widemargin._runtime.progress import reporting
from widemargin._runtime.threads import n_threads
from widemargin.data.products import row_sums, squared_norms
from widemargin.data.structure import check_structure
from widemargin.kernels.expansion import kernel_scores
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, PreparedRows, submatrix
from widemargin.models.base import SolvedModel, one_by_one
from widemargin.models.inputs import checked_rows, checked_weights, finite_targets, refuse_missing
from widemargin.models.sklearn_private import Hidden, Interval, StrOptions, _num_samples
from widemargin.solvers.contract import KernelSettings, KernelSolution, Status
from widemargin.solvers.registry import KERNEL_SOLVERS

_MEGABYTE = 1 << 20
_PART_NUMBERS = 1 << 22  # numbers that prediction holds at a time, besides its result: 32 MB
_N_FOLDS = 5  # LIBSVM's, for probabilities
_WHOLE_ROWS = 2000  # up to here several problems share one kernel matrix, 32 MB at most
_FEW_ROWS = 100  # up to here a problem is solved to the last digits, whatever the tolerance
_LAST_DIGITS = 1e-12
_LARGEST_C = 1e30  # in the place of an infinite one: no multiplier gets there, and the objective stays a number
_LEAST_VARIANCE = 1e-290  # of all features together; below, it counts as zero
_SHARPENING_TURNS = 12  # of svmlight, each brings the violation down to a tenth in some milliseconds at most


def block_dtype(kernel, tol, n_rows):
    """Return the precision in which kernel values are computed and cached.

    Single precision halves the time and doubles what the cache holds. Its rounding, about 1e-7 of a kernel value,
    moves the gradient by less than LIBSVM's usual eps of 1e-3, but not by less than a tolerance below 1e-4. Few rows
    are solved in no time either way, and then to the last digits. Linear and polynomial kernels have values of any
    size and matrices of low rank, which rounding makes indefinite: solvers may then never end.
    """
    return np.float32 if kernel.name == "rbf" and tol >= 1e-4 and n_rows > 2000 else np.float64


def kernel_values(function, A, B):
    """Return function(A, B) of a callable kernel as an array; ValueError if it is not finite, a row per row of A."""
    values = function(A, B)
    values = values.toarray() if issparse(values) else np.asarray(values)
    shape = (_num_samples(A), _num_samples(B))
    if values.shape != shape:
        raise ValueError(f"The callable kernel must return shape {shape}, a row per row of A; got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("The callable kernel returned NaN or infinity; every kernel value must be finite.")
    return values


def parts_of(rows, n_numbers):
    """Yield the rows in slices of at most `_PART_NUMBERS` numbers if a row needs `n_numbers`; whole if that is few."""
    n_rows = _num_samples(rows)
    step = max(1, _PART_NUMBERS // max(1, n_numbers))
    if n_rows <= step:
        yield rows
    else:
        yield from (rows[begin : begin + step] for begin in range(0, n_rows, step))


def folds_of(rows, label, random_state):
    """Deal the rows into at most five folds, each class evenly; return them as arrays of row numbers, none empty."""
    random = check_random_state(random_state)
    shuffled = rows[random.permutation(len(rows))]
    dealt = shuffled[np.argsort(label[shuffled], kind="stable")]
    return [np.sort(dealt[fold::_N_FOLDS]) for fold in range(min(_N_FOLDS, len(rows)))]


@dataclass(frozen=True)
class TrainingRows:
    """The rows that a model is fitted to: a kernel of them, and a weight each; zero is as good as absent."""

    kernel: Kernel
    X: Any  # "precomputed": the kernel matrix, maybe that of a callable
    prepared: Any  # X as the kernel wants it, made once for all problems
    values: np.ndarray | None  # the whole kernel matrix, if several small problems share it
    weight: np.ndarray
    dtype: type
    n_jobs: int | None
    submatrices: dict | None = None  # kernel matrices of subsets of the rows, reused between fits; see `fit_reusing`

    @property
    def present(self):
        """The numbers of the rows that have a weight."""
        return np.flatnonzero(self.weight)

    def matrix(self, rows):
        """Return the kernel matrix of these rows."""
        everything = len(rows) == len(self.weight) and (np.diff(rows) == 1).all()
        if self.submatrices is not None and not everything:
            subset = rows.tobytes()
            if subset not in self.submatrices:
                self.submatrices[subset] = submatrix(self.X, rows, rows)
            return KernelRows(self.kernel, self.submatrices[subset], n_jobs=self.n_jobs)
        options = {"subset": None if everything else rows, "dtype": self.dtype, "n_jobs": self.n_jobs}
        if self.values is not None:
            return KernelRows(Kernel("precomputed"), self.values, **options)
        return KernelRows(self.kernel, self.prepared, **options)

    def sums(self, support, coefficients, rows, **options):
        """Return `kernel_sums` of these rows against those that support a model."""
        options["n_jobs"] = self.n_jobs
        if self.kernel.name == "precomputed":
            return kernel_sums(self.kernel, None, coefficients, self.X[np.ix_(rows, support)], **options)
        return kernel_sums(self.kernel, self.X[support], coefficients, self.X[rows], **options)


@dataclass(frozen=True)
class SolvedProblem:
    """The solution of one problem: f(x) = Σ coef_i K(x_i, x) + intercept over the rows of the problem."""

    coef: np.ndarray
    intercept: float
    facts: dict
    solution: KernelSolution | None = None


def fit_reusing(model, K, y, submatrices, sample_weight=None):
    """Fit a model with kernel="precomputed", reusing kernel matrices of subsets of the rows from earlier fits.

    Parameters
    ----------
    model : KernelModel
        One of the estimators of this package, with kernel="precomputed".
    K : ndarray of shape (n_samples, n_samples)
        The kernel matrix, the same in all fits that share `submatrices`.
    y : array-like of shape (n_samples,)
    submatrices : dict
        Kernel matrices of subsets of the rows, such as those of two classes, by row numbers. The fit adds those that
        it needs and does not find.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    model
    """
    return model._fit(K, y, sample_weight, submatrices)


def dual_start(model):
    """Return the dual variables from which the next fit of a model with warm_start=True starts: one array per problem.

    The list is empty if that fit has no previous solution to start from.
    """
    return list(getattr(model, "_last_multipliers", []))


def set_dual_start(model, arrays):
    """Let the next fit of a model with warm_start=True start from these dual variables, as of `dual_start`."""
    model._last_multipliers = list(arrays)


def kernel_sums(kernel, support, coefficients, Z, *, ends=None, n_jobs=None, advance=None):
    """Return `kernel_scores`; zeros if there is no support vector."""
    if coefficients.shape[1]:
        return kernel_scores(kernel, support, coefficients, Z, ends=ends, n_jobs=n_jobs, advance=advance)
    blocks = () if ends is None else (len(ends) - 1,)
    return np.zeros((_num_samples(Z), *blocks, len(coefficients)))


class KernelModel(SolvedModel):
    """A kernel machine. Subclasses state the problems and say what the outputs mean.

    Sets after fit: `support_`, `support_vectors_`, `n_support_`, `dual_coef_`, `intercept_`, `n_iter_`, `fit_status_`,
    `shape_fit_`, `facts_`, `gap_`, `objective_`, `history_`, `solver_`, `status_`.
    """

    _parameter_constraints: dict = {
        **SolvedModel._parameter_constraints,
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), callable],
        "degree": [Interval(Integral, 0, np.iinfo(np.int32).max, closed="both")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": [None, StrOptions({"libsvm"}), "boolean", Hidden(StrOptions({"deprecated"}))],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "solver": [StrOptions(set(KERNEL_SOLVERS))],
        "working_set": [Interval(Integral, 2, None, closed="left"), None],
        "stopping": [StrOptions({"kkt", "gap"})],
    }

    support_: NDArray[np.int32]
    support_vectors_: NDArray[Any] | SparseMatrix
    n_support_: NDArray[np.int32]
    dual_coef_: Floats | SparseMatrix
    intercept_: Floats
    fit_status_: int
    shape_fit_: tuple[int, ...]
    facts_: list[dict[str, float]]
    n_features_in_: int

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @property
    def coef_(self) -> Floats | SparseMatrix:
        """Weights of the features: only for the linear kernel, an AttributeError for others. Read-only."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._weights()
        (coef.data if issparse(coef) else coef).flags.writeable = False
        return coef

    def _weights(self):
        return self.dual_coef_ @ self.support_vectors_

    @property
    def _wants_probability(self):
        """Whether probabilities are asked for; scikit-learn's default, "deprecated", is its word for no."""
        return self.probability != "deprecated" and bool(self.probability)

    def _costs(self, training, rows):
        """Return C times the weights of these rows."""
        return min(float(self.C), _LARGEST_C) * training.weight[rows]

    def _check_rows(self, X, *y, **options):
        """Return X, and y if given, checked. X of a callable kernel is what the function takes. Sets `shape_fit_`."""
        self._validate_params()
        if issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: pass K(X, X) as an array.")
        if callable(self.kernel):
            check_structure(X)
            y = [self._check_targets(targets, **options) for targets in y]
            check_consistent_length(X, *y)
        else:
            checked = checked_rows(self, X, *y, order="C", **options)
            X, *y = checked if y else [checked]
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (_num_samples(X),)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix, K(X, X) of the training rows; "
                f"got {X.shape[0]}x{X.shape[1]}."
            )
        return X, *y

    def _check_targets(self, y, y_numeric=False):
        """Return the targets of a callable kernel's rows."""
        refuse_missing(y, "y")
        return finite_targets(y) if y_numeric else column_or_1d(y, warn=True)

    def _weigh(self, X, sample_weight):
        """Return one weight per row; as in scikit-learn, rows of negative weight are left out. Sets `_gamma`."""
        weight = np.maximum(checked_weights(sample_weight, X, non_negative=False), 0.0)
        if not weight.any():
            raise ValueError("Invalid input - all samples have zero or negative weights. One must be positive.")
        self._gamma = self._gamma_of(X, None if sample_weight is None else weight)
        return weight

    def _training_rows(self, X, weight, n_problems):
        """State the kernel of the rows, whose matrix `n_problems` problems will use. Sets `_fit_rows`."""
        kernel = self._kernel()
        self._fit_rows = X if kernel.name == "callable" else None
        if kernel.name == "callable" and self._is_worth_computing_whole(X, n_problems):
            X, kernel = kernel_values(self.kernel, X, X), Kernel("precomputed")
        dtype = block_dtype(kernel, self.tol, len(weight))
        prepared = PreparedRows(kernel, X, dtype) if kernel.from_products else X
        values = None
        if kernel.from_products and n_problems > 1 and len(weight) <= _WHOLE_ROWS:
            values = KernelRows(kernel, prepared, dtype=np.float64, n_jobs=self.n_jobs).whole()
        return TrainingRows(kernel, X, prepared, values, weight, dtype, self.n_jobs)

    def _is_worth_computing_whole(self, X, n_problems):
        """Whether all values of a callable kernel are computed first: several problems share them if they fit."""
        if not isinstance(X, np.ndarray) and getattr(X, "format", None) != "csr":
            return True  # a list or a data frame: there is no other way to ask for some of its rows
        return n_problems > 1 and 8 * X.shape[0] ** 2 <= self.cache_size * _MEGABYTE

    def _gamma_of(self, X, weight):
        """Return the number that gamma stands for.

        "scale" is 1 / (n_features · variance of all values of X). Rows count by their weight, so that a row of weight
        two is the row twice and one of weight zero is absent, for the kernel as for the losses.
        """
        if self.kernel == "precomputed" or callable(self.kernel):
            return 0.0
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if self.gamma != "scale":
            return float(self.gamma)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = _variance(X, weight)
        if not np.isfinite(variance):
            raise ValueError(
                "The dual coefficients or intercepts are not finite: the variance of X, for gamma='scale', is not. "
                "Scale the features, or set gamma."
            )
        return float(1.0 / (X.shape[1] * variance)) if X.shape[1] * variance > _LEAST_VARIANCE else 1.0

    def _features(self, training):
        """Return the features of the training rows; None if the kernel was computed elsewhere."""
        return None if self.kernel == "precomputed" or callable(self.kernel) else training.X

    def _kernel(self):
        """Return the kernel of the parameters and of `_gamma`."""
        if callable(self.kernel):
            return Kernel("callable", function=partial(kernel_values, self.kernel))
        return Kernel(self.kernel, gamma=self._gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _settings(self, report, n_tasks):
        """Return the solver's settings; problems solved at the same time share the cache."""
        n_at_once = min(n_threads(self.n_jobs), n_tasks)
        return KernelSettings(
            **self._limits(report, n_tasks),
            cache_size=self.cache_size / n_at_once,
            shrinking=bool(self.shrinking),
            working_set=self.working_set,
        )

    def _train(self, problems):
        """Solve the problems, each stated when its turn comes; return a `SolvedProblem` for each.

        With a warm start they begin where those of the last fit ended, as far as these had as many variables.
        """
        solver = KERNEL_SOLVERS[self.solver]

        def train(problem, settings, start):
            if start is not None and start.shape != problem.start.shape:
                start = None
            solution = _sharpened(problem, settings, solver(problem, settings, start))
            coef, intercept, facts = problem.model(solution)
            beta = solution.beta
            facts = {
                **{name: float(value) for name, value in facts.items()},
                "nSV": int(np.count_nonzero(coef)),
                "nBSV": int(np.count_nonzero((beta != 0.0) & ((beta == problem.lower) | (beta == problem.upper)))),
                "iterations": int(solution.n_iter),
            }
            return SolvedProblem(coef, float(intercept), facts, solution)

        last = getattr(self, "_last_multipliers", []) if self.warm_start else []
        starts = [*last, *[None] * len(problems)][: len(problems)]
        return self._solve(one_by_one(train), problems, starts)

    def _keep_model(self, support, n_support, dual_coef, intercept, training):
        """Set the attributes that make the model, in scikit-learn's layout."""
        if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
            raise ValueError("The dual coefficients or intercepts are not finite: scale the features, or lower C.")
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.asarray(n_support, dtype=np.int32)
        self.dual_coef_, self.intercept_ = dual_coef, intercept
        if self._fit_rows is not None or training.kernel.name == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = training.X[support]
        if issparse(self.support_vectors_):
            container = csr_array if isinstance(self.support_vectors_, csr_array) else csr_matrix
            self.dual_coef_ = container(dual_coef)

    def _keep_solutions(self, trained, others=()):
        """Set the record of the model's problems; return all solutions, those of cross-validation (`others`) too."""
        solutions = [one.solution for one in trained if one.solution is not None]
        self.facts_ = [one.facts for one in trained]
        self._last_multipliers = [solution.beta for solution in solutions] if self.warm_start else []
        self._keep_record(solutions)
        solutions += [one.solution for one in others if one.solution is not None]
        self.fit_status_ = int(any(solution.status is not Status.CONVERGED for solution in solutions))
        return solutions

    def _not_calibrated(self, name):
        return NotFittedError(f"{name} is not available when fitted with probability=False: set it and fit again.")

    def _check_new_rows(self, X):
        """Return rows to predict, checked, dense or CSR as the model's support vectors allow."""
        check_is_fitted(self)
        self._check_unaltered()
        if callable(self.kernel):
            return X
        accept = False if self.kernel == "precomputed" else "csr"
        X = checked_rows(self, X, accept_sparse=accept, order="C", reset=False)
        return csr_array(X) if issparse(self.support_vectors_) and not issparse(X) else X

    def _check_unaltered(self):
        """Raise ValueError unless `dual_coef_`, `n_support_` and `support_vectors_` have as many support vectors."""
        n_columns, n_support = self.dual_coef_.shape[1], self.n_support_
        n_vectors = self.support_vectors_.shape[0] if self._kernel().from_products else n_columns
        if (n_support < 0).any() or not n_support.sum() == n_vectors == n_columns:
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: n_support_ is {n_support.tolist()} "
                f"for {n_vectors} support vectors and {n_columns} columns of dual_coef_. Fit the model again."
            )

    def _new_sums(self, X):
        """Return `_sums` of rows to predict, of a single output, and show how far it is."""
        X = self._check_new_rows(X)
        with self._showing("predicting", _num_samples(X)) as advance:
            return self._sums(X, advance=advance).ravel()

    @contextmanager
    def _showing(self, what, n_rows):
        """Within the block, a function that is called with numbers of rows and shows how far the work is."""
        with reporting(self.verbose) as report, report.task(what, n_rows, "rows") as task:
            yield task.advance

    def _sums(self, Z, **options):
        """Return Σ dual_coef K(support vector, z) of checked rows: (n_rows, n_outputs), as `kernel_scores` has it."""
        options["n_jobs"] = self.n_jobs
        coefficients = self.dual_coef_.toarray() if issparse(self.dual_coef_) else self.dual_coef_
        if self.kernel != "precomputed" and not callable(self.kernel):
            vectors = self.support_vectors_
            if issparse(Z) and not issparse(vectors):
                vectors = csr_array(vectors)
            return kernel_sums(self._kernel(), vectors, coefficients, Z, **options)
        n_training = _num_samples(self._fit_rows) if callable(self.kernel) else Z.shape[1]
        blocks = (self._values(part)[:, self.support_] for part in parts_of(Z, n_training))
        precomputed = Kernel("precomputed")
        return np.concatenate([kernel_sums(precomputed, None, coefficients, K, **options) for K in blocks])

    def _values(self, Z):
        """Return the kernel values of new rows against all training rows: given, or by the user's function."""
        return kernel_values(self.kernel, Z, self._fit_rows) if callable(self.kernel) else Z


def _sharpened(problem, settings, solution):
    """Return the solution of a small problem to the last digits, for some milliseconds.

    What is left open by a tolerance depends on the order of the rows and on how they are stored. Without it a weight of
    two gives the model of the row twice, and a sparse matrix that of a dense one. What pairs of multipliers could not
    solve is solved here.
    """
    if problem.K.n_rows > _FEW_ROWS:
        return solution
    if solution.status is Status.MAX_ITER and settings.max_iter is None:
        solution = KERNEL_SOLVERS["svmlight"](problem, settings, solution.beta)
    if solution.status is not Status.CONVERGED or settings.tol <= _LAST_DIGITS:
        return solution
    finer = replace(settings, tol=_LAST_DIGITS, stopping="kkt", max_iter=_SHARPENING_TURNS, callbacks=())
    sharp = KERNEL_SOLVERS["svmlight"](problem, finer, solution.beta)
    if not sharp.violation < solution.violation or sharp.gap > max(solution.gap, settings.tol):
        return solution
    history = np.concatenate([solution.history[:-1], sharp.history[-1:]])
    history[-1:][["iteration", "seconds", "passes"]] = solution.history[-1:][["iteration", "seconds", "passes"]]
    kept = {name: getattr(solution, name) for name in ("n_iter", "status", "solver", "n_computed")}
    return replace(sharp, history=history, **kept)


def _variance(X, weight):
    """Return the variance of all values of X, zeros of a sparse one included; rows count by their weights, if any."""
    if weight is None and not issparse(X):
        return float(X.var(dtype=np.float64))
    weight = np.ones(X.shape[0]) if weight is None else weight
    total = weight.sum() * X.shape[1]
    if issparse(X):
        mean = weight @ row_sums(X) / total
        return float(weight @ squared_norms(X) / total - mean**2)
    mean = weight @ X.sum(axis=1, dtype=np.float64) / total
    return float(weight @ ((X - mean) ** 2).sum(axis=1) / total)

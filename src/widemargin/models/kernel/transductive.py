"""`TransductiveSVC`: support vector classification that also uses rows without a label, as SVM-light's transduction.

    minimise ½|w|² + Σ_L C_i max(0, 1 − y_i f(x_i)) + Σ_U C_u(y_i) max(0, 1 − y_i f(x_i)),    f(x) = <w, φ(x)> + b

over w, b and the labels y_i = ±1 of the unlabelled rows U, of which a given share p is positive. L are the labelled
rows, with C_i = C class_weight[y_i]. C_u is C_unlabeled for negative rows, and C_unlabeled (1 − p) / p for positive
ones, so that either class of unlabelled rows has about the same weight in all. See `transduction` for the method.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight

from widemargin._runtime.argument_types import Rows
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.models.argument_types import Callbacks, ClassWeight, Gamma, KernelChoice
from widemargin.models.inputs import check_class_weight, encode_labels
from widemargin.models.kernel.base import MAX_C, KernelModel
from widemargin.models.kernel.classifier import KernelClassifier
from widemargin.models.kernel.full_precision import refined
from widemargin.models.kernel.solved_problem import SolvedProblem, solved_problem
from widemargin.models.kernel.transduction import STAGE, PartlyLabelled, Transduction, transduce
from widemargin.models.multiclass import order_of_first, pairs_of
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.models.solved_model import POSITIVE, one_by_one
from widemargin.problems.classification import c_svc
from widemargin.solvers.registry import KERNEL_SOLVERS

_MAX_ROWS_TO_HOLD = 4096  # rows up to which the kernel matrix is computed once for all problems, if the cache has room
_BYTES_PER_MEGABYTE = 1 << 20
_NOT_OFFERED = ("probability", "stopping", "checkpoint", "warm_start", "random_state")  # parameters of other machines


@dataclass(frozen=True)
class _Solved:
    """What `_solve` returns: the Transduction and the SolvedProblem of its final labels."""

    transduction: Transduction
    problem: SolvedProblem

    @property
    def solution(self):
        """The KernelSolution."""
        return self.problem.solution

    @property
    def status(self):
        """Why the last solver stopped."""
        return self.problem.status


class TransductiveSVC(KernelClassifier):
    """Support vector classification of two classes from labelled and unlabelled rows (Joachims, 1999).

    The labels of the unlabelled rows are chosen together with the model, so that few rows of either class are near the
    boundary. Given the labels, the problem is that of `SVC`, and its optimum is certified by `gap_`. Which labels are
    best is a combinatorial problem, and the model is a local minimum: at its decision function, no exchange of the
    labels of two unlabelled rows lowers the objective, up to `tol`. The objective is never above that of the machine
    of the labelled rows, `inductive_objective_`. Nothing is proved about other labels, nor that unlabelled rows improve
    predictions: they do if the boundary between the classes runs where rows are few, and may do harm if it does not, or
    if `positive_share` is wrong.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses of labelled rows against ½|w|².
    unlabeled : label or None, default=None
        The label in y of rows whose class is not known: 0 in files of SVM-light, −1 in scikit-learn's semi-supervised
        estimators. None: every row has a class. It has no other default, since −1 and 0 may both be classes.
    positive_share : float, default=None
        The share of the unlabelled rows that belongs to the positive class, the second of `classes_`; above 0 and below
        1. None is the share among the labelled rows.
    C_unlabeled : float, default=None
        Weight of the losses of unlabelled rows that are called negative; that of positive ones is multiplied by
        (1 − share) / share. None is C, as in SVM-light.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, as of `SVC`. With "precomputed", X is the matrix K(X, X) of all rows.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid". "scale" is 1 / (n_features * X.var()) of all rows; "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether to leave variables that seem to stay at their bounds out of some iterations. The result is checked on
        all variables.
    tol : float, default=1e-3
        Tolerance of the optimality conditions of each problem, as of `SVC`; two rows exchange their labels if the order
        of their decision values is wrong by more than this.
    cache_size : float, default=200
        Megabytes of memory for kernel values.
    class_weight : dict, "balanced" or None, default=None
        Factor of each class's weights, by class label; for labelled rows only.
    verbose : bool or int, default=False
        1 shows progress: bars on a terminal or in a notebook, lines on standard error elsewhere. 2 shows more lines.
    max_iter : int, default=-1
        Largest number of iterations of the solver for each of the problems, some thirty or more; -1 is no limit.
    solver : {"auto", "svmlight", "smo"}, default="auto"
        "svmlight" optimises working sets of many variables, "smo" two variables at a time as LIBSVM does.
    working_set : int or None, default=None
        Number of variables in a working set of "svmlight"; None lets the solver choose.
    max_seconds : float or None, default=None
        Stop after about this many seconds and keep the better of the machine of the labelled rows and the model found
        until then.
    n_jobs : int or None, default=None
        Number of threads over rows. None is all cores where the work is worth it, and one within workers of joblib or
        Dask; -1 is all cores.
    callbacks : callable or list of callables, default=None
        Called after each iteration of each problem with a `Progress`. A callback that returns a true value stops the
        fit.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        The label of each row: that of y, or the one that was chosen for an unlabelled row.
    positive_share_ : float
        The share of unlabelled rows that was to be positive; their number is rounded.
    objective_ : float
        The objective at the model and `transduction_`.
    inductive_objective_ : float
        The same objective at the machine of the labelled rows, with the labels that are best for its decision values.
        Absent if all rows are labelled.
    gap_ : float
        Relative duality gap, given `transduction_`: no other function has an objective with these labels that is lower
        by more than this fraction.
    n_exchanges_ : int
        Number of pairs of rows that exchanged their labels on the way.
    stages_ : structured ndarray
        Each problem that was solved after that of the labelled rows: factor of C_unlabeled, how many unlabelled rows
        had a positive decision value before and how many pairs exchanged their labels, iterations, seconds, primal
        (with this factor), gap.
    classes_ : ndarray of shape (2,)
        The class labels, ascending.
    class_weight_ : ndarray of shape (2,)
        Factor of C for each class.
    support_ : ndarray of shape (n_SV,)
        Indices of the rows that are support vectors, by their label in `transduction_`, then ascending.
    support_vectors_ : ndarray or csr of shape (n_SV, n_features)
        Those rows; empty if the kernel is precomputed or callable.
    n_support_ : ndarray of int32 of shape (2,)
        Number of support vectors of each class.
    dual_coef_ : ndarray or csr of shape (1, n_SV)
        Coefficients of the support vectors in the decision function.
    intercept_ : ndarray of shape (1,)
        Constant of the decision function.
    coef_ : ndarray or csr of shape (1, n_features)
        Weights of the features; linear kernel only.
    history_ : structured ndarray
        Each measurement of the last problem: iteration, seconds, passes, primal, dual, gap.
    n_iter_ : ndarray of shape (1,)
        Iterations of the solver for all problems together.
    solver_ : str
        The solver that ran.
    status_ : str
        Why the last solver stopped.
    fit_status_ : int
        0 if the tolerance was reached, 1 if not.
    facts_ : list of dict
        What LIBSVM prints about the last problem: obj, rho, nSV, nBSV, iterations.
    shape_fit_ : tuple
        Shape of X.
    n_features_in_ : int
        Number of features; not with a callable kernel.
    feature_names_in_ : ndarray
        Names of the features, if X had string column names.

    Examples
    --------
    Two clusters of 50 rows, of which two rows have a label:

    >>> import numpy as np
    >>> from widemargin import TransductiveSVC
    >>> X = np.random.default_rng(0).normal(scale=0.5, size=(100, 2))
    >>> X[50:] += [0.0, 3.0]
    >>> y = np.zeros(100, dtype=int)
    >>> y[[0, 50]] = -1, 1
    >>> model = TransductiveSVC(kernel="linear", unlabeled=0).fit(X, y)
    >>> int(np.sum(model.transduction_[50:] == 1)), model.objective_ <= model.inductive_objective_
    (50, True)
    """

    _parameter_constraints: dict = {
        **{name: rule for name, rule in KernelModel._parameter_constraints.items() if name not in _NOT_OFFERED},
        "C": [POSITIVE],
        "unlabeled": [Real, str, "boolean", None],
        "positive_share": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "C_unlabeled": [POSITIVE, None],
        "class_weight": [None, dict, StrOptions({"balanced"})],
    }
    # What other kernel machines have as parameters.
    probability = calibration = random_state = None
    predict_by, decision_function_shape, stopping = "decision", "ovr", "kkt"
    break_ties = warm_start = False

    transduction_: NDArray[Any]
    positive_share_: float
    inductive_objective_: float
    n_exchanges_: int
    stages_: NDArray[np.void]

    def __init__(
        self,
        *,
        C: float = 1.0,
        unlabeled: Any = None,
        positive_share: float | None = None,
        C_unlabeled: float | None = None,
        kernel: KernelChoice = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: ClassWeight = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        solver: str = "auto",
        working_set: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callbacks: Callbacks = None,
    ) -> None:
        self.C = C
        self.unlabeled = unlabeled
        self.positive_share = positive_share
        self.C_unlabeled = C_unlabeled
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.working_set = working_set
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Rows, y: ArrayLike) -> Self:  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            The labelled rows and the unlabelled ones. float32 stays float32, anything else becomes float64.
        y : array-like of shape (n_samples,)
            Two classes, and `unlabeled` for rows whose class is not known.

        Returns
        -------
        self
        """
        X, label = self._check_partly_labelled(X, y)
        training = self._training_rows(X, np.ones(len(label)), n_problems=1 + int((label < 0).any()))
        if (label < 0).any():
            label, solved = self._transduced(training, label)
        else:
            solved = self._all_labelled(training, label)
        self._keep_order(order_of_first(label, 2))
        self._keep(training, label, [pairs_of(training.present, label, 2)], [[solved]])
        self.transduction_ = self.classes_[label]
        return self

    def _check_partly_labelled(self, X, y):
        """Return rows and labels 0 and 1, −1 for unlabelled rows. Sets `classes_` and `class_weight_`."""
        check_class_weight(self.class_weight)
        X, y = self._check_rows(X, y)
        known = np.ones(len(y), bool)
        if self.unlabeled is not None:
            known = np.array([one != self.unlabeled for one in y.tolist()], bool)
        self.classes_, of_known = self._encoded(y, known)
        label = np.full(len(y), -1, np.intp)
        label[known] = of_known
        self._weigh(X, None)  # sets gamma
        self.class_weight_ = np.ones(2)
        if self.class_weight is not None:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y[known])
        if not self.class_weight_.all():
            raise ValueError("class_weight must be positive for both classes: a machine needs rows of each.")
        return X, label

    def _encoded(self, y, known):
        """Return the two classes and labels 0 and 1 of the rows that are labelled; ValueError if there are not two."""
        if not known.all() and len(set(y[known].tolist())) < 2:
            raise ValueError(
                f"y must hold 2 classes besides unlabeled={self.unlabeled!r}, the label of rows whose class is not "
                f"known, got {sorted(set(y[known].tolist()))}."
            )
        classes, label = encode_labels(y[known])
        if len(classes) > 2:
            way = "if one of them marks rows whose class is not known, name it by unlabeled" if known.all() else ""
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y must hold 2 "
                f"classes, got {len(classes)}{'; ' if way else ''}{way}."
            )
        return classes, label

    def _all_labelled(self, training, label):
        """Return the SolvedProblem of `SVC`: there is no row to be labelled."""
        for name in ("inductive_objective_", "positive_share_"):
            vars(self).pop(name, None)
        sign, cost = 1.0 - 2.0 * label, self._costs_of(self.class_weight_[label])
        (solved,) = self._train([lambda: c_svc(training.matrix(training.present), sign, cost)])
        self.n_exchanges_, self.stages_ = 0, np.empty(0, dtype=STAGE)
        return solved

    def _transduced(self, training, label):
        """Return labels of all rows and the SolvedProblem with these labels. Sets what describes how it was found."""
        known, solver = label >= 0, KERNEL_SOLVERS[self.solver]
        share = float(np.mean(label[known])) if self.positive_share is None else float(self.positive_share)

        def solve(problem, settings, start):
            return refined(problem, settings, solver(problem, settings, start))

        def search(rows, settings, start):
            found = transduce(rows, solve, settings)
            return _Solved(found, solved_problem(found.problem, found.solution))

        (solved,) = self._solve(one_by_one(search), [lambda: self._stated(training, label, share)], [None])
        found = solved.transduction
        self.positive_share_, self.inductive_objective_ = share, float(found.inductive)
        self.n_exchanges_, self.stages_ = found.n_exchanges, found.stages
        self.stages_["above"] = int(np.sum(~known)) - self.stages_["above"]  # of the second class, as `classes_` has it
        return (found.sign < 0.0).astype(np.intp), solved.problem

    def _stated(self, training, label, share):
        """Return the PartlyLabelled rows; as in `SVC`, the sign of the first class is +1."""
        n_unlabelled = int(np.sum(label < 0))
        of_negative = min(float(self.C if self.C_unlabeled is None else self.C_unlabeled), MAX_C)
        return PartlyLabelled(
            self._matrix(training),
            sign=np.where(label < 0, 0.0, 1.0 - 2.0 * label),
            cost=self._costs_of(self.class_weight_[label]),
            n_above=n_unlabelled - int(np.floor(share * n_unlabelled + 0.5)),
            cost_above=of_negative,
            cost_below=of_negative * (1.0 - share) / share,
        )

    def _matrix(self, training):
        """Return the KernelRows of all rows, computed once for all problems if they are not too many."""
        K, n_rows = training.matrix(training.present), len(training.weight)
        has_room = n_rows <= _MAX_ROWS_TO_HOLD and 8 * n_rows**2 <= self.cache_size * _BYTES_PER_MEGABYTE
        if K.held is not None or not training.kernel.from_products or not has_room:
            return K
        facts = {"bound": K.bound, "diagonal": K.diagonal, "n_jobs": self.n_jobs}
        return KernelRows(Kernel("precomputed"), K.whole(), **facts)

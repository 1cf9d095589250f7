"""Decision values of training rows by machines that were not trained on them, from the machine of all rows.

Probabilities are fitted to such values. Cross-validation would provide them at the price of a fit for each fold. Here
they follow from the dual variables of one fit, f(x) = Σ coef_i K(x_i, x) + b.

A row that is not a support vector has no influence: left out, its decision value remains f(x_i). For a support vector,

    f without row i, at x_i:   f(x_i) − coef_i S_i²

where S_i² is the squared distance, in the space of the kernel, of φ(x_i) from the affine hull of the other free support
vectors (the span of Chapelle and Vapnik). It is exact if the other support vectors at bound stay at bound, the free
ones free and the other rows without influence. With F the free support vectors, v_i = (K_Fi, 1) and
M = [[K_FF, 1], [1', 0]],

    S_i² = 1 / (M⁻¹)_ii for free support vectors,   S_i² = K_ii − v_i' M⁻¹ v_i for those at bound

so that one Cholesky factor of K_FF gives the values of all rows. Where steps are large, rows near the margin do become
support vectors, or free, and f moves less: the one that takes over most is taken into account (`problems.takeover`).
With large costs single values are still far too large. Values are therefore clipped to the range of f on the training
rows. Rows of a regression do not take over.

With thousands of support vectors, the factor would take longer than the fit, and a sample of rows is enough to fit a
function of one variable. Then a random part of the support vectors is left out together, the problem is solved once
more without them, starting from the dual variables of all rows, and only this part has decision values.

A machine on a basis is a linear machine in the features z(x) of `kernels.basis`, with K = Z Z'. It has at most one free
support vector more than basis points, except for the tolerance of the solver; decision values are those of a sample of
rows, for each class.

Rows that are equal and have the same sign are left out together. A row of weight two thus gives the same values as the
row twice.

References
----------
Chapelle and Vapnik, Model selection for support vector machines, NIPS 12 (2000).
Opper and Winther, Gaussian processes and SVM: mean field and leave-one-out, in Advances in Large Margin Classifiers
(2000).
Joachims, Estimating the generalization performance of an SVM efficiently, ICML (2000).
"""

from dataclasses import dataclass, replace

import numpy as np

from widemargin._runtime.threads import single_threaded_blas
from widemargin.kernels.rows import add_weighted_rows, submatrix
from widemargin.models.kernel.copies import first_copies
from widemargin.models.kernel.spans import AT_BOUND, MIN_FREE, RIDGE, may_take_over, without_each
from widemargin.problems.classification import c_svc
from widemargin.problems.left_out import SmallMachine, leave_each_out, memory_for

_MAX_SUPPORT_VECTORS_AT_ONCE = 256  # that one compiled call leaves out; with more, LAPACK is faster
_MAX_SUPPORT_VECTORS_TO_FACTOR = 3000
_MAX_LEFT_OUT, _LARGEST_PART_LEFT_OUT = 1500, 1 / 3  # support vectors that are left out together
_MAX_OTHER_ROWS = 10_000  # rows without influence that are used
_MAX_ENTRIES_AT_ONCE = 1 << 23  # kernel values of all support vectors with all rows, up to which they are kept
_MAX_ROWS_PER_CLASS = 5000  # of a machine on a basis, that have decision values
_MAX_FREE_ON_BASIS = 4000  # that span the affine hull; more are due to the tolerance of the solver
_MAX_ROWS_TO_MERGE = 200_000  # of a machine on a basis
_HALF_WIDTH = 0.01  # of margins around 1 whose rows are free, where the solver has no dual variables


@dataclass(frozen=True)
class BinaryMachine:
    """A machine of two classes: the numbers of its rows among all, and for each row sign, weight, cost and coefficient.

    `weight` is that of the row in the distribution of the data, `cost` the largest possible |coefficient|.
    """

    rows: np.ndarray
    sign: np.ndarray
    weight: np.ndarray
    cost: np.ndarray
    coef: np.ndarray
    intercept: float

    @property
    def support(self):
        """The positions of the support vectors."""
        return np.flatnonzero(self.coef)

    def some(self, chosen):
        """Return the same machine with these rows only."""
        arrays = {name: getattr(self, name)[chosen] for name in ("rows", "sign", "weight", "cost", "coef")}
        return replace(self, **arrays)

    def merged(self, first_copy):
        """Return the machine in which equal rows of one sign are one row; `first_copy` is that of `first_copies`."""
        repeated = np.empty(0, np.intp) if first_copy is None else np.flatnonzero(first_copy.is_repeated[self.rows])
        if not len(repeated):
            return self
        place = 2 * first_copy.number[self.rows[repeated]] + (self.sign[repeated] > 0.0)
        first = {}
        moved = [(i, into) for k, i in zip(place.tolist(), repeated.tolist(), strict=True)
                 if (into := first.setdefault(k, i)) != i]  # fmt: skip
        if not moved:
            return self
        weight, cost, coef = sums = self.weight.copy(), self.cost.copy(), self.coef.copy()
        kept = np.ones(len(self.rows), bool)
        for i, into in moved:  # few, as a rule
            kept[i] = False
            for values in sums:
                values[into] += values[i]
        return BinaryMachine(self.rows[kept], self.sign[kept], weight[kept], cost[kept], coef[kept], self.intercept)


def first_copies_on_basis(X):
    """Return `first_copies`; None if there are too many rows to look for them."""
    return first_copies(X) if X.shape[0] <= _MAX_ROWS_TO_MERGE else None


def may_sample(n_rows):
    """Return whether decision values may be those of a random sample of so many rows, so that a seed is needed."""
    limits = _MAX_SUPPORT_VECTORS_TO_FACTOR, _MAX_OTHER_ROWS, _MAX_ROWS_PER_CLASS, _MAX_FREE_ON_BASIS
    return n_rows > min(limits)


def out_of_sample(machine, training, solve, seed):
    """Return decision values of rows that were left out, with the signs and weights of these rows.

    Parameters
    ----------
    machine : BinaryMachine
        With equal rows merged.
    training : TrainingRows
    solve : function
        solve(problem, start=...) returns the KernelSolution of a KernelQP, from dual variables to start with.
    seed : int
        Seed of the choice of rows, if there are too many of them.

    Returns
    -------
    decision, sign, weight : ndarray
    """
    support = machine.support
    n_others = len(machine.rows) - len(support)
    if 0 < len(support) <= _MAX_SUPPORT_VECTORS_AT_ONCE and not may_take_over(len(machine.rows)):
        return _leave_each_out(machine, training), machine.sign, machine.weight
    if len(support) <= _MAX_SUPPORT_VECTORS_TO_FACTOR and n_others <= _MAX_OTHER_ROWS:
        return _leave_one_out(machine, training.matrix(machine.rows)), machine.sign, machine.weight
    random = np.random.RandomState(seed)  # which takes longer to make than to use
    others, factor = _sample(np.flatnonzero(machine.coef == 0.0), _MAX_OTHER_ROWS, random)
    if len(support) <= _MAX_SUPPORT_VECTORS_TO_FACTOR:
        kept = machine.some(np.sort(np.concatenate([support, others])))
        decision = _leave_one_out(kept, training.matrix(kept.rows))
        return decision, kept.sign, kept.weight * np.where(kept.coef == 0.0, factor, 1.0)
    part = min(_LARGEST_PART_LEFT_OUT, _MAX_LEFT_OUT / len(support))
    of_classes = [support[machine.sign[support] == side] for side in (1.0, -1.0)]
    samples = [_sample(members, int(np.ceil(part * len(members))), random) for members in of_classes]
    left_out = np.concatenate([chosen for chosen, _ in samples])
    decision = _leave_together(machine, training, solve, left_out), decision_values(machine, training, others)
    chosen, sizes = np.concatenate([left_out, others]), [*(len(chosen) for chosen, _ in samples), len(others)]
    weight = machine.weight[chosen] * np.repeat([*(one for _, one in samples), factor], sizes)
    return np.concatenate(decision), machine.sign[chosen], weight


def out_of_sample_on_basis(machine, features, weights, random, distance_from_corner=None):
    """Return positions of rows of a machine on a basis, their decision values without them, and their weights.

    Parameters
    ----------
    machine : BinaryMachine
        With equal rows merged.
    features : function
        features(rows) returns the features of rows, given by ascending numbers.
    weights : ndarray
        Of the features.
    random : RandomState
        Chooses rows, if there are too many of them.
    distance_from_corner : function, default=None
        distance_from_corner(f, positions) returns how far the decision values of rows are from the corner of their
        loss; None is that of classes, |1 − sign f|.

    Returns
    -------
    positions, decision, weight : ndarray
    """
    sample, factor = _sample_of_classes(machine, random)
    is_free = (machine.coef != 0.0) & (np.abs(machine.coef) < AT_BOUND * machine.cost)
    hull, _ = _sample(np.flatnonzero(is_free), _MAX_FREE_ON_BASIS, random)
    used = np.union1d(sample, hull)
    used = used[np.argsort(machine.rows[used])]
    kept, Z = machine.some(used), features(machine.rows[used])
    f = Z @ weights + machine.intercept
    in_hull, in_sample = np.isin(used, hull), np.isin(used, sample)
    if np.count_nonzero(in_hull) < MIN_FREE:
        far = np.abs(1.0 - kept.sign * f) if distance_from_corner is None else distance_from_corner(f, used)
        in_hull[np.argsort(far, kind="stable")[:MIN_FREE]] = True

    def block(rows, columns):
        return Z[rows] @ Z[columns].T

    takes_over = distance_from_corner is None
    with single_threaded_blas():
        left_out = without_each(kept, f, block, np.einsum("ij,ij->i", Z, Z), is_free=in_hull, takes_over=takes_over)
    weight = kept.weight * np.where(kept.sign > 0.0, factor[1], factor[0])
    return used[in_sample], left_out[in_sample], weight[in_sample]


def values_of_pair_on_basis(features, machines, k, pair, seed):
    """Return decision values, signs and weights of rows of a pair that were left out of machine k on a basis.

    `machines` are pairs of a BinaryMachine and the weights of its features; without a machine, the weights of rows.
    """
    machine, weights = machines[k]
    if machine is None:
        return np.full(len(pair.rows), pair.constant), pair.sign, weights
    positions, decision, weight = out_of_sample_on_basis(machine, features, weights, np.random.RandomState(seed))
    return decision, machine.sign[positions], weight


def _sample_of_classes(machine, random):
    """Return positions of rows of both signs, and how many rows each of them stands for."""
    sides = [np.flatnonzero(machine.sign < 0.0), np.flatnonzero(machine.sign > 0.0)]
    samples = [_sample(positions, _MAX_ROWS_PER_CLASS, random) for positions in sides]
    return np.concatenate([chosen for chosen, _ in samples]), [factor for _, factor in samples]


def coefficients_of_losses(excess, side, cost, unit=1.0):
    """Return approximate dual variables of hinge losses, cost max(0, excess), for solvers that have none.

    `side` is ±1, that of the dual variables, and `unit` the size of decision values.
    """
    return side * cost * np.clip(0.5 + excess / (2.0 * _HALF_WIDTH * unit), 0.0, 1.0)


def _sample(positions, size, random):
    """Return at most `size` of the positions, ascending, and how many each of them stands for."""
    if len(positions) <= size:
        return positions, 1.0
    return np.sort(random.permutation(positions)[:size]), len(positions) / size


def decision_values(machine, training, chosen):
    """Return f of the rows at some positions of a machine."""
    support = machine.support
    options = machine.rows[support], machine.coef[None, support], machine.rows[chosen]
    return training.sums(*options).ravel() + machine.intercept if len(chosen) else np.empty(0)


def _leave_together(machine, training, solve, left_out):
    """Return the decision values of the rows that are left out, by the machine that is trained on the others."""
    rest = machine.some(np.setdiff1d(np.arange(len(machine.rows)), left_out))
    if (rest.sign == rest.sign[0]).all():  # there is no other class any more
        return np.full(len(left_out), rest.sign[0])
    problem = c_svc(training.matrix(rest.rows), rest.sign, rest.cost)
    function = problem.model(solve(problem, start=_balanced(rest.coef)))
    new = replace(rest, coef=function.coef, intercept=float(function.intercept))
    support = new.support
    sums = training.sums(new.rows[support], new.coef[None, support], machine.rows[left_out])
    return sums.ravel() + new.intercept


def _balanced(coef):
    """Return coefficients with the sum zero: those of the class with the larger sum are scaled down."""
    total = coef.sum()
    is_larger = coef * total > 0.0
    size = np.abs(coef[is_larger]).sum()
    return np.where(is_larger, coef * (1.0 - abs(total) / size), coef) if size > 0.0 else coef


def _leave_each_out(machine, training):
    """Return what `_leave_one_out` does, of a machine with few support vectors and rows."""
    support, f = machine.support.view(np.uint64), np.empty(len(machine.rows))
    values, diagonal = training.values_of(machine.rows, support)
    small = SmallMachine(machine.sign, machine.cost, machine.coef, diagonal, support, values, machine.intercept)
    leave_each_out(small, AT_BOUND, RIDGE[values.dtype], memory_for(len(support)), f)
    return f


def _leave_one_out(machine, K):
    """Return the decision value of each row as if it had been left out; K are the KernelRows of these rows."""
    support = machine.support
    f = np.full(len(machine.rows), machine.intercept)
    if not len(support):  # the solver was stopped before its first step
        return f
    if len(support) * len(f) <= _MAX_ENTRIES_AT_ONCE:
        values, place = np.empty((len(support), len(f)), K.dtype), np.empty(len(f), np.intp)
        K.fill(support, K.columns(), values, np.arange(len(support)))
        place[support] = np.arange(len(support))
        add_weighted_rows(values, place[support], machine.coef[support], 0, len(f), f)
        return without_each(machine, f, lambda rows, columns: submatrix(values, place[rows], columns), K.diagonal)

    def block(rows, columns):
        part = np.empty((len(rows), len(columns)), K.dtype)
        K.fill(rows, K.columns(columns), part, np.arange(len(rows)))
        return part

    K.add(support, machine.coef[support], K.columns(), f)
    return without_each(machine, f, block, K.diagonal)

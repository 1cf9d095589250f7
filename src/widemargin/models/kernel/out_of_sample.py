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

so that one Cholesky factor of K_FF gives the values of all rows. With large costs the sets of free and bounded rows do
change, and single values are far too large. Values are therefore clipped to the range of f on the training rows.

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
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.sparse import issparse

from widemargin._runtime.threads import single_threaded_blas
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.problems.classification import c_svc

_MAX_SUPPORT_VECTORS_TO_FACTOR = 3000
_MAX_LEFT_OUT, _LARGEST_PART_LEFT_OUT = 1500, 1 / 3  # support vectors that are left out together
_MAX_OTHER_ROWS = 10_000  # rows without influence that are used
_MAX_ENTRIES_AT_ONCE = 1 << 18  # kernel values of all support vectors with all rows, up to which they are kept
_AT_BOUND = 1.0 - 1e-6  # of the cost
_RIDGE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}  # by precision of K, relative to its diagonal
_RIDGE_FACTOR = 100.0  # if the kernel matrix is not positive definite
_MIN_FREE = 2  # otherwise the affine hull is empty
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
        if first_copy is None or not first_copy.is_repeated[self.rows].any():
            return self
        place = 2 * first_copy.number[self.rows] + (self.sign > 0.0)
        _, first, group = np.unique(place, return_index=True, return_inverse=True)
        order = np.argsort(first)  # the rows remain in their order
        rank = np.argsort(order)
        sums = {name: np.bincount(rank[group], getattr(self, name)) for name in ("weight", "cost", "coef")}
        return replace(self.some(first[order]), **sums)


def first_copies_on_basis(X):
    """Return `first_copies`; None if there are too many rows to look for them."""
    return first_copies(X) if X.shape[0] <= _MAX_ROWS_TO_MERGE else None


class Copies(NamedTuple):
    """For each row, the number of the first row that is equal to it, and whether any other row is."""

    number: np.ndarray
    is_repeated: np.ndarray


def first_copies(X):
    """Return the Copies of rows; None if all rows are different.

    Rows of Python objects, which a callable kernel may have, count as different.
    """
    if not isinstance(X, RowBlocks) and X.dtype == object:
        return None
    number = {}
    first = np.array([number.setdefault(content, i) for i, content in enumerate(_contents(X))])
    return None if len(number) == len(first) else Copies(first, np.bincount(first, minlength=len(first))[first] > 1)


def _contents(X):
    """Yield the numbers of each row as bytes."""
    if isinstance(X, RowBlocks):
        for part, _ in X:
            yield from _contents(part)
        return
    if issparse(X):
        for begin, end in pairwise(X.indptr.tolist()):
            yield X.indices[begin:end].tobytes() + X.data[begin:end].tobytes()
        return
    content, width = memoryview(np.ascontiguousarray(X).reshape(-1).view(np.uint8)), X.nbytes // len(X)
    for i in range(len(X)):
        yield content[i * width : (i + 1) * width].tobytes()


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
    is_free = (machine.coef != 0.0) & (np.abs(machine.coef) < _AT_BOUND * machine.cost)
    hull, _ = _sample(np.flatnonzero(is_free), _MAX_FREE_ON_BASIS, random)
    used = np.union1d(sample, hull)
    used = used[np.argsort(machine.rows[used])]
    kept, Z = machine.some(used), features(machine.rows[used])
    f = Z @ weights + machine.intercept
    in_hull, in_sample = np.isin(used, hull), np.isin(used, sample)
    if np.count_nonzero(in_hull) < _MIN_FREE:
        far = np.abs(1.0 - kept.sign * f) if distance_from_corner is None else distance_from_corner(f, used)
        in_hull[np.argsort(far, kind="stable")[:_MIN_FREE]] = True
    free, bound = np.flatnonzero(in_hull), np.flatnonzero(~in_hull & in_sample & (kept.coef != 0.0))
    with single_threaded_blas():
        values = Z[free] @ Z[np.concatenate([free, bound])].T
    left_out = _without_each(kept, f, (free, bound), values, np.einsum("ij,ij->i", Z[bound], Z[bound]))
    weight = kept.weight * np.where(kept.sign > 0.0, factor[1], factor[0])
    return used[in_sample], left_out[in_sample], weight[in_sample]


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


def _leave_one_out(machine, K):
    """Return the decision value of each row as if it had been left out; K are the KernelRows of these rows."""
    support = machine.support
    f = np.full(len(machine.rows), machine.intercept)
    if not len(support):  # the solver was stopped before its first step
        return f
    if len(support) * len(f) <= _MAX_ENTRIES_AT_ONCE:
        values = np.empty((len(support), len(f)), K.dtype)
        K.fill(support, K.columns(), values, np.arange(len(support)))
        f += machine.coef[support] @ values
        free, bound = _free_and_bound(machine, f)
        values = values[np.ix_(np.searchsorted(support, free), np.concatenate([free, bound]))]
    else:
        K.add(support, machine.coef[support], K.columns(), f)
        free, bound = _free_and_bound(machine, f)
        order = np.concatenate([free, bound])
        values = np.empty((len(free), len(order)), K.dtype)
        K.fill(free, K.columns(order), values, np.arange(len(free)))
    return _without_each(machine, f, (free, bound), values, K.diagonal[bound])


def _without_each(machine, f, order, values, diagonal):
    """Return f, and of support vectors their decision values without them; see `squared_spans`."""
    order, left_out = np.concatenate(order), f.copy()
    left_out[order] -= machine.coef[order] * squared_spans(values, diagonal)
    return np.clip(left_out, f.min(), f.max())


def _free_and_bound(machine, f):
    """Return the positions of free support vectors, and of those at bound.

    If fewer than two are free, the two with margins closest to 1 are taken as free.
    """
    support = machine.support
    is_free = np.abs(machine.coef[support]) < _AT_BOUND * machine.cost[support]
    if np.count_nonzero(is_free) < _MIN_FREE:
        distance = np.abs(1.0 - (machine.sign * f)[support])
        is_free[np.argsort(distance, kind="stable")[:_MIN_FREE]] = True
    return support[is_free], support[~is_free]


def squared_spans(values, diagonal):
    """Return S² of the free support vectors, then of those at bound.

    Parameters
    ----------
    values : ndarray of shape (n_free, n_free + n_bound)
        Kernel values of the free support vectors, with themselves and with those at bound.
    diagonal : ndarray of shape (n_bound,)
        K(x, x) of the support vectors at bound.

    Returns
    -------
    ndarray of shape (n_free + n_bound,)
    """
    n_free = len(values)
    with single_threaded_blas():
        inverse = _inverse_factor(values[:, :n_free])
        ones = inverse.sum(axis=1)  # L⁻¹ 1, where K_FF = L L'
        total = ones @ ones
        inverse_diagonal = np.einsum("ij,ij->j", inverse, inverse) - (ones @ inverse) ** 2 / total
        of_bound = inverse @ values[:, n_free:]
        squares = np.einsum("ij,ij->j", of_bound, of_bound)
        distance = diagonal - squares + (1.0 - ones @ of_bound) ** 2 / total
    of_free = 1.0 / np.maximum(inverse_diagonal, np.finfo(np.float64).tiny)
    return np.concatenate([of_free, np.maximum(distance, 0.0)])


def _inverse_factor(K):
    """Return L⁻¹, where K + ridge I = L L'; the ridge is increased until K + ridge I is positive definite."""
    ridge = _RIDGE[K.dtype] * max(float(K.diagonal().max()), np.finfo(np.float64).tiny)
    while True:
        regular = np.array(K, dtype=np.float64, order="F")
        np.einsum("ii->i", regular)[:] += ridge
        factor, is_failure = dpotrf(regular, lower=1, clean=1, overwrite_a=1)
        if not is_failure:
            return dtrtri(factor, lower=1, overwrite_c=1)[0]
        ridge *= _RIDGE_FACTOR

"""One-against-one classification: one binary problem for each pair of classes; prediction by majority vote.

Pairs are ordered (0, 1), (0, 2), ..., (1, 2), ...; a positive decision value is a vote for the first class of the pair.
Support vectors are grouped by class, and their coefficients in all pairs are stored in a table with n_classes − 1 rows,
as in LIBSVM: the coefficient of a support vector of class c in the pair with class o is in row o − 1 if o > c, and in
row o if o < c.

All pairs use the same kernel values of a new row z. `kernel_scores` computes S[z, c, k] = Σ table[k, i] K(x_i, z) over
the support vectors i of class c, and the decision value of pair (i, j) is S[z, i, j − 1] + S[z, j, i] + intercept.

References
----------
Knerr, Personnaz and Dreyfus, Single-layer learning revisited: a stepwise procedure for building and training a neural
network (1990).
Chang and Lin, LIBSVM: a library for support vector machines, ACM TIST 2 (2011), section 7.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations

import numpy as np

from widemargin.problems.pair_votes import put_pair_decisions, put_winners

_FIRST_ROWS = 256  # among which the order of classes is looked for first


@dataclass(frozen=True)
class Pair:
    """Two classes: the numbers of their rows, the sign of each, +1 for the first class, else −1, and how many are +1.

    The rows are those of the first class, then those of the second, so that the parts of a kernel matrix sorted by
    class are contiguous; if there are no other classes, they are in the order of the data.
    """

    first: int
    second: int
    rows: np.ndarray
    sign: np.ndarray
    n_first: int

    @property
    def has_both(self):
        """Whether there are rows of both classes; otherwise the pair has no problem to solve."""
        return 0 < self.n_first < len(self.sign)

    @property
    def constant(self):
        """The decision value if a class is absent, as in LIBSVM: ±1 for the class that is present, 0 if none is."""
        return float(np.sign(2 * self.n_first - len(self.sign)))


def pairs_of(rows, label, n_classes):
    """Return the Pairs of all classes, restricted to the given row numbers, which must be ascending."""
    if n_classes == 2:
        is_second = label[rows]
        return [Pair(0, 1, rows, 1.0 - 2.0 * is_second, len(rows) - np.count_nonzero(is_second))]
    members = [rows[label[rows] == k] for k in range(n_classes)]
    pairs = []
    for i, j in combinations(range(n_classes), 2):
        of_both = np.concatenate([members[i], members[j]])
        sign = np.ones(len(of_both))
        sign[len(members[i]) :] = -1.0
        pairs.append(Pair(i, j, of_both, sign, len(members[i])))
    return pairs


def order_of_first(label, n_classes):
    """Return 0 .. n_classes − 1 in the order in which they first occur in `label`, where each must occur."""
    seen = list(dict.fromkeys(label[:_FIRST_ROWS].tolist()))
    if len(seen) == n_classes:
        return np.array(seen, dtype=np.intp)
    first = np.empty(n_classes, dtype=np.intp)
    first[label[::-1]] = np.arange(len(label))[::-1]  # the last assignment to an index, the first row, remains
    return np.argsort(first)


@dataclass(frozen=True)
class PairTable:
    """The models of all pairs in one table.

    `support` holds the numbers of the rows that are support vectors of some pair, grouped by class and ascending within
    a class; `n_support` is their number in each class; `dual_coef` (n_classes − 1, n_support) are their coefficients;
    `intercept` has one number per pair.
    """

    support: np.ndarray
    n_support: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray


def tabulate(pairs, coefs, intercepts, label, n_classes):
    """Return the PairTable of the pairs, given the coefficients of each pair's rows and its intercept."""
    rows, table = _all_coefficients(pairs, coefs, n_classes)
    used = np.flatnonzero(table.any(axis=0) if len(table) > 1 else table[0])
    if n_classes == 2:
        used = used[np.argsort(label[rows[used]], kind="stable")]
    support = rows[used]
    n_support = np.bincount(label[support], minlength=n_classes)
    return PairTable(support, n_support, np.ascontiguousarray(table[:, used]), np.array(intercepts))


def _all_coefficients(pairs, coefs, n_classes):
    """Return the rows of all pairs, by class if there are several pairs, and the table of their coefficients."""
    if n_classes == 2:
        return pairs[0].rows, coefs[0][np.newaxis]
    n_first = pairs[0].n_first
    members = [pairs[0].rows[:n_first], *(pair.rows[pair.n_first :] for pair in pairs[: n_classes - 1])]
    ends = [0, *accumulate(map(len, members))]
    table = np.zeros((n_classes - 1, ends[-1]))
    for pair, coef in zip(pairs, coefs, strict=True):
        first, second, n_first = pair.first, pair.second, pair.n_first
        table[second - 1, ends[first] : ends[first + 1]] = coef[:n_first]
        table[first, ends[second] : ends[second + 1]] = coef[n_first:]
    return np.concatenate(members), table


def pair_coefficients(dual_coef, n_support):
    """Return the coefficients of all support vectors in each pair, (n_pairs, n_support), from the table."""
    n_classes = len(n_support)
    ends = blocks_of(n_support)
    block = [slice(*ends[k : k + 2]) for k in range(n_classes)]
    coefficients = np.zeros((n_classes * (n_classes - 1) // 2, dual_coef.shape[1]))
    for pair, i, j in zip(coefficients, *pair_indices(n_classes), strict=True):
        pair[block[i]], pair[block[j]] = dual_coef[j - 1, block[i]], dual_coef[i, block[j]]
    return coefficients


def blocks_of(n_support):
    """Return the offsets of each class's support vectors: class c has those from blocks[c] to blocks[c + 1]."""
    return np.concatenate([[0], np.cumsum(n_support)])


@lru_cache(maxsize=16)
def pair_indices(n_classes):
    """Return the first and the second class of each pair."""
    first, second = np.triu_indices(n_classes, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


def pair_cells(n_classes):
    """Return the cells of the table that each pair uses, as (line, class): see the module docstring."""
    return tuple(((second - 1, first), (first, second)) for first, second in combinations(range(n_classes), 2))


def pair_decisions(sums, intercept):
    """Return the decision values of all pairs, (n_rows, n_pairs), from S (n_rows, n_classes, n_classes − 1)."""
    decisions = np.empty((len(sums), len(intercept)))
    put_pair_decisions(sums, np.asarray(intercept, dtype=np.float64), decisions)
    return decisions


def votes(for_first, n_classes):
    """Return the number of votes of each class, (n_rows, n_classes).

    `for_first` (n_rows, n_pairs) says whether a pair votes for its first class.
    """
    changes, votes_as_second = vote_changes(n_classes)
    return for_first.astype(np.float64) @ changes + votes_as_second


@lru_cache(maxsize=16)
def vote_changes(n_classes):
    """Return by how much a vote of each pair for its first class changes the votes of all, and these without any."""
    first, second = pair_indices(n_classes)
    classes = np.arange(n_classes)
    is_first, is_second = np.equal.outer(first, classes), np.equal.outer(second, classes)
    return is_first.astype(np.float64) - is_second, is_second.sum(axis=0)


def winners(decisions, n_classes, order=None):
    """Return the class with the most votes; of several such classes, the first in `order`.

    As in LIBSVM, whose order is that of the labels in its model file, and where a decision value of zero is a vote for
    the second class.
    """
    if n_classes == 2:
        return np.where(decisions[:, 0] > 0.0, 0, 1)
    order, winner = np.arange(n_classes) if order is None else order, np.empty(len(decisions), np.intp)
    put_winners(decisions, np.asarray(order, dtype=np.intp), np.empty(n_classes, np.intp), winner)
    return winner


def order_of(model):
    """Return the order of classes for ties of votes and for coupling: of `classes_`, or of LIBSVM's model file."""
    return getattr(model, "_class_order", np.arange(len(model.classes_)))


def labels_of(model, decisions):
    """Return the labels that a fitted classifier predicts from the decision values of its pairs (n_rows, n_pairs)."""
    n_classes = len(model.classes_)
    if model.break_ties and n_classes > 2:
        return model.classes_[one_against_rest(decisions, n_classes).argmax(axis=1)]
    return model.classes_[winners(decisions, n_classes, order_of(model))]


def one_against_rest(decisions, n_classes):
    """Return a score for each class, (n_rows, n_classes): its votes, plus a term that breaks ties.

    The term is c / (3 (|c| + 1)), where c is the sum of the decision values of the class's pairs, each with the sign
    that is positive for the class. It lies between ±1/3, so that it never outweighs a vote. As in scikit-learn.
    """
    confidence = _gather(decisions, -decisions, n_classes)
    return votes(decisions >= 0.0, n_classes) + confidence / (3.0 * (np.abs(confidence) + 1.0))


def _gather(to_first, to_second, n_classes):
    """Return, for each class, the sum of `to_first` of the pairs where it is first and `to_second` of the others."""
    first, second = pair_indices(n_classes)
    total = np.zeros((len(to_first), n_classes))
    for k in range(n_classes):
        total[:, k] = to_first[:, first == k].sum(axis=1) + to_second[:, second == k].sum(axis=1)
    return total


def pairwise_probabilities(probabilities, n_classes):
    """Return r (n_rows, n_classes, n_classes), r_ij + r_ji = 1, from the probabilities of each pair's first class."""
    first, second = pair_indices(n_classes)
    r = np.zeros((len(probabilities), n_classes, n_classes))
    r[:, first, second] = probabilities
    r[:, second, first] = 1.0 - probabilities
    return r


def largest_nu(pair, weight):
    """Return the largest feasible nu, 2 min(W₊, W₋) / (W₊ + W₋), where W± is the total weight of a class."""
    total = weight.sum()
    return 2.0 * min(weight[pair.sign > 0.0].sum(), weight[pair.sign < 0.0].sum()) / total if total else 1.0

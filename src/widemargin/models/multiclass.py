"""Several classes, one against one: a problem for each pair of classes, a vote of all pairs for each new row.

Pairs are ordered (0, 1), (0, 2), ..., (1, 2), ...; a positive decision is for the first class of the pair. Support
vectors are grouped by class, and their coefficients in all pairs fill a table of n_classes − 1 rows, as in LIBSVM:
a vector of class c is in the pair with class o by row o − 1 if o > c, by row o if o < c.

All pairs share the kernel values of a new row: `kernel_scores` sums K(x_i, z) times each row of the table over each
class's vectors, S[z, class, row], and the decision of pair (i, j) is S[z, i, j − 1] + S[z, j, i] + intercept.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Pair:
    """Two classes: the numbers of their rows, ascending; sign +1 for the first, −1 for the second."""

    first: int
    second: int
    rows: np.ndarray
    sign: np.ndarray

    @property
    def has_both(self):
        """Whether there are rows of both classes, without which there is nothing to solve."""
        return abs(self.sign.sum()) < len(self.sign)

    @property
    def constant(self):
        """The decision where a class is absent: for the other, +1 or −1; 0 if both are. As in LIBSVM."""
        return float(np.sign(self.sign.sum()))


def pairs_of(rows, label, n_classes):
    """Return a Pair for each two classes, of the rows given by their numbers, ascending."""
    members = [rows[label[rows] == k] for k in range(n_classes)]
    pairs = []
    for i, j in zip(*np.triu_indices(n_classes, 1), strict=True):
        both = np.sort(np.concatenate([members[i], members[j]]))
        pairs.append(Pair(i, j, both, np.where(label[both] == i, 1.0, -1.0)))
    return pairs


@dataclass(frozen=True)
class PairTable:
    """The models of all pairs in one table.

    `support` are the numbers of the rows that are support vectors of any pair, by class, then ascending; `n_support`
    how many each class has; `dual_coef` (n_classes − 1, n_support) their coefficients; `intercept` one per pair.
    """

    support: np.ndarray
    n_support: np.ndarray
    dual_coef: np.ndarray
    intercept: np.ndarray


def tabulate(pairs, coefs, intercepts, label, n_classes):
    """Return the PairTable of the pairs' coefficients (one per row of the pair) and intercepts."""
    used = np.zeros(len(label), dtype=bool)
    for pair, coef in zip(pairs, coefs, strict=True):
        used[pair.rows[coef != 0.0]] = True
    support = np.flatnonzero(used)
    support = support[np.argsort(label[support], kind="stable")]
    place = np.zeros(len(label), dtype=np.intp)
    place[support] = np.arange(len(support))
    dual_coef = np.zeros((n_classes - 1, len(support)))
    for pair, coef in zip(pairs, coefs, strict=True):
        for line, mine in ((pair.second - 1, pair.sign > 0.0), (pair.first, pair.sign < 0.0)):
            mine &= coef != 0.0
            dual_coef[line, place[pair.rows[mine]]] = coef[mine]
    return PairTable(support, np.bincount(label[support], minlength=n_classes), dual_coef, np.array(intercepts))


def pair_coefficients(dual_coef, n_support):
    """Return the table untangled: the coefficients of all support vectors in each pair (n_pairs, n_support)."""
    n_classes = len(n_support)
    ends = blocks_of(n_support)
    block = [slice(*ends[k : k + 2]) for k in range(n_classes)]
    untangled = np.zeros((n_classes * (n_classes - 1) // 2, dual_coef.shape[1]))
    for pair, i, j in zip(untangled, *np.triu_indices(n_classes, 1), strict=True):
        pair[block[i]], pair[block[j]] = dual_coef[j - 1, block[i]], dual_coef[i, block[j]]
    return untangled


def blocks_of(n_support):
    """Return the offsets at which each class's support vectors begin and end."""
    return np.concatenate([[0], np.cumsum(n_support)])


def pair_decisions(sums, intercept):
    """Return the decision of each pair (n_rows, n_pairs) from the sums S (n_rows, n_classes, n_classes − 1)."""
    first, second = np.triu_indices(sums.shape[1], 1)
    return sums[:, first, second - 1] + sums[:, second, first] + intercept


def votes(for_first, n_classes):
    """Return how many pairs each class wins (n_rows, n_classes), `for_first` (n_rows, n_pairs) telling who wins."""
    return _gather(for_first.astype(np.float64), (~for_first).astype(np.float64), n_classes)


def winners(decisions, n_classes, order=None):
    """Return the class with most votes, of equals the first in `order`; a decision of zero is for the second class.

    As in LIBSVM, whose order is that of the labels in its model file.
    """
    order = np.arange(n_classes) if order is None else order
    return order[votes(decisions > 0.0, n_classes)[:, order].argmax(axis=1)]


def order_of(model):
    """Return in which order classes win of equal votes and are coupled: as in `classes_`, or in LIBSVM's model file."""
    return getattr(model, "_class_order", np.arange(len(model.classes_)))


def labels_of(model, decisions):
    """Return the labels that a fitted classifier gives rows with these decisions of its pairs (n_rows, n_pairs)."""
    n_classes = len(model.classes_)
    if model.break_ties and n_classes > 2:
        return model.classes_[one_against_rest(decisions, n_classes).argmax(axis=1)]
    return model.classes_[winners(decisions, n_classes, order_of(model))]


def one_against_rest(decisions, n_classes):
    """Return a score for each class (n_rows, n_classes): its votes, and its confidence to tell equals apart.

    The confidence is the sum of its pairs' decisions in its favour, c, squashed to c / (3 (|c| + 1)): between ±1/3,
    it never outweighs a vote.
    """
    confidence = _gather(decisions, -decisions, n_classes)
    return votes(decisions >= 0.0, n_classes) + confidence / (3.0 * (np.abs(confidence) + 1.0))


def _gather(to_first, to_second, n_classes):
    """Sum what each pair gives to its classes."""
    first, second = np.triu_indices(n_classes, 1)
    total = np.zeros((len(to_first), n_classes))
    for k in range(n_classes):
        total[:, k] = to_first[:, first == k].sum(axis=1) + to_second[:, second == k].sum(axis=1)
    return total


def pairwise_probabilities(probabilities, n_classes):
    """Return r (n_rows, n_classes, n_classes) from P(first class) of each pair: r_ij + r_ji = 1."""
    first, second = np.triu_indices(n_classes, 1)
    r = np.zeros((len(probabilities), n_classes, n_classes))
    r[:, first, second] = probabilities
    r[:, second, first] = 1.0 - probabilities
    return r


def largest_nu(pair, weight):
    """Return the largest nu for which both classes have enough rows: 2 min(W₊, W₋) / (W₊ + W₋)."""
    total = weight.sum()
    return 2.0 * min(weight[pair.sign > 0.0].sum(), weight[pair.sign < 0.0].sum()) / total if total else 1.0

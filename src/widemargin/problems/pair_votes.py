"""Decision values and votes of one-against-one classification, compiled; see `models.multiclass`.

The pairs of k classes are (0, 1), (0, 2), ..., (1, 2), ... A row z has the sums S[c, l] over the support vectors of
class c with the coefficients of line l of the table, and the pair (i, j) has the decision value

    f = S[i, j − 1] + S[j, i] + intercept

It is a vote for class i if f > 0, else for class j. With dozens of classes there are ten times as many pairs: passes of
NumPy over all of them took as long as the sums.
"""

from widemargin._runtime.compile import compiled


@compiled
def put_pair_decisions(sums, intercept, out):
    """Set out[b] to the decision values of all pairs from sums[b] (n_classes, n_classes − 1), for all rows b."""
    n_classes = sums.shape[1]
    for b in range(out.shape[0]):
        k = 0
        for i in range(n_classes):
            for j in range(i + 1, n_classes):
                out[b, k] = sums[b, i, j - 1] + sums[b, j, i] + intercept[k]
                k += 1


@compiled
def put_winners(decisions, order, n_votes, out):
    """Set out[b] to the class with the most votes of decisions[b]; of several such classes, to the first in `order`.

    `n_votes` is memory for a number of each class.
    """
    n_classes = order.size
    for b in range(out.size):
        n_votes[:] = 0
        k = 0
        for i in range(n_classes):
            n_of_first = 0
            for j in range(i + 1, n_classes):
                is_first = decisions[b, k + j - i - 1] > 0.0
                n_of_first += is_first
                n_votes[j] += not is_first
            n_votes[i] += n_of_first
            k += n_classes - i - 1
        best = order[0]
        for c in order:
            if n_votes[c] > n_votes[best]:
                best = c
        out[b] = best

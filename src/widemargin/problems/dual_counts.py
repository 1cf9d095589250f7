"""Numbers that LIBSVM prints of the dual variables of a KernelQP, in one pass: NumPy would take several for each."""

from widemargin._runtime.compile import compiled


def nu_of(beta, lower, upper):
    """Return Σ |beta_t| / Σ cost_t, if all dual variables have the same cost upper_t − lower_t > 0; otherwise None."""
    total, cost = _sum_and_cost(beta, lower, upper)
    return total / (cost * len(beta)) if cost > 0.0 else None


@compiled
def _sum_and_cost(beta, lower, upper):
    """Return Σ |beta_t|, and the cost of all dual variables, or 0 if they differ."""
    total, cost = 0.0, upper[0] - lower[0]
    for t in range(beta.size):
        total += abs(beta[t])
        if upper[t] - lower[t] != cost:
            cost = 0.0
    return total, cost


@compiled
def count_support(coef, beta, lower, upper):
    """Return the number of coefficients other than zero, and of dual variables other than zero that are at a bound."""
    n_support, n_at_bound = 0, 0
    for i in range(coef.size):
        n_support += coef[i] != 0.0
    for t in range(beta.size):
        n_at_bound += (beta[t] != 0.0) & ((beta[t] == lower[t]) | (beta[t] == upper[t]))
    return n_support, n_at_bound

"""Squared slack, `svm_perf_learn -p 2`, by machines with a slack that is not squared.

    P2 = minimum of ½|w|² + C ξ²        P1(c) = minimum of ½|w|² + c ξ,        both with ξ >= all constraints at w

The weights of P1(c) are those of P2 if c = 2 C ξ. The slack of P1(c) decreases with c, so that the c that is looked for
lies between any c and its 2 C ξ. Since C ξ² >= c ξ − c²/(4 C), every P1(c) gives a lower bound of P2, and the two
objectives of P1(c), primal and dual, an interval that holds P2:

    dual(c) − c²/(4 C) <= P2 <= ½|w|² + C ξ²    at the weights of P1(c)
"""

import math

_MOST_FITS = 60
_SMALLEST_RATIO = 0.01  # of the next c to this one, if there is no slack


def minimise_squared(fit, C, tol):
    """Return the best of the machines of P1 as one of P2, with `primal` and `dual` of P2, and all iterations.

    Parameters
    ----------
    fit : callable
        fit(c) returns a machine of P1(c): an object whose dictionary `facts` has its dual objective "dual", "length"
        |w|, "slack" and "iterations".
    C : float
    tol : float
        Stop if (primal − dual) / primal is at most this.
    """
    low, high, c = 0.0, math.inf, C
    best, largest_dual, n_iterations = None, -math.inf, 0
    for _ in range(_MOST_FITS):
        machine = fit(c)
        facts = machine.facts
        slack = max(facts["slack"], 0.0)
        primal = 0.5 * facts["length"] ** 2 + C * slack**2
        largest_dual = max(largest_dual, facts["dual"] - c**2 / (4.0 * C))
        n_iterations += facts["iterations"]
        if best is None or primal < best.facts["primal"]:
            facts["primal"], facts["slack"], best = primal, slack, machine
        if best.facts["primal"] - largest_dual <= tol * best.facts["primal"]:
            break
        wanted = 2.0 * C * slack
        low, high = max(low, min(c, wanted)), min(high, max(c, wanted))
        c = math.sqrt(low * high) if low > 0.0 else _SMALLEST_RATIO * high
    best.facts.update(dual=largest_dual, iterations=n_iterations)
    return best

"""The reduced problem of cutting planes: ours against QP libraries, on Gram matrices recorded from real runs.

    quadprog, daqp, piqp, clarabel, proxsuite: those that are installed

    maximise b'v − ½ v'Gv  over  v >= 0, Σ v <= 1

Runs of ocas and svmperf are recorded with planes never dropped; problems of so many planes are kept, with the weights
before. Each is divided by max |b|, so that its value is about 1, as tolerances of libraries expect. Their v is made
feasible, and its duality gap computed here in NumPy:  v'Gv + max(0, max over planes of b − Gv) − b'v,  as a part of
the value. Ours is asked for all that double precision gives; libraries for 1e-9.
"""

import copy
import importlib
import statistics
import time
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.planes.runs import compile_all, part
from widemargin import LinearSVC
from widemargin.solvers.cutting_planes import methods
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem

SETS = ["a9a", "w8a", "covtype.libsvm.binary.scale"]
COSTS = [1.0, 100.0]
SIZES = [10, 20, 50, 100, 200, 500]
_ASKED = 1e-9
_GOOD = 1e-6  # a gap below this is good enough for an outer tolerance of 1e-4
_RIDGE = 1e-14  # of the largest G_kk: the first that is tried where a library wants G to be definite


class Recorded(NamedTuple):
    """A reduced problem as it was met: the zero plane left out; v are the weights before, `ours` our ReducedProblem."""

    G: np.ndarray
    b: np.ndarray
    v: np.ndarray
    ours: ReducedProblem
    size: int  # of those asked for; there may be a plane more


def record(name, C, solver, sizes, limit):
    """Run a solver; return the reduced problems of these sizes that it came by."""
    kept, pending = [], sorted(sizes)

    class Recorder(ReducedProblem):
        def solve(self, accuracy):
            m = self.n_planes - 1
            if pending and m >= pending[0]:
                G, b = self._G[1 : m + 1, 1 : m + 1].copy(), self._b[1 : m + 1].copy()
                before = copy.deepcopy(self)
                before.__class__ = ReducedProblem  # which records nothing
                kept.append(Recorded(G, b, self.v[1:].copy(), before, pending.pop(0)))
            return super().solve(accuracy)

        def in_use(self):
            return np.ones(self.n_planes, bool)  # no plane is dropped

    before, methods.ReducedProblem = methods.ReducedProblem, Recorder
    model = LinearSVC(
        loss="hinge", C=C, fit_intercept=False, solver=solver, tol=1e-9,
        max_iter=max(sizes), max_seconds=limit, n_jobs=2,
    )  # fmt: skip
    try:
        model.fit(*part(name))
    finally:
        methods.ReducedProblem = before
    return kept


def relative_gap(G, b, v):
    """Return the duality gap of weights, made feasible, as a part of the dual value."""
    if v is None or not np.isfinite(v).all():
        return np.inf
    v = np.maximum(v, 0.0)
    v = v / max(1.0, v.sum())
    product = G @ v
    value = b @ v - 0.5 * v @ product
    return (v @ product + max(0.0, (b - product).max()) - b @ v) / abs(value) if value else np.inf


# --- Contenders: each a function of G, b and the weights before, that returns weights -------------------------------


def _quadprog(library, G, b, v):
    """Goldfarb and Idnani's dual method, which needs G to be definite: a ridge is raised until it is."""
    m = len(b)
    constraints, ridge = np.vstack([np.eye(m), -np.ones(m)]).T, _RIDGE * G.diagonal().max()
    bounds = np.append(np.zeros(m), -1.0)
    while True:
        try:
            return library.solve_qp(G + ridge * np.eye(m), b, constraints, bounds)[0]
        except ValueError as error:
            if "positive definite" not in str(error):
                raise
            ridge *= 10.0


def _daqp(library, G, b, v, **start):
    m = len(b)
    upper, lower = np.append(np.full(m, 1e30), 1.0), np.append(np.zeros(m), -1e30)
    arguments = (G, -b, np.ones((1, m)), upper, lower, np.zeros(m + 1, np.intc))
    return library.solve(*arguments, primal_tol=_ASKED, dual_tol=_ASKED, **start)[0]


def _daqp_warm(library, G, b, v):
    return _daqp(library, G, b, v, primal_start=v)


def _piqp(library, G, b, v):
    m = len(b)
    solver = library.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = _ASKED
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = _ASKED
    ones = np.asfortranarray(np.ones((1, m)))
    solver.setup(np.asfortranarray(G), -b, None, None, ones, None, np.ones(1), np.zeros(m), None)
    solver.solve()
    return np.array(solver.result.x)


def _clarabel(library, G, b, v):
    m = len(b)
    settings = library.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = False, _ASKED, _ASKED, _ASKED
    A = sparse.csc_matrix(np.vstack([-np.eye(m), np.ones(m)]))
    cones = [library.NonnegativeConeT(m + 1)]
    P = sparse.csc_matrix(np.triu(G))
    return np.array(library.DefaultSolver(P, -b, A, np.append(np.zeros(m), 1.0), cones, settings).solve().x)


def _proxsuite(library, G, b, v):
    m, guess = len(b), library.proxqp.InitialGuess.WARM_START
    constraints, lower = np.vstack([np.eye(m), np.ones(m)]), np.append(np.zeros(m), -1e20)
    return library.proxqp.dense.solve(
        G, -b, None, None, constraints, lower, np.append(np.full(m, 1e20), 1.0), x=v, z=np.zeros(m + 1),
        initial_guess=guess, eps_abs=_ASKED, eps_rel=0.0,
    ).x  # fmt: skip


LIBRARIES = {  # label: module, function
    "quadprog": ("quadprog", _quadprog),
    "daqp": ("daqp", _daqp),
    "daqp, warm": ("daqp", _daqp_warm),
    "piqp": ("piqp", _piqp),
    "clarabel": ("clarabel", _clarabel),
    "proxsuite, warm": ("proxsuite", _proxsuite),
}
OURS = ["ours, warm", "ours, cold"]


def installed():
    """Return the contenders whose library is there, as functions of G, b and the weights before."""
    found = {}
    for label, (module, function) in LIBRARIES.items():
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        found[label] = lambda G, b, v, library=library, function=function: function(library, G, b, v)
    return found


def timed(function, *arguments):
    """Return the median milliseconds of a few calls, and what the last returned; None if it raised."""
    times = []
    for turn in range(6):
        begun = time.perf_counter()
        try:
            result = function(*arguments)
        except Exception:  # whatever a library raises, it has not solved the problem
            return None, None
        times.append(time.perf_counter() - begun)
        if turn and sum(times) > 1.0:
            break
    return 1000.0 * statistics.median(times[1:] or times), result


def ours_warm(problem):
    """Return median milliseconds, weights: from the weights before, which a copy is given each time."""
    times = []
    for _ in range(7):
        fresh = copy.deepcopy(problem.ours)
        begun = time.perf_counter()
        fresh.solve(0.0)
        times.append(time.perf_counter() - begun)
    return 1000.0 * statistics.median(times[1:]), fresh.v[1:]


def ours_cold(problem):
    """Return median milliseconds, weights: from the zero plane alone."""
    times = []
    for _ in range(4):
        fresh = ReducedProblem()
        for k in range(len(problem.b)):
            fresh.add(np.append(0.0, problem.G[k, : k + 1]), problem.b[k])
        begun = time.perf_counter()
        fresh.solve(0.0)
        times.append(time.perf_counter() - begun)
    return 1000.0 * statistics.median(times[1:]), fresh.v[1:]


def judged(problem, libraries):
    """Return (milliseconds, gap) of everybody on one problem; milliseconds None for one that raised."""
    size = np.abs(problem.b).max()
    G, b = problem.G / size, problem.b / size
    answers = {"ours, warm": ours_warm(problem), "ours, cold": ours_cold(problem)}
    answers |= {label: timed(solve, G, b, problem.v) for label, solve in libraries.items()}
    return {label: (seconds, relative_gap(G, b, v)) for label, (seconds, v) in answers.items()}


def reduced_table(page, names, options):
    """Everybody on every recorded problem."""
    libraries = installed()
    labels = [*OURS, *libraries]
    for name in page.each("reduced", names):
        compile_all(name)
        found = []
        for C, solver in product(COSTS, ("ocas", "svmperf")):
            for problem in record(name, C, solver, SIZES[:4] if options.quick else SIZES, options.limit):
                results = judged(problem, libraries)
                found.append([problem.size, results])
                support = int(np.count_nonzero(ours_warm(problem)[1]))
                row = [name, f"{C:g}", solver, len(problem.b), support, *(_cell(results[label]) for label in labels)]
                page.put("reduced", ["set", "C", "run", "planes", "with weight", *labels], row, n_key=4)
        page.keep(f"reduced: {name}", found)


def put_sums(page):
    """Put the sums over all problems by number of planes."""
    found = [one for name, several in page.facts.items() if name.startswith("reduced: ") for one in several]
    for size in sorted({size for size, _ in found}):
        results = [one for n, one in found if n == size]
        cells = [_sum_cell([one[label] for one in results]) for label in results[0]]
        page.put("reduced-sums", ["planes", "problems", *results[0]], [size, len(results), *cells], n_key=1)


def _cell(result):
    milliseconds, gap = result
    return "failed" if milliseconds is None else f"{milliseconds:.3g} ms, {_shown(gap)}"


def _sum_cell(results):
    """Median and largest milliseconds, the largest gap, and how many are not good."""
    times = [milliseconds for milliseconds, _ in results if milliseconds is not None]
    if not times:
        return "failed"
    gaps = [gap for _, gap in results]
    bad = sum(not gap <= _GOOD for gap in gaps)
    return f"{statistics.median(times):.3g} ms, at most {max(times):.3g}; {_shown(max(gaps))}" + (
        f"; {bad} bad" if bad else ""
    )


def _shown(gap):
    return f"{max(gap, 0.0):.0e}" if np.isfinite(gap) else "no answer"

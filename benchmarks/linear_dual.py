"""Linear SVMs by dual coordinate descent: widemargin against LIBLINEAR, in the same run.

    python -m benchmarks.linear_dual                      everything, about half an hour; writes results/linear-dual.md
    python -m benchmarks.linear_dual --sets a9a --quick   one set, to look at

Hinge loss, no intercept, one thread. Ours is stopped by its certificate, a relative duality gap of 1e-3. LIBLINEAR gets
the loosest `tol` of a ladder with which it reaches (a) the same gap, its dual value read from what it prints, or
(b) an objective within 1e-3 of the best lower bound known, which is less than a certificate. Times are those of `fit`,
medians, the solvers taking turns. A fit that exceeds the limit counts as the limit, marked >.
"""

import argparse
import os
import platform
import statistics
import time
import warnings
from pathlib import Path

# One thread each. BLAS's own threads, woken by the benchmark's arithmetic, would go on spinning into the next fit.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.datasets import FOLDER, binary, load
from benchmarks.peers import Liblinear, hinge_objective
from widemargin import LinearSVC

RESULT = Path(__file__).parent / "results" / "linear-dual.md"
SETS = ["a9a", "w8a", "ijcnn1", "covtype.libsvm.binary.scale", "20news.bigram.binary",
        "lasvm-reuters-money-fx", "svmlight-example1", "rcv1-vw-1000"]  # fmt: skip
GRID = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
GAP = 1e-3


class Cell:
    """One data set and one C: everybody's seconds, None where the limit was reached."""

    def __init__(self, name, C, peer, limit, repeats):
        self.name, self.C, self.peer, self.limit, self.repeats = name, C, peer, limit, repeats
        self.X, self.sign = binary(name)
        self.seconds, self.notes = {}, {}
        self._best_dual = -np.inf
        for solver in ("auto", "dcd", "avsf"):
            self._ours(solver)
        self._climb_down_the_ladder()
        self._repeat()

    def _fit(self, solver):
        model = LinearSVC(
            loss="hinge", C=self.C, fit_intercept=False, solver=solver, tol=GAP,
            max_iter=None, max_seconds=self.limit, random_state=0,
        )  # fmt: skip
        begun = time.perf_counter()
        model.fit(self.X, self.sign)
        seconds = time.perf_counter() - begun
        primal = hinge_objective(self.X, self.sign, self.C, model.coef_.ravel())
        assert abs(primal - model.objective_) <= 1e-9 * primal, "the solver misreports its objective"
        self._best_dual = max(self._best_dual, model.history_["dual"][-1])
        return seconds, model

    def _ours(self, solver):
        seconds, model = self._fit(solver)
        self.seconds[solver] = [seconds] if model.gap_ <= GAP else None
        self.notes[solver] = f"{model.solver_}, {model.history_['passes'][-1]:.0f} passes, gap {model.gap_:.0e}"

    def _climb_down_the_ladder(self):
        """Find the loosest tolerances with which LIBLINEAR reaches the gap, and the objective."""
        self.eps = {"gap": None, "objective": None}
        self.seconds["gap"] = self.seconds["objective"] = None
        for eps, seconds, primal, dual in self.peer.descend(self.C, self.limit):
            reached = {"gap": primal - dual <= GAP * primal, "objective": primal - self._best_dual <= GAP * primal}
            for goal, good in reached.items():
                if good and self.eps[goal] is None:
                    self.eps[goal], self.seconds[goal] = eps, [seconds]
            if all(reached.values()):
                return

    def _repeat(self):
        """Time again what was quick, everybody taking turns."""
        for _ in range(self.repeats - 1):
            for key, times in self.seconds.items():
                if times is None or times[0] > 0.1 * self.limit:
                    continue
                if key in self.eps:
                    result = self.peer.fit(self.C, self.eps[key], self.limit)
                    times.extend([result[0]] if result else [])
                else:
                    times.append(self._fit(key)[0])

    def median(self, key):
        """Return the median seconds, or None."""
        times = self.seconds[key]
        return None if times is None else statistics.median(times)


def grid_table(names, limit, repeats):
    """Return the lines of the table of every cell, and the sums over C."""
    lines = [
        "| set | C | auto | what ran | dcd | avsf | LIBLINEAR to gap | LIBLINEAR to objective | ratio, gap | "
        "ratio, objective |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    sums = [
        "| set, sum over C | auto | LIBLINEAR to gap | LIBLINEAR to objective | ratio, gap | ratio, objective |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        peer = Liblinear(name)
        for solver in ("dcd", "avsf"):  # compile, apart from what is timed
            LinearSVC(loss="hinge", fit_intercept=False, solver=solver, max_iter=2).fit(*binary(name))
        cells = []
        for C in GRID:
            cell = Cell(name, C, peer, limit, repeats)
            cells.append(cell)
            lines.append(_row(cell, limit))
            print(lines[-1], flush=True)
        peer.close()
        sums.append(_sum_row(name, cells, limit))
        print(sums[-1], flush=True)
    return lines, sums


def _shown(seconds, limit):
    return f">{limit:.0f}" if seconds is None else f"{seconds:.3g}"


def _ratio(theirs, ours, limit):
    if ours is None:
        return "we reached the limit"
    return f"{theirs / ours:.2f}" if theirs is not None else f">{limit / ours:.0f}"


def _row(cell, limit):
    ours, gap, objective = (cell.median(key) for key in ("auto", "gap", "objective"))
    shown = [_shown(cell.median(key), limit) for key in ("dcd", "avsf", "gap", "objective")]
    return (
        f"| {cell.name} | {cell.C:g} | {_shown(ours, limit)} | {cell.notes['auto']} | " + " | ".join(shown)
        + f" | {_ratio(gap, ours, limit)} | {_ratio(objective, ours, limit)} |"
    )  # fmt: skip


def _sum_row(name, cells, limit):
    def total(key):
        return sum(limit if cell.median(key) is None else cell.median(key) for cell in cells)

    def mark(key):
        return ">" if any(cell.median(key) is None for cell in cells) else ""

    ours, gap, objective = total("auto"), total("gap"), total("objective")
    return (
        f"| {name} | {mark('auto')}{ours:.3g} | {mark('gap')}{gap:.3g} | {mark('objective')}{objective:.3g} "
        f"| {mark('gap')}{gap / ours:.1f} | {mark('objective')}{objective / ours:.1f} |"
    )


def sweep_table(names):
    """Return the lines of the table of single sweeps: ours in each storage against LIBLINEAR's."""
    lines = [
        "| set | rows | LIBLINEAR | CSR | CSR float32 | dense | dense float32 | ratio CSR | ratio dense |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        X, sign = binary(name)
        forms = {"CSR": X, "CSR float32": X.astype(np.float32)}
        if X.nnz >= 0.25 * X.shape[0] * X.shape[1]:  # what people keep as a dense array
            forms |= {"dense": X.toarray(), "dense float32": X.toarray().astype(np.float32)}
        times = {key: [] for key in ["LIBLINEAR", *forms]}
        # The first sweeps: later ones are over what each program's shrinking has left, which is not the same.
        n_sweeps, n_repeats = 8, int(min(31, max(5, 1e7 // (X.nnz + 20 * X.shape[0]))))
        for _ in range(n_repeats):
            times["LIBLINEAR"].append(_sweep_seconds(_peer_sweeps, X, sign, n_sweeps))
            for key, form in forms.items():
                times[key].append(_sweep_seconds(_our_sweeps, form, sign, n_sweeps))
        median = {key: statistics.median(values) for key, values in times.items()}
        shown = " | ".join(f"{1e3 * median[key]:.3g}" if key in median else "" for key in
                           ["LIBLINEAR", "CSR", "CSR float32", "dense", "dense float32"])  # fmt: skip
        dense = f"{median['LIBLINEAR'] / median['dense']:.2f}" if "dense" in median else ""
        lines.append(f"| {name} | {X.shape[0]} | {shown} | {median['LIBLINEAR'] / median['CSR']:.2f} | {dense} |")
        print(lines[-1], flush=True)
    return lines


def _sweep_seconds(sweeps, X, sign, n_sweeps):
    """Return seconds per sweep: the difference between many sweeps and one."""
    return max(sweeps(X, sign, 1 + n_sweeps) - sweeps(X, sign, 1), 1e-9) / n_sweeps


def _our_sweeps(X, sign, n_sweeps):
    model = LinearSVC(
        loss="hinge", fit_intercept=False, solver="dcd", stopping="kkt", tol=0.0, max_iter=n_sweeps, random_state=0
    )
    begun = time.perf_counter()
    model.fit(X, sign)
    return time.perf_counter() - begun


def _peer_sweeps(X, sign, n_sweeps):
    from sklearn.svm import LinearSVC as Peer

    model = Peer(loss="hinge", fit_intercept=False, dual=True, tol=1e-300, max_iter=n_sweeps, random_state=0)
    begun = time.perf_counter()
    model.fit(X, sign)
    return time.perf_counter() - begun


def thread_lines(name="mnist"):
    """Return the lines about one-against-rest with two threads against one."""
    X, y = load(name)
    times = {1: [], 2: []}
    for _ in range(3):
        for n_jobs, taken in times.items():
            model = LinearSVC(loss="hinge", C=1e-5, tol=3e-2, max_iter=None, random_state=0, n_jobs=n_jobs)
            begun = time.perf_counter()
            model.fit(X, y)
            taken.append(time.perf_counter() - begun)
    one, two = (statistics.median(taken) for taken in times.values())
    line = f"{name}, 10 classes: one thread {one:.2f} s, two threads {two:.2f} s, ratio {one / two:.2f}."
    print(line, flush=True)
    return [line]


def classification_sets():
    """Return the names of all shared training sets with few labels and no query ids."""
    names = []
    for line in (FOLDER / "MANIFEST.tsv").read_text().splitlines()[1:]:
        name, *_, n_queries, labels = line.split("\t")[:7]
        if labels.startswith("{") and n_queries == "0" and not name.endswith((".t", "_tst")) and name != "pol":
            names.append(name)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--limit", type=float, default=40.0, help="seconds for one fit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parts", nargs="+", default=["grid", "sweeps", "threads"])
    parser.add_argument("--quick", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pages = {}
    if "threads" in options.parts:
        pages["threads"] = thread_lines()
    if "sweeps" in options.parts:
        pages["sweeps"] = sweep_table(options.sets if options.quick else classification_sets())
    if "grid" in options.parts:
        cells, sums = grid_table(options.sets, options.limit, options.repeats)
        pages["grid"] = [*sums, "", *cells]
    if not options.quick:
        write(pages, options)


def write(pages, options):
    """Write the result page; parts that were not run keep what the page had."""
    import sklearn

    machine = f"{platform.machine()}, Python {platform.python_version()}, scikit-learn {sklearn.__version__}"
    text = RESULT.read_text() if RESULT.exists() else "\n".join(f"<!-- {part} -->\n<!-- /{part} -->" for part in pages)
    for part, lines in pages.items():
        head, rest = text.split(f"<!-- {part} -->")
        tail = rest.split(f"<!-- /{part} -->")[1]
        note = f"*{machine}; limit {options.limit:.0f} s a fit; repeats {options.repeats}.*"
        text = "\n".join([head + f"<!-- {part} -->", *lines, "", note, f"<!-- /{part} -->" + tail])
    RESULT.write_text(text)


if __name__ == "__main__":
    main()

"""Which solver, when: every solver on every kind of data, and what `auto` chose.

    python -m benchmarks.choice        some minutes; writes results/choice.md

Seconds to a certified relative gap of 1e-3, without intercept, one thread, the shorter of two runs. A run that
exceeds the limit is marked >, with the gap it had reached.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.datasets import binary
from widemargin import LinearSVC
from widemargin.data.matrix import Matrix
from widemargin.problems.classification import LOSSES
from widemargin.solvers.coordinate_descent.climb import height
from widemargin.solvers.coordinate_descent.state import Coordinates

RESULT = Path(__file__).parent / "results" / "choice.md"
SOLVERS = ["dcd", "avsf", "climb", "auto"]
SETS = ["a9a", "w8a", "ijcnn1", "covtype.libsvm.binary.scale", "usps", "satimage.scale", "letter.scale", "dna.scale",
        "splice", "mushrooms", "german.numer_scale", "phishing", "news20", "20news.bigram.binary",
        "lasvm-reuters-money-fx", "svmlight-example1"]  # fmt: skip


def timed(X, sign, solver, loss, C, limit):
    """Return the seconds as shown, the seconds, and the model."""
    best, model = np.inf, None
    for seed in range(2):
        model = LinearSVC(loss=loss, C=C, fit_intercept=False, solver=solver, tol=1e-3, max_iter=None,
                          max_seconds=limit, random_state=seed)  # fmt: skip
        begun = time.perf_counter()
        model.fit(X, sign)
        best = min(best, time.perf_counter() - begun)
        if best > 0.5:
            break
    shown = f"{best:.3g}" if model.status_ == "converged" else f">{limit:.0f} ({model.gap_:.0e})"
    return shown, best, model


def row(name, loss, C, limit):
    """Return one line of the table, and how much slower than the best solver `auto` was."""
    X, sign = binary(name)
    high = height(Coordinates(LOSSES[loss](Matrix(X), sign, np.full(len(sign), C))))
    results = {solver: timed(X, sign, solver, loss, C, limit) for solver in SOLVERS}
    best = min(results[solver][1] for solver in SOLVERS[:3])
    lost = results["auto"][1] / best
    cells = " | ".join(results[solver][0] for solver in SOLVERS)
    chosen = results["auto"][2].solver_
    return (
        f"| {name} | {X.shape[0] / X.shape[1]:.2g} | {loss} | {C:g} | {high:.2g} | {cells} | {chosen} | {lost:.2f} |",
        lost,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds for one fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| set | n/d | loss | C | height | " + " | ".join(SOLVERS) + " | auto took | auto / best |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|---|--:|",
    ]
    lost = []
    for name in SETS:
        for solver in SOLVERS[:2]:  # compile first
            LinearSVC(fit_intercept=False, solver=solver, max_iter=2).fit(*binary(name))
        for loss in LOSSES:
            for C in (1.0, 10.0, 1000.0):
                line, ratio = row(name, loss, C, options.limit)
                lines.append(line)
                lost.append(ratio)
                print(line, flush=True)
    lost = np.array(lost)
    near, fair = (lost <= 1.1).mean(), (lost <= 1.5).mean()
    summary = f"`auto` within 1.1x of the best in {near:.0%} of cells, within 1.5x in {fair:.0%}."
    print(summary)
    RESULT.write_text("\n".join([f"# Which solver, when\n\n`python -m benchmarks.choice`\n\n{summary}\n", *lines, ""]))


if __name__ == "__main__":
    main()

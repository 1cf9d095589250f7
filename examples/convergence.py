"""How solvers converge.

The same linear problem by three solvers. Each point is a certified gap: the true distance from the optimum is at
most as large. Coordinate descent (`dcd`) makes cheap passes that gain less and less; `newton` makes few expensive
steps, and is not bothered by a large C; `ocas` builds a model of the risk from cutting planes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from widemargin import LinearSVC

X, y = load_digits(return_X_y=True)
X, y = X / 16, y == 8
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for solver in ("dcd", "newton", "ocas"):
    settings = {"C": 0.1, "tol": 1e-5, "solver": solver, "max_iter": 5000, "random_state": 0}
    model = LinearSVC(loss="hinge", **settings).fit(X, y)
    history = model.history_
    axes.semilogy(history["passes"], history["gap"].clip(1e-7, 1), marker=".", label=solver)
    print(f"{solver}: {history['passes'][-1]:.0f} passes over the data, gap {model.gap_:.0e}, {model.status_}")
axes.set(title="Proved distance from the optimum", xlabel="passes over the data", ylabel="relative gap", xscale="log")
axes.legend()

"""Rows unlike the others.

A one-class machine learns where rows are. `nu` bounds the fraction of the training rows that are left outside; here
it is one in twenty. The shading is the score, the line its zero.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import OneClassSVM

random = np.random.default_rng(0)
X = np.concatenate([0.4 * random.standard_normal((150, 2)) + [1.5, 0], 0.6 * random.standard_normal((150, 2)) - [1, 0]])
model = OneClassSVM(nu=0.05, gamma=0.5).fit(X)
outside = model.predict(X) < 0
print(f"{outside.mean():.3f} of the training rows are outside")
print("a row far away:", model.predict([[4.0, 4.0]])[0], " one in the middle:", model.predict([[1.5, 0.0]])[0])

grid = np.stack(np.meshgrid(np.linspace(-4, 4, 200), np.linspace(-3, 3, 150)))
score = model.decision_function(grid.reshape(2, -1).T).reshape(grid.shape[1:])
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.contourf(*grid, score, levels=12, cmap="cividis", alpha=0.7)
axes.contour(*grid, score, levels=[0], colors="k")
axes.scatter(*X[~outside].T, s=10, color="white", edgecolors="0.2", linewidths=0.5)
axes.scatter(*X[outside].T, s=30, color="#c25300", marker="x")
axes.set(title="Score of a one-class machine", xlabel="feature 1", ylabel="feature 2")

"""A boundary and its margin.

An rbf machine on two interleaved half circles. The solid line is the decision boundary, the dashed ones are the
margin, and the support vectors are circled: only they decide the model. `gap_` proves how close its objective is to
the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import SVC

X, y = make_moons(300, noise=0.2, random_state=0)
model = SVC(C=10, gamma=1).fit(X, y)
print(f"{model.n_support_.sum()} support vectors, accuracy {model.score(X, y):.3f}")
print(f"relative duality gap {model.gap_:.1e}")

grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.3, 1.8, 150)))
score = model.decision_function(grid.reshape(2, -1).T).reshape(grid.shape[1:])
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.contour(*grid, score, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"])
axes.scatter(*X.T, c=y, cmap="cividis", s=14)
axes.scatter(*model.support_vectors_.T, s=70, facecolors="none", edgecolors="0.3", linewidths=0.8)
axes.set(title="Decision boundary, margin and support vectors", xlabel="feature 1", ylabel="feature 2")

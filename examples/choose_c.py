"""Choose C along a path.

`c_path` fits a linear machine for every C of a grid and every fold, each from the solution for the last C, which
costs little more than one fit. The bars are the spread over five folds.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from widemargin import LinearSVC, c_path

X, y = load_breast_cancer(return_X_y=True)
path = c_path(LinearSVC(), scale(X), y, cv=5)
mean, spread = path.scores.mean(axis=0), path.scores.std(axis=0)
print(f"best C {path.Cs[path.best]:.2g} of {len(path.Cs)}, accuracy {mean[path.best]:.3f}")
print(f"largest gap of all models {path.gaps.max():.0e}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.errorbar(path.Cs, mean, spread, marker="o", capsize=3)
axes.axvline(path.Cs[path.best], color="0.6", linestyle=":")
axes.set(title="Cross-validated accuracy", xlabel="C", ylabel="accuracy", xscale="log")

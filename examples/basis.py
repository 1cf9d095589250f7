"""A kernel machine as large as you like.

The exact machine has as many kernel values in a prediction as it has support vectors. On a basis of m points it has
m. The line is the accuracy on held-out rows for growing m, the star the exact machine.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import SVC

random = np.random.default_rng(0)
X = random.uniform(-1, 1, (6000, 2))
y = np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1]) + 0.3 * random.standard_normal(6000) > 0
rows, test = slice(0, 4000), slice(4000, None)
sizes, scores = [10, 20, 40, 80, 160, 320], []
for size in sizes:
    model = SVC(C=10, gamma=5, basis=size, random_state=0).fit(X[rows], y[rows])
    scores.append(model.score(X[test], y[test]))
    print(f"{size:4d} points: accuracy {scores[-1]:.3f}, gap {model.gap_:.0e}")
exact = SVC(C=10, gamma=5).fit(X[rows], y[rows])
n_support, accuracy = exact.n_support_.sum(), exact.score(X[test], y[test])
print(f"exact, {n_support} support vectors: accuracy {accuracy:.3f}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.semilogx(sizes, scores, marker="o", label="on a basis")
axes.plot(n_support, accuracy, marker="*", markersize=14, linestyle="none", color="#c25300", label="exact")
axes.set(title="Accuracy for the size of the model", xlabel="kernel values for a prediction", ylabel="accuracy")
axes.legend()

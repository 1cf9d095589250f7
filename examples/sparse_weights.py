"""Few features by an L1 penalty.

Forty features, of which five matter. With an L1 penalty most weights are exactly zero, and C says how many are not:
on the left of the path none, on the right all. The held-out accuracy is best where about the five are left.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import LinearSVC, c_path

random = np.random.default_rng(1)
X = random.standard_normal((300, 40))
y = X[:, :5] @ [2.0, -2.0, 1.5, 1.5, -1.0] + 1.5 * random.standard_normal(300) > 0
path = c_path(LinearSVC(penalty="l1", random_state=0), X, y, np.logspace(-3, 1, 17), cv=5)
n_weights = np.count_nonzero(path.coefs[:, 0], axis=1)
print(f"best C {path.Cs[path.best]:.2g}: {n_weights[path.best]} of 40 weights")
print("of the five that matter:", np.count_nonzero(path.coefs[path.best, 0, :5]))

figure, axes = plt.subplots(2, figsize=(6, 5), layout="constrained", sharex=True)
axes[0].plot(path.Cs, path.coefs[:, 0, :5], color="#c25300")
axes[0].plot(path.Cs, path.coefs[:, 0, 5:], color="0.7", linewidth=0.7)
axes[0].set(title="Weights: the five that matter, and the others", ylabel="weight")
axes[1].plot(path.Cs, path.scores.mean(axis=0), marker="o")
axes[1].set(xlabel="C", ylabel="held-out accuracy", xscale="log")

"""Are the probabilities right?

Of the rows to which a machine gives 70 %, seven in ten should be positive. The probabilities come from the one fit,
without cross-validation: its dual variables tell what each score would have been without its row.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from widemargin import SVC

random = np.random.default_rng(0)
X = random.standard_normal((6000, 2))
true = 1 / (1 + np.exp(-2 * X[:, 0] - 2 * X[:, 1] ** 2 + 1.5))
y = random.uniform(size=6000) < true
rows, test = slice(0, 2500), slice(2500, None)
figure, axes = plt.subplots(figsize=(5, 4.5), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.6", linestyle=":")
for calibration in ("sigmoid", "isotonic"):
    model = SVC(C=1, calibration=calibration, random_state=0).fit(X[rows], y[rows])
    probability = model.predict_proba(X[test])[:, 1]
    observed, given = calibration_curve(y[test], probability, n_bins=10)
    axes.plot(given, observed, marker="o", label=calibration)
    print(f"{calibration}: Brier score {brier_score_loss(y[test], probability):.4f}")
print(f"the true probabilities: {brier_score_loss(y[test], true[test]):.4f}")
axes.set(title="Reliability on held-out rows", xlabel="probability given", ylabel="fraction of positive rows")
axes.legend()

"""Regression and its tube.

Errors up to ε cost nothing: the rows within the tube have no influence on the curve. A wide tube leaves few support
vectors and a smoother curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import SVR

random = np.random.default_rng(0)
x = np.sort(random.uniform(0, 6, 120))
y = np.sin(x) + 0.15 * random.standard_normal(120)
line = np.linspace(0, 6, 300)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for panel, epsilon in zip(axes, (0.1, 0.4), strict=True):
    model = SVR(C=10, gamma=0.5, epsilon=epsilon).fit(x[:, None], y)
    curve = model.predict(line[:, None])
    panel.fill_between(line, curve - epsilon, curve + epsilon, alpha=0.2)
    panel.plot(line, curve)
    panel.scatter(x, y, s=8, color="0.6")
    panel.scatter(x[model.support_], y[model.support_], s=14, color="#c25300")
    panel.set(title=f"epsilon = {epsilon}", xlabel="x")
    print(f"epsilon {epsilon}: {len(model.support_)} support vectors, R² {model.score(x[:, None], y):.2f}")

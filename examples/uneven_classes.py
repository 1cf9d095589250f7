"""Uneven classes: minimise the measure itself.

Three in a hundred rows are positive. A hinge loss is low if almost no row is called positive, and with balanced
weights too many are. `MeasureSVC` minimises an upper bound of 1 − F1 instead, a measure of all predictions together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.model_selection import train_test_split

from widemargin import LinearSVC, MeasureSVC

X, y = make_classification(20_000, 20, n_informative=8, weights=[0.97], flip_y=0, random_state=2)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
machines = {
    "hinge": LinearSVC(loss="hinge", random_state=0),
    "hinge, balanced": LinearSVC(loss="hinge", class_weight="balanced", random_state=0),
    "F1": MeasureSVC("f1", C=1000),
}
measures = {"precision": precision_score, "recall": recall_score, "F1": f1_score}
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for position, (name, machine) in enumerate(machines.items()):
    predicted = machine.fit(X_train, y_train).predict(X_test)
    values = [measure(y_test, predicted, zero_division=0.0) for measure in measures.values()]
    axes.bar([place + 0.27 * (position - 1) for place in range(3)], values, width=0.25, label=name)
    print(f"{name:16s}" + "  ".join(f"{m} {value:.2f}" for m, value in zip(measures, values, strict=True)))
axes.set(title="Held-out rows, 3 % positive", xticks=range(3), xticklabels=measures)
axes.legend(title="trained for")

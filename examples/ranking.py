"""Rank within queries.

Clicks and relevance compare rows of the same query only. Queries differ in level, which misleads a regression;
`RankSVM` looks at pairs within queries, and orders more of them rightly.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import LinearSVR, RankSVM

random = np.random.default_rng(0)
n_queries, size, weights = 120, 15, np.array([2.0, -1.0, 0.5, 0, 0, 0, 0, 0])
query = np.repeat(np.arange(n_queries), size)
level = random.standard_normal(n_queries)[query]
X = random.standard_normal((len(query), 8))
X[:, 3] += 2 * level  # a feature that tells the level of its query
y = np.round(X @ weights + 6 * level + random.standard_normal(len(query)))
train = query < 60


def ordered(scores):
    """Return, for each held-out query, the fraction of its pairs that the scores order rightly."""
    found = []
    for q in range(60, n_queries):
        s, t = scores[query == q], y[query == q]
        pairs = t[:, None] > t
        found.append((s[:, None] > s)[pairs].mean())
    return found


ranker = RankSVM(C=1.0).fit(X[train], y[train], qid=query[train])
regression = LinearSVR(C=1.0, max_iter=10_000, random_state=0).fit(X[train], y[train])
results = {"RankSVM": ordered(ranker.decision_function(X)), "LinearSVR": ordered(regression.predict(X))}
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.boxplot(list(results.values()), tick_labels=list(results))
axes.set(title="Held-out queries", ylabel="fraction of pairs in order")
for name, values in results.items():
    print(f"{name}: {np.mean(values):.3f} of the pairs in order")

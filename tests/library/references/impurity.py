# SPDX-License-Identifier: Apache-2.0
"""Gains of impurity by loops, from the definition."""
import numpy as np

from reference import data, save


def impurity(y, method):
    parts = np.array([y.mean(), 1 - y.mean()])
    parts = parts[parts > 0]
    return 1 - (parts ** 2).sum() if method == "gini" else -(parts * np.log2(parts)).sum()


def gain(x, y, method):
    return impurity(y, method) - sum((x == v).mean() * impurity(y[x == v], method) for v in np.unique(x))


D = data("breast_cancer")
X, y = D[:, :-1], D[:, -1] - 1
results = []
for bins, method in ((20, "gini"), (7, "entropy")):
    gains = []
    for j in range(X.shape[1]):
        least, largest = X[:, j].min(), X[:, j].max()
        # The upper end of a bin belongs to it.
        upper = np.arange(1, bins) * ((largest - least) / bins)
        gains.append(gain(((X[:, [j]] - least) > upper).sum(axis=1), y, method))
    results.append([gains])
W = data("wine")
categories = np.floor((W[:, :2] - W[:, :2].min(axis=0)) * 3) + 1
results.append([[gain(categories[:, j], (W[:, -1] == 2) * 1.0, "gini") for j in range(2)]])
save("impurity", *[np.array(r) for r in results])

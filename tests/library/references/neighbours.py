# SPDX-License-Identifier: Apache-2.0
"""Nearest neighbours and distances by scikit-learn; errors of leaving one out by loops."""
import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors, kneighbors_graph

from reference import data, save

wine = data("wine")
X, y = wine[:, :-1], wine[:, -1]
X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
train, test = X[::2], X[1::2]
target, number = y[::2], wine[::2, 12]
neighbours = NearestNeighbors(n_neighbors=7, algorithm="brute").fit(train).kneighbors(test, return_distance=False)
lowest, highest = wine[::2, :-1].min(axis=0), wine[::2, :-1].max(axis=0)
scale = lambda Z: 2 * (Z - lowest) / (highest - lowest) - 1


def categorical_errors(Z, k):
    """For 1..k neighbours, how many neighbours have another category, divided by the number of neighbours."""
    result = np.zeros(k)
    for i in range(len(Z)):
        order = sorted((j for j in range(len(Z)) if j != i), key=lambda j: ((Z[i] - Z[j]) ** 2).sum())
        for count in range(1, k + 1):
            result[count - 1] += np.mean(target[order[:count]] != target[i])
    return result


def number_errors(Z, k):
    """For 1..k neighbours, squared differences from their mean."""
    result = np.zeros(k)
    for i in range(len(Z)):
        order = sorted((j for j in range(len(Z)) if j != i), key=lambda j: ((Z[i] - Z[j]) ** 2).sum())
        for count in range(1, k + 1):
            result[count - 1] += (number[order[:count]].mean() - number[i]) ** 2
    return result


selected, least = [], np.inf
while len(selected) < 4:
    errors = {j: categorical_errors(train[:, selected + [j]], 5)[4] for j in range(13) if j not in selected}
    best = min(errors, key=errors.get)
    if errors[best] >= least:
        break
    least = errors[best]
    selected.append(best)
chosen = sorted(selected)
best_k = number_errors(train, 12)[2:].argmin() + 3
save("neighbours",
     neighbours + 1,
     KNeighborsClassifier(7, algorithm="brute").fit(train, target).predict(test),
     KNeighborsRegressor(7, algorithm="brute").fit(train, number).predict(test),
     np.median(number[neighbours[:, :4]], axis=1),
     KNeighborsClassifier(5, algorithm="brute").fit(scale(wine[::2, :-1]), target).predict(scale(wine[1::2, :-1])),
     [categorical_errors(np.delete(train, j, axis=1), 5)[4] for j in range(13)],
     [number_errors(np.delete(train, j, axis=1), 5)[4] for j in range(13)],
     NearestNeighbors(n_neighbors=5, algorithm="brute").fit(train[:, chosen]).kneighbors(test[:, chosen], return_distance=False) + 1,
     best_k,
     (kneighbors_graph(train, 6, mode="connectivity").toarray() * np.arange(1, len(train) + 1)).sum(axis=1),
     pairwise_distances(train).sum(axis=1), pairwise_distances(train[:12]))

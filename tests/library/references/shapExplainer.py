# SPDX-License-Identifier: Apache-2.0
"""Shapley values of wine for three models, from their definition: all sets of features."""
import itertools
import math

import numpy as np

from reference import data, save

X = data("wine")[:, :4]
background, instances = X[:60], X[[70, 100, 150]]


def pairs(Z):
    return Z[:, 0] * Z[:, 1] - 2 * Z[:, 2] + Z[:, 1] * Z[:, 3] / 10


def logistic(Z):
    return 1 / (1 + np.exp(13 - Z[:, 0] + Z[:, 1] * Z[:, 2] / 5 - Z[:, 3] / 20))


def shapley(model, x, groups):
    def worth(chosen):
        columns = [c for g in chosen for c in groups[g]]
        Z = background.copy()
        Z[:, columns] = x[columns]
        return model(Z).mean()

    phi = np.zeros(len(x))
    count = len(groups)
    for g in range(count):
        others = [h for h in range(count) if h != g]
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            for chosen in itertools.combinations(others, size):
                phi[groups[g][0]] += weight * (worth(chosen + (g,)) - worth(chosen))
    return phi


single = [[0], [1], [2], [3]]
save("shapExplainer", [shapley(pairs, x, single) for x in instances], pairs(background).mean(),
     [shapley(logistic, x, single) for x in instances], [shapley(pairs, x, [[0], [1, 2], [3]]) for x in instances])

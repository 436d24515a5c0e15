# SPDX-License-Identifier: Apache-2.0
"""Decision trees and forests by scikit-learn, of binned columns."""
import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from reference import data, save


def binned(x, bins):
    """Each column in bins of equal width, numbered from 1."""
    least, largest = x.min(axis=0), x.max(axis=0)
    return np.minimum(np.floor((x - least) / (largest - least) * bins), bins - 1) + 1


def error(labels, y):
    return np.sqrt(((labels - y) ** 2).mean())


results = []
D = data("diabetes")
X, y = binned(D[:, :-1], 40), D[:, -1]
# Ours has five levels, the root among them.
tree = DecisionTreeRegressor(max_depth=4, min_samples_leaf=10, min_samples_split=20, random_state=1).fit(X, y)
results.append(tree.predict(X))

B = data("breast_cancer")
X, y = binned(B[:, :-1], 30), B[:, -1]
for criterion in ("gini", "entropy"):
    tree = DecisionTreeClassifier(criterion=criterion, max_depth=5, min_samples_leaf=8, min_samples_split=16,
                                  random_state=1).fit(X, y)
    results.append(tree.predict(X))

# Records with an even number are for training, the others for the comparison: by a tree, by a forest.
for name, bins in (("iris", 12), ("breast_cancer", 30), ("digits", 17)):
    D = data(name)
    X, y = D[:, :-1], D[:, -1]
    X = X + 1 if name == "digits" else binned(X, bins)
    tree = DecisionTreeClassifier(max_depth=9, min_samples_leaf=2, min_samples_split=4, random_state=1)
    forest = RandomForestClassifier(60, max_depth=9, min_samples_leaf=2, min_samples_split=4, max_features="sqrt",
                                    bootstrap=True, max_samples=0.8, random_state=1)
    results += [(model.fit(X[1::2], y[1::2]).predict(X[::2]) == y[::2]).mean() for model in (tree, forest)]
D = data("diabetes")
X, y = binned(D[:, :-1], 40), D[:, -1]
tree = DecisionTreeRegressor(max_depth=4, min_samples_leaf=10, min_samples_split=20, random_state=1)
forest = RandomForestRegressor(60, max_depth=7, min_samples_leaf=5, min_samples_split=10, max_features="sqrt",
                               max_samples=0.8, random_state=1)
results += [error(model.fit(X[1::2], y[1::2]).predict(X[::2]), y[::2]) for model in (tree, forest)]
save("decision_trees", *results)

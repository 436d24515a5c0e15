# SPDX-License-Identifier: Apache-2.0
"""DBSCAN of iris and wine by scikit-learn."""
import numpy as np
from sklearn.cluster import DBSCAN

from reference import data, save


def clusters(X, eps, least):
    """Each cluster is told by the greatest row number of its records."""
    labels = DBSCAN(eps=eps, min_samples=least).fit(X).labels_
    return [0 if label < 0 else np.flatnonzero(labels == label).max() + 1 for label in labels]


iris = data("iris")[:, :-1]
wine = data("wine")[:, :-1]
wine = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
save("dbscan", clusters(iris, 0.55, 6), clusters(wine, 2.2, 4))

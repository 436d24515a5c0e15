# SPDX-License-Identifier: Apache-2.0
"""k-means of iris and wine by scikit-learn."""
import numpy as np
from sklearn.cluster import KMeans

from reference import data, save


def centroids(X, k):
    """The best of many runs, sorted by the first column."""
    C = KMeans(k, n_init=50, tol=0, random_state=0).fit(X).cluster_centers_
    return C[C[:, 0].argsort()]


iris = data("iris")[:, :-1]
wine = data("wine")[:, :-1]
wine = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
save("kmeans", centroids(iris, 3), centroids(wine, 3), centroids(iris, 2))

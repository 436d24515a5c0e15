# SPDX-License-Identifier: Apache-2.0
"""Tomek links by imbalanced-learn, and nearest records by scikit-learn, of the wine data."""
import numpy as np
from imblearn.under_sampling import TomekLinks
from sklearn.neighbors import NearestNeighbors

from reference import data, save

W = data("wine")
X, y = W[:, :2], W[:, 13]
links = TomekLinks(sampling_strategy="majority")
links.fit_resample(X, y)
dropped = np.setdiff1d(np.arange(len(X)), links.sample_indices_) + 1

rare, others = W[y == 3][:, :4], W[:, :4]
inside = NearestNeighbors(n_neighbors=5).fit(rare).kneighbors(return_distance=False) + 1
# What the neighbors of the rare records among all are: the part of other classes, which adasyn distributes by.
around = NearestNeighbors(n_neighbors=6).fit(others).kneighbors(rare, return_distance=False)
own = np.flatnonzero(y == 3)
parts = np.array([np.mean(y[[j for j in row if j != i][:5]] != 3) for i, row in zip(own, around)])
save("sampling", dropped, inside, parts / parts.sum())

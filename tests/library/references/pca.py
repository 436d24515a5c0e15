# SPDX-License-Identifier: Apache-2.0
"""Principal components of the wine data by scikit-learn (scaled, and centered alone) and, of a matrix that is not
centered, by an eigenvalue decomposition of its covariances."""
import numpy as np
from sklearn.decomposition import PCA

from reference import data, save


def signed(components):
    """Columns whose largest cell is positive."""
    return components * np.sign(components[np.abs(components).argmax(axis=0), range(components.shape[1])])


X = data("wine")[:, :-1]
deviations = X.std(axis=0, ddof=1)
Z = (X - X.mean(axis=0)) / deviations
scaled = signed(PCA(3, svd_solver="full").fit(Z).components_.T)
centered = signed(PCA(2, svd_solver="full").fit(X).components_.T)
roots = np.sqrt((X ** 2).sum(axis=0) / (len(X) - 1))
values, vectors = np.linalg.eigh(np.cov(X / roots, rowvar=False))
uncentered = signed(vectors[:, ::-1][:, :4])
save("pca", scaled, (Z @ scaled)[:50], X.mean(axis=0)[None], deviations[None], centered, uncentered, ((X / roots) @ uncentered)[:50],
     roots[None])

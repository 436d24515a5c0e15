# SPDX-License-Identifier: Apache-2.0
"""Factorizations and an embedding of the wine and iris data by scikit-learn and NumPy."""
import numpy as np
from sklearn.decomposition import NMF, PCA
from sklearn.manifold import TSNE, trustworthiness

from reference import data, save

X = data("wine")[:, :-1]
X = X / X.max(axis=0)
U, S, V = np.linalg.svd(X, full_matrices=False)
pca = PCA(3).fit(X)
signs = np.sign(pca.components_[range(3), np.abs(pca.components_).argmax(axis=1)])
rank3 = NMF(3, solver="mu", init="random", random_state=0, max_iter=5000, tol=0).fit(X)
poisson = NMF(3, solver="mu", beta_loss="kullback-leibler", init="random", random_state=0, max_iter=5000, tol=0).fit(X)
Y = data("iris")[:, :-1]
tsne = TSNE(perplexity=20, method="exact", random_state=0).fit(Y)
save("factorization",
     np.outer(U[:5, 0], V[0]) * S[0], np.outer(X.sum(axis=1)[:5], X.sum(axis=0)) / X.sum(),
     (pca.components_ * signs[:, None]).T, rank3.reconstruction_err_**2, poisson.reconstruction_err_**2 / 2,
     tsne.kl_divergence_, trustworthiness(Y, tsne.embedding_, n_neighbors=5))

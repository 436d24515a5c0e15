# SPDX-License-Identifier: Apache-2.0
"""Mixtures of normal distributions of iris by scikit-learn."""
import numpy as np
from sklearn.mixture import GaussianMixture

from reference import data, save

X = data("iris")[:, :-1]
results = []
for kind in "full", "tied", "diag", "spherical":
    model = GaussianMixture(3, covariance_type=kind, reg_covar=1e-6, tol=1e-13, max_iter=10000, n_init=3,
                            random_state=0).fit(X)
    order = model.means_[:, 0].argsort()
    factors = model.precisions_cholesky_
    factors = factors if kind == "tied" else np.vstack(factors[order]) if kind != "spherical" else factors[order]
    results += [model.means_[order], model.weights_[order], factors, model.bic(X),
                model.predict_proba(X)[50:80][:, order]]
save("mixtures", *results)

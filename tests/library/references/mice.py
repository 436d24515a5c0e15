# SPDX-License-Identifier: Apache-2.0
"""Chained equations for the wine data with holes, by scikit-learn: numbers by linear regression; then the class as well,
by logistic regression (class 3 is the baseline), minimised by SciPy."""
import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LinearRegression

from reference import data, save

W = data("wine")
X = W[:, :6].copy()
X[np.add.outer(7 * np.arange(1, len(X) + 1), 13 * np.arange(1, 7)) % 17 == 0] = np.nan
numbers = IterativeImputer(LinearRegression(), max_iter=3, tol=0, imputation_order="roman").fit_transform(X)
converged = IterativeImputer(LinearRegression(), max_iter=100, tol=1e-12, imputation_order="roman").fit(X[:120])


def probabilities(train, y, rest):
    """Of the classes 1 to 3 for the rest, by a regularized model of the records to train with."""
    def scores(b, F):
        return np.column_stack([F @ b.reshape(2, 4)[:, :3].T + b.reshape(2, 4)[:, 3], np.zeros(len(F))])

    def loss(b):
        return -log_softmax(scores(b, train), axis=1)[np.arange(len(y)), y.astype(int) - 1].sum() + (
            b.reshape(2, 4)[:, :3]**2).sum() / 2

    return np.exp(log_softmax(scores(minimize(loss, np.zeros(8)).x, rest), axis=1))


# One number with holes, and the class with holes, by the class as columns of 0 and 1 but for the last one.
Z = np.column_stack([W[:, [0, 6, 9]], W[:, 13]])
Z[2::11, 1] = np.nan
Z[4::9, 3] = np.nan
holes = np.isnan(Z)
filled = np.where(holes, np.nanmean(Z, axis=0), Z)
filled[holes[:, 3], 3] = 2
for _ in range(4):
    dummies = np.equal.outer(filled[:, 3], [1, 2]).astype(float)
    features = np.column_stack([filled[:, [0, 2]], dummies])
    absent = holes[:, 1]
    filled[absent, 1] = LinearRegression().fit(features[~absent], filled[~absent, 1]).predict(features[absent])
    features, absent = filled[:, :3], holes[:, 3]
    train = features[~absent]
    mean, deviation = train.mean(axis=0), train.std(axis=0, ddof=1)
    chances = probabilities((train - mean) / deviation, filled[~absent, 3], (features[absent] - mean) / deviation)
    filled[absent, 3] = 1 + chances.argmax(axis=1)
save("mice", numbers[np.isnan(X)], converged.transform(X[:120])[np.isnan(X[:120])],
     converged.transform(X[120:])[np.isnan(X[120:])], filled[holes[:, 3], 3])

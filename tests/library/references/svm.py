# SPDX-License-Identifier: Apache-2.0
"""Support vector machines with squared slack, by scikit-learn's LinearSVC (LIBLINEAR)."""
import numpy as np
from sklearn.svm import LinearSVC

from reference import data, save


def machine(X, y, reg, intercept):
    """LIBLINEAR minimises w'w/2 + C sum(slack^2), with the intercept in w."""
    model = LinearSVC(C=0.5 / reg, dual=False, tol=1e-13, max_iter=100000, fit_intercept=intercept).fit(X, y)
    weights = model.coef_.T
    return np.vstack([weights, model.intercept_]) if intercept else weights


cancer = data("breast_cancer")
X, y = cancer[:, :-1], cancer[:, -1]
X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
with_intercept = machine(X, y, 1, True)
wine = data("wine")
Z, k = wine[:, :-1], wine[:, -1]
Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
classes = machine(Z, k, 2, True)
save("svm",
     with_intercept, machine(X, y, 10, False), X @ with_intercept[:-1] + with_intercept[-1],
     classes, (Z @ classes[:-1] + classes[-1]).argmax(axis=1) + 1)

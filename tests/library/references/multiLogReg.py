# SPDX-License-Identifier: Apache-2.0
"""Logistic regression: by Newton's method with the whole Hessian, by scikit-learn (two classes), and by statsmodels
(three classes, not regularized)."""
import numpy as np
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression

from reference import data, save


def newton(X, y, reg, intercept):
    """Coefficients with the last class as the baseline, by a loop over blocks of the Hessian."""
    n, classes = len(X), int(y.max())
    Z = np.column_stack([X, np.ones(n)]) if intercept else X
    m, k = Z.shape[1], classes - 1
    penalty = np.full(m, float(reg))
    penalty[X.shape[1]:] = 0
    H = np.eye(classes)[y.astype(int) - 1][:, :k]
    B = np.zeros((m, k))
    for _ in range(30):
        scores = np.column_stack([Z @ B, np.zeros(n)])
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        P = P[:, :k]
        gradient = Z.T @ (P - H) + penalty[:, None] * B
        hessian = np.zeros((m * k, m * k))
        for a in range(k):
            for b in range(k):
                weights = P[:, a] * ((a == b) - P[:, b])
                hessian[a * m:(a + 1) * m, b * m:(b + 1) * m] = (Z.T * weights) @ Z + (a == b) * np.diag(penalty)
        B -= np.linalg.solve(hessian, gradient.T.ravel()).reshape(k, m).T
    return B


iris = data("iris")
X, y = iris[:, :-1], iris[:, -1]
plain = newton(X, y, 1, False)
shifted = newton(X, y, 1, True)
deviations = X.std(axis=0, ddof=1)
scaled = newton((X - X.mean(axis=0)) / deviations, y, 1, True)
scaled[:-1] /= deviations[:, None]
scaled[-1] -= X.mean(axis=0) @ scaled[:-1]
scores = np.column_stack([X @ shifted[:-1] + shifted[-1], np.zeros(len(X))])
probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

cancer = data("breast_cancer")
Z, benign = cancer[:, :-1], cancer[:, -1]
means, deviations = Z.mean(axis=0), Z.std(axis=0, ddof=1)
# The first class is the one whose probability grows with the coefficients.
two = LogisticRegression(C=1 / 2.5, tol=1e-12, max_iter=1000, solver="newton-cholesky").fit((Z - means) / deviations, benign == 1)
coefficients = two.coef_[0] / deviations

diabetes = data("diabetes")
D, progression = diabetes[:, :-1], diabetes[:, -1]
D = (D - D.mean(axis=0)) / D.std(axis=0)
third = 1 + (progression > 100) + (progression > 180)
# The baseline of statsmodels is the first class.
logit = sm.MNLogit(4 - third, sm.add_constant(D, prepend=False)).fit(method="newton", tol=1e-14, maxiter=50, disp=0)
save("multiLogReg",
     plain, shifted, scaled, probabilities, 100 * (probabilities.argmax(axis=1) + 1 == y).mean(),
     np.append(coefficients, two.intercept_ - coefficients @ means),
     np.asarray(logit.params)[:, ::-1])

# SPDX-License-Identifier: Apache-2.0
"""Factorizations of 60 images of the digits data, zero pixels unknown, by plain alternating least squares."""
import numpy as np

from reference import data, save

X = data("digits")[:60, :-1]
X = X[:, (X != 0).sum(axis=0) > 5]
W = X != 0


def factorize(rank, reg, weighted, seed):
    random = np.random.default_rng(seed)
    V = random.uniform(0, 1, (X.shape[1], rank))
    U = np.zeros((len(X), rank))
    for _ in range(3000):
        for A, B, Y, M in ((U, V, X, W), (V, U, X.T, W.T)):
            for i in range(len(A)):
                Z = B[M[i]]
                A[i] = np.linalg.solve(Z.T @ Z + reg * (len(Z) if weighted else 1) * np.eye(rank), Z.T @ Y[i, M[i]])
    R = U @ V.T
    penalty = lambda A, M: (A**2 * (M.sum(axis=1)[:, None] if weighted else 1)).sum()
    return 0.5 * ((W * (R - X)) ** 2).sum() + 0.5 * reg * (penalty(U, W) + penalty(V, W.T)), R


results = []
for rank, reg, weighted in ((1, 5, False), (2, 20, False), (2, 0.3, True)):
    loss, R = min((factorize(rank, reg, weighted, seed) for seed in range(2)), key=lambda pair: pair[0])
    results += [loss, R[:5]]
save("als", *results)

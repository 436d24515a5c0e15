# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers cell by cell, for a function whose gradient is X^2 - 0.5."""
import math

import numpy as np
from scipy.linalg import fractional_matrix_power

from nn_reference import numbers
from reference import save

X = numbers(3, 2, 0.9)
results = []


def gradient(x):
    return x * x - 0.5


def cells(step, steps=3):
    """step(x, g, t, state) -> x, state, for each cell on its own."""
    out = np.zeros_like(X)
    for index, x in np.ndenumerate(X):
        state = None
        for t in range(steps):
            x, state = step(x, gradient(x), t, state)
        out[index] = x
    results.append(out)


def momentum(x, g, t, v):
    v = 0.8 * (v or 0) - 0.1 * g
    return x + v, v


def nesterov(x, g, t, v):
    before = v or 0
    v = 0.8 * before - 0.1 * g
    return x - 0.8 * before + 1.8 * v, v


def adam(x, g, t, state, decay=0.0, inside=True):
    m, v = state or (0, 0)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    if inside:
        rate = 0.1 * math.sqrt(1 - 0.99 ** (t + 1)) / (1 - 0.9 ** (t + 1))
        return x - rate * m / (math.sqrt(v) + 1e-3), (m, v)
    step = m / (1 - 0.9 ** (t + 1)) / (math.sqrt(v / (1 - 0.99 ** (t + 1))) + 1e-3)
    return x - 0.1 * (step + decay * x), (m, v)


def rmsprop(x, g, t, cache):
    cache = 0.9 * (cache or 0) + 0.1 * g * g
    return x - 0.1 * g / (math.sqrt(cache) + 1e-3), cache


def adagrad(x, g, t, cache):
    cache = (cache or 0) + g * g
    return x - 0.1 * g / (math.sqrt(cache) + 1e-3), cache


for step in (lambda x, g, t, state: (x - 0.1 * g, None), momentum, nesterov, adam,
             lambda x, g, t, state: adam(x, g, t, state, 0.1, False), rmsprop, adagrad):
    cells(step)
# 8: lars
A, v = X.copy(), np.zeros_like(X)
for t in range(3):
    G = gradient(A)
    scale = 0.02 * np.linalg.norm(A) / (np.linalg.norm(G) + 0.01 * np.linalg.norm(A))
    v = 0.8 * v - 0.1 * scale * (G + 0.01 * A)
    A = A + v
results.append(A)
# 9: learning rates
results.append([0.025 * i / 6 for i in range(1, 7)] + [0.025 * (1 - i / 6) ** 2 for i in range(1, 7)])
# 10, 11: scaled_gd
Y = numbers(4, 2, 0.7)
results.append(X - 0.1 * gradient(X) @ np.linalg.inv(Y.T @ Y))
results.append(Y - 0.1 * gradient(Y) @ np.linalg.inv(X.T @ X))
# 12: shampoo, 13: with momentum, 14, 15: the same with diagonals
for diagonal in (False, True):
    for mean in (False, True):
        A, L, R, m = X.copy(), 0.01 * np.eye(3), 0.01 * np.eye(2), 0
        for t in range(3):
            G = gradient(A)
            L, R = L + G @ G.T, R + G.T @ G
            if diagonal:
                L, R = np.diag(np.diag(L)), np.diag(np.diag(R))
            m = 0.9 * m + 0.1 * G if mean else G
            A = A - 0.1 * fractional_matrix_power(L, -0.25) @ m @ fractional_matrix_power(R, -0.25)
        results.append(A)
# 16: shampoo with matrices that are renewed every 2 steps and roots every 4 steps
A, L, R, m, rootL, rootR = X.copy(), 0.01 * np.eye(3), 0.01 * np.eye(2), 0, np.eye(3) * 0.01**-0.25, np.eye(2) * 0.01**-0.25
newL, newR = 0, 0
for t in range(7):
    G = gradient(A)
    newL, newR, m = newL + G @ G.T, newR + G.T @ G, 0.9 * m + 0.1 * G
    if t > 0 and t % 2 == 0:
        L, R, newL, newR = L + newL, R + newR, 0, 0
    if t > 0 and t % 4 == 0:
        rootL, rootR = fractional_matrix_power(L, -0.25), fractional_matrix_power(R, -0.25)
    A = A - 0.1 * rootL @ m @ rootR
results.append(A)
save("nn_optim", *results)

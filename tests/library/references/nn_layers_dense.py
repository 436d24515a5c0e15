# SPDX-License-Identifier: Apache-2.0
"""Layers without structure by NumPy, record by record, and their derivatives by central differences."""
import math

import numpy as np

from nn_reference import differences, numbers
from reference import data, save

D = data("iris")
X = D[47:53, :4] - 3.05
y = np.zeros((6, 3))
for i in range(6):
    y[i, int(D[47 + i, 4]) - 1] = 1
d3, d4 = numbers(6, 3, 1.7), numbers(6, 4, 2.3)
results = []


def add(function, parameters, d):
    results.append(function(*parameters))
    results.extend(differences(function, parameters, d))


W, b = numbers(4, 3, 0.9), numbers(1, 3, 0.4)
add(lambda X, W, b: np.array([[sum(x[k] * W[k, j] for k in range(4)) + b[0, j] for j in range(3)] for x in X]),
    [X, W, b], d3)
U, V = numbers(4, 2, 0.8), numbers(2, 3, 0.6)
low_rank = lambda X, U, V, b: np.array([[sum(x[k] * U[k, r] * V[r, j] for k in range(4) for r in range(2)) + b[0, j]
                                         for j in range(3)] for x in X])
results.append(low_rank(X, U, V, b))
results.extend(differences(low_rank, [X, U, V, b], d3)[:3])


def factorization(w0, w, V):
    rows = []
    for x in X:
        pairs = sum(V[i] @ V[j] * x[i] * x[j] for i in range(4) for j in range(i + 1, 4))
        rows.append([w0[0, 0] + x @ w[:, 0] + pairs])
    return np.array(rows)


add(factorization, [np.array([[0.3]]), numbers(4, 1, 0.5), numbers(4, 3, 0.7)], d3[:, :1])
gamma, beta = 1 + numbers(1, 4, 0.3), numbers(1, 4, 0.2)
add(lambda X, g, b: X * g + b, [X, gamma, beta], d4)
m, v = numbers(1, 4, 0.7), 1 + numbers(1, 4, 0.6)
for mode in ("train", "test"):
    def normalized(X):
        means = X.mean(axis=0) if mode == "train" else m[0]
        variances = X.var(axis=0) if mode == "train" else v[0]
        return (X - means) / np.sqrt(variances + 1e-3)

    batch_norm = lambda X, g, b: normalized(X) * g + b
    results.append(batch_norm(X, gamma, beta))
    results.append(0.9 * m + 0.1 * X.mean(axis=0) if mode == "train" else m)
    results.append(0.9 * v + 0.1 * X.var(axis=0) if mode == "train" else v)
    results.append(normalized(X))
    results.extend(differences(batch_norm, [X, gamma, beta], d4))


def cell(function):
    return lambda X: np.vectorize(function)(X)


def softmax(X):
    terms = np.exp(X - X.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def selu(x, a=1.6732632423543772848170429916717, scale=1.0507009873554804934193349852946):
    return scale * (x if x > 0 else a * (math.exp(x) - 1))


for function in (cell(lambda x: x if x > 0 else 0.0), cell(lambda x: x if x > 0 else 0.01 * x),
                 cell(lambda x: x if x > 0 else 2 * (math.exp(x) - 1)), cell(selu),
                 cell(lambda x: x / (1 + math.exp(-x))),
                 cell(lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
                 cell(lambda x: 1 / (1 + math.exp(-x))), cell(math.tanh), softmax):
    add(function, [X], d4)
results.append(softmax(1000 * X))


def log_softmax(X):
    return np.array([[x - max(row) - math.log(sum(math.exp(z - max(row)) for z in row)) for x in row] for row in X])


losses = (lambda p: np.abs(p - y).sum() / 6,
          lambda p: ((p - y) ** 2).sum() / 12,
          lambda p: np.log(np.cosh(p - y)).sum() / 6,
          lambda p: -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum() / 6,
          lambda p: -(y * np.log(p + 1e-10)).sum() / 6,
          lambda p: -(y * log_softmax(p)).sum() / 6,
          lambda p: 0.3 * np.abs(p).sum(),
          lambda p: 0.15 * (p ** 2).sum())
for which, loss in enumerate(losses, 1):
    pred = numbers(6, 3, 1.1)
    if which in (4, 5):
        pred = 0.5 + 0.4 * pred
    add(loss, [pred], 1.0)
large = 1000 * numbers(6, 3, 1.1)
results.append(np.array([[abs(e) + math.log1p(math.exp(-2 * abs(e))) - math.log(2) for e in row]
                         for row in large - y]).sum() / 6)
results.append(-(y * log_softmax(large)).sum() / 6)
save("nn_layers_dense", *results)

# SPDX-License-Identifier: Apache-2.0
"""Networks: the accuracy of scikit-learn's multilayer perceptron on digits, an autoencoder and a forward step by NumPy."""
import numpy as np
from sklearn.neural_network import MLPClassifier

from nn_reference import numbers
from reference import data, save

D = data("digits")
X, y = D[:, :64] / 16, D[:, 64]
scores = []
for state in range(4):
    perceptron = MLPClassifier((128,), solver="sgd", learning_rate_init=0.05, momentum=0.9, max_iter=20, batch_size=16,
                               random_state=state)
    scores.append(perceptron.fit(X[:450], y[:450]).score(X[450:], y[450:]))
results = [np.mean(scores)]

# 2 to 10: two epochs of an autoencoder on ten flowers
A = data("iris")[45:55, :4]
order = np.argsort(numbers(10, 1, 0.7)[:, 0], kind="stable")
standard = (A - A.mean(axis=0)) / A.std(axis=0, ddof=1)
sizes = [(5, 4), (2, 5), (5, 2), (4, 5)]
W = [numbers(r, c, 0.9 - 0.1 * i) * np.sqrt(6 / (r + c)) for i, (r, c) in enumerate(sizes)]
b = [np.zeros((r, 1)) for r, _ in sizes]
vW, vb = [0] * 4, [0] * 4
rate = 0.1
for epoch in range(2):
    for start in range(0, 10, 4):
        H = [standard[order][start:start + 4].T]
        for layer in range(4):
            H.append(np.tanh(W[layer] @ H[-1] + b[layer]))
        delta = (H[4] - H[0]) * (1 - H[4] ** 2)
        for layer in (3, 2, 1, 0):
            gW, gb = delta @ H[layer].T / H[0].shape[1], delta.sum(axis=1, keepdims=True) / H[0].shape[1]
            if layer > 0:
                delta = W[layer].T @ delta * (1 - H[layer] ** 2)
            vW[layer], vb[layer] = 0.8 * vW[layer] - rate * gW, 0.8 * vb[layer] - rate * gb
            W[layer], b[layer] = W[layer] + vW[layer], b[layer] + vb[layer]
    rate *= 0.9
for layer in range(4):
    results += [W[layer], b[layer]]
results.append(np.tanh(W[1] @ np.tanh(W[0] @ standard.T + b[0]) + b[1]).T)

# 11: probabilities of sherlockPredict
S = numbers(5, 1588, 0.37)
parts = [S[:, 223:1183], np.hstack([S[:, 12:212], S[:, 1187:1188]]), S[:, 1188:],
         np.hstack([S[:, :12], S[:, 212:223], S[:, 1183:1187]])]


def network(X, units, classes, k):
    H = np.maximum(0, X @ (numbers(X.shape[1], units, k) / np.sqrt(X.shape[1])) + numbers(1, units, k + 0.01))
    H = np.maximum(0, H @ (numbers(units, units, k + 0.02) / np.sqrt(units)) + numbers(1, units, k + 0.03))
    scores = np.exp(H @ numbers(units, classes, k + 0.04) + numbers(1, classes, k + 0.05))
    return scores / scores.sum(axis=1, keepdims=True)


features = np.hstack([network(part, units, 3, k) for part, units, k in zip(parts, (300, 200, 400, 80), (1.1, 1.2, 1.3, 1.4))])
results.append(network(features, 500, 3, 1.5))
save("networks", *results)

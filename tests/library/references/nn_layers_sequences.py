# SPDX-License-Identifier: Apache-2.0
"""Layers of sequences step by step, and their derivatives by central differences."""
import math

import numpy as np

from nn_reference import differences, numbers
from reference import data, save

D = data("digits")
X = D[0:2, 26:32] / 8 - 0.5  # two sequences of three steps with two features
T, F, M = 3, 2, 2
results = []


def add(function, parameters, scale=1.7):
    out = function(*parameters)
    results.append(np.round(out, 13))
    results.extend(differences(function, parameters, numbers(*out.shape, scale)))


def sigmoid(A):
    return 1 / (1 + np.exp(-A))


def lstm(X, W, b, h, c):
    outs = []
    for t in range(T):
        z = np.hstack([X[:, t * F:(t + 1) * F], h]) @ W + b
        i, f, o, g = sigmoid(z[:, :M]), sigmoid(z[:, M:2 * M]), sigmoid(z[:, 2 * M:3 * M]), np.tanh(z[:, 3 * M:])
        c = f * c + i * g
        h = o * np.tanh(c)
        outs.append(h)
    return outs, c


W, b = numbers(4, 8, 0.9), numbers(1, 8, 0.4)
h0, c0 = numbers(2, 2, 0.3), numbers(2, 2, 0.2)
# 1 to 6: lstm, outputs of all steps beside states; 7 to 12: outputs of the last step
add(lambda X, W, b, h, c: np.hstack(lstm(X, W, b, h, c)[0] + [lstm(X, W, b, h, c)[1]]), [X, W, b, h0, c0])
add(lambda X, W, b, h, c: np.hstack([lstm(X, W, b, h, c)[0][-1], lstm(X, W, b, h, c)[1]]), [X, W, b, h0, c0])


def rnn(X, W, b, h):
    outs = []
    for t in range(T):
        h = np.tanh(np.hstack([X[:, t * F:(t + 1) * F], h]) @ W + b)
        outs.append(h)
    return np.hstack(outs)


# 13 to 17: rnn
add(rnn, [X, numbers(4, 2, 0.9), numbers(1, 2, 0.4), h0])


def bilstm(X, W, Wr, b, br, h, c):
    back = X.reshape(2, T, F)[:, ::-1].reshape(2, T * F)
    outs, states = lstm(X, W, b, h[:2], c[:2])
    outs_r, states_r = lstm(back, Wr, br, h[2:], c[2:])
    return np.hstack([np.hstack([outs[t], outs_r[T - 1 - t]]) for t in range(T)])


# 18 to 25: bilstm
add(bilstm, [X, W, numbers(4, 8, 0.8), b, numbers(1, 8, 0.3), numbers(4, 2, 0.3), numbers(4, 2, 0.2)])


def softmax(S):
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    return E / E.sum(axis=-1, keepdims=True)


def attention(Q, V, K):
    rows = []
    for q, v, k in zip(Q, V, K):
        q, v, k = q.reshape(-1, 2), v.reshape(-1, 2), k.reshape(-1, 2)
        rows.append((softmax(q @ k.T / math.sqrt(2)) @ v).ravel())
    return np.array(rows)


# 26 to 29: attention of 2 queries to 3 values; 30, 31: keys that are the values
Q = numbers(2, 4, 0.9)
add(attention, [Q, X, numbers(2, 6, 0.7)])
add(lambda V: attention(Q, V, V), [X])


def heads(Q, K, V, H=2, T=3, D=2):
    out = np.zeros((len(Q), T, H, D))
    weights = np.zeros((len(Q), H, T, T))
    for n in range(len(Q)):
        for h in range(H):
            q, k, v = (A[n].reshape(T, H, D)[:, h] for A in (Q, K, V))
            weights[n, h] = softmax(q @ k.T / math.sqrt(D))
            out[n, :, h] = weights[n, h] @ v
    return out.reshape(len(Q), -1), weights.reshape(len(Q), -1)


# 32: weights, 33 to 36: multi_attention
S = numbers(2, 12, 0.8)
results.append(heads(S, numbers(2, 12, 0.7), numbers(2, 12, 0.6))[1])
add(lambda Q, K, V: heads(Q, K, V)[0], [S, numbers(2, 12, 0.7), numbers(2, 12, 0.6)])


def layer_norm(X, g, b):
    A = X.reshape(-1, 4)
    A = (A - A.mean(axis=1, keepdims=True)) / np.sqrt(A.var(axis=1, keepdims=True) + 1e-3) * g + b
    return A.reshape(len(X), -1)


def linear(X, W, b):
    return (X.reshape(-1, len(W)) @ W + b).reshape(len(X), -1)


# 37 to 40: layer normalization
add(layer_norm, [S, 1 + numbers(1, 4, 0.3), numbers(1, 4, 0.2)])


def bert(S, WQ, bQ, WK, bK, WV, bV, WC, bC, WI, bI, WO, bO, g1, h1, g2, h2, gelu=True):
    context = heads(linear(S, WQ, bQ), linear(S, WK, bK), linear(S, WV, bV))[0]
    inner = layer_norm(linear(context, WC, bC) + S, g1, h1)
    active = linear(inner, WI, bI)
    active = (active / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (active + 0.044715 * active**3))) if gelu
              else np.tanh(active))
    return layer_norm(linear(active, WO, bO) + inner, g2, h2)


# 41 to 58: encoder layer with gelu; 59: with tanh
parameters = [S]
for index, (r, c) in enumerate([(4, 4), (1, 4), (4, 4), (1, 4), (4, 4), (1, 4), (4, 4), (1, 4), (4, 3), (1, 3), (3, 4),
                                (1, 4), (1, 4), (1, 4), (1, 4), (1, 4)], 1):
    parameters.append((1 if index in (13, 15) else 0) + numbers(r, c, 0.1 + 0.05 * index))
add(bert, parameters)
results.append(bert(*parameters, gelu=False))
# 60, 61: embedding of two steps
index = np.array([[0, 2], [2, 4]])
add(lambda E: np.array([E[row].ravel() for row in index]), [numbers(5, 3, 0.9)])
save("nn_layers_sequences", *results)

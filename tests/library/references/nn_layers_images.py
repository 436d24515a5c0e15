# SPDX-License-Identifier: Apache-2.0
"""Layers of images by loops over pixels, and their derivatives by central differences."""
import numpy as np

from nn_reference import differences, numbers
from reference import data, save

D = data("digits")
X = D[0:2, 16:48] / 16 - 0.3 + 0.01 * numbers(2, 32, 1.3)
results = []


def images(X, C, H, W):
    return X.reshape(len(X), C, H, W)


def rows(A):
    return A.reshape(len(A), -1)


def add(function, parameters, d=None):
    out = function(*parameters)
    d = numbers(*out.shape, 1.7) if d is None else d
    results.append(np.round(out, 13))
    results.extend(differences(function, parameters, d))


def convolve(A, K, sh, sw, ph, pw, groups=1):
    """A: N x C x H x W, K: F x C/groups x R x S."""
    n, c, h, w = A.shape
    f, cg, r, s = K.shape
    P, Q = (h + 2 * ph - r) // sh + 1, (w + 2 * pw - s) // sw + 1
    out = np.zeros((n, f, P, Q))
    for i, o, p, q in np.ndindex(out.shape):
        first = o // (f // groups) * cg
        for k, a, b in np.ndindex(cg, r, s):
            y, x = p * sh + a - ph, q * sw + b - pw
            if 0 <= y < h and 0 <= x < w:
                out[i, o, p, q] += A[i, first + k, y, x] * K[o, k, a, b]
    return out


def transposed(A, K, sh, sw, ph, pw, oh, ow, groups=1):
    """Each pixel adds its filter to the outputs. K: C x F/groups x R x S."""
    n, c, h, w = A.shape
    _, fg, r, s = K.shape
    P, Q = sh * (h - 1) - 2 * ph + r + oh, sw * (w - 1) - 2 * pw + s + ow
    out = np.zeros((n, fg * groups, P, Q))
    for i, k, y, x in np.ndindex(A.shape):
        first = k // (c // groups) * fg
        for o, a, b in np.ndindex(fg, r, s):
            p, q = y * sh + a - ph, x * sw + b - pw
            if 0 <= p < P and 0 <= q < Q:
                out[i, first + o, p, q] += A[i, k, y, x] * K[k, o, a, b]
    return out


def pool(A, r, s, sh, sw, ph, pw, kind):
    n, c, h, w = A.shape
    P, Q = (h + 2 * ph - r) // sh + 1, (w + 2 * pw - s) // sw + 1
    out = np.zeros((n, c, P, Q))
    for i, k, p, q in np.ndindex(out.shape):
        window = [A[i, k, y, x] for y in range(p * sh - ph, p * sh - ph + r) for x in range(q * sw - pw, q * sw - pw + s)
                  if 0 <= y < h and 0 <= x < w]
        out[i, k, p, q] = max(window) if kind == "max" else sum(window) / (r * s)
    return out


# 1 to 4: conv2d, 5 to 8: conv2d_depthwise, 9 to 12: conv2d_transpose, 13 to 16: conv2d_transpose_depthwise
add(lambda X, W, b: rows(convolve(images(X, 2, 4, 4), W.reshape(2, 2, 3, 2), 2, 1, 1, 0) + b.reshape(1, 2, 1, 1)),
    [X, numbers(2, 12, 0.9), numbers(2, 1, 0.4)])
add(lambda X, W, b: rows(convolve(images(X, 2, 4, 4), W.reshape(4, 1, 2, 3), 2, 2, 1, 1, groups=2)
                         + b.reshape(1, 4, 1, 1)), [X, numbers(2, 12, 0.8), numbers(4, 1, 0.4)])
add(lambda X, W, b: rows(transposed(images(X, 2, 4, 4), W.reshape(2, 1, 3, 2), 1, 2, 1, 1, 0, 1) + b[0, 0]),
    [X, numbers(2, 6, 0.7), numbers(1, 1, 0.4)])
add(lambda X, W, b: rows(transposed(images(X, 4, 2, 4), W.reshape(4, 1, 2, 2), 2, 1, 1, 0, 1, 0, groups=2)
                         + b.reshape(1, 2, 1, 1)), [X, numbers(2, 8, 0.6), numbers(2, 1, 0.4)])
# 17, 18: max_pool2d, 19, 20: avg_pool2d, 21, 22: global_avg_pool2d, 23, 24: upsample2d
add(lambda X: rows(pool(images(X, 2, 4, 4), 3, 2, 2, 1, 1, 1, "max")), [X])
add(lambda X: rows(pool(images(X, 2, 4, 4), 3, 2, 2, 2, 1, 1, "mean")), [X])
add(lambda X: images(X, 2, 4, 4).mean(axis=(2, 3)), [X])
add(lambda X: rows(images(X[:, :8], 2, 2, 2).repeat(2, axis=2).repeat(3, axis=3)), [X[:, :8].copy()])


# 25, 26: lrn
def normalization(X):
    A = images(X, 8, 2, 2)
    out = np.zeros_like(A)
    for i, c, y, x in np.ndindex(A.shape):
        around = sum(A[i, k, y, x] ** 2 for k in range(max(0, c - 1), min(8, c + 2)))
        out[i, c, y, x] = A[i, c, y, x] / (2 + 0.3 * around) ** 0.75
    return rows(out)


add(normalization, [X])
# 27 to 30, 31, 32: batch_norm2d in mode train and new moving means; 33: in mode test
gamma, beta = 1 + numbers(2, 1, 0.3), numbers(2, 1, 0.2)
m, v = numbers(2, 1, 0.7), 1 + numbers(2, 1, 0.6)


def batch_norm(X, g, b, means=None, variances=None):
    A = images(X, 2, 4, 4)
    means = A.mean(axis=(0, 2, 3)) if means is None else means[:, 0]
    variances = A.var(axis=(0, 2, 3)) if variances is None else variances[:, 0]
    B = (A - means.reshape(1, 2, 1, 1)) / np.sqrt(variances.reshape(1, 2, 1, 1) + 1e-3)
    return rows(B * g.reshape(1, 2, 1, 1) + b.reshape(1, 2, 1, 1))


add(batch_norm, [X, gamma, beta])
A = images(X, 2, 4, 4)
results.append(0.9 * m[:, 0] + 0.1 * A.mean(axis=(0, 2, 3)))
results.append(0.9 * v[:, 0] + 0.1 * A.var(axis=(0, 2, 3)))
results.append(batch_norm(X, gamma, beta, m, v))


# 34, 35: softmax2d, 36, 37: cross_entropy_loss2d
def softmax(X):
    A = np.exp(images(X, 4, 2, 4))
    return rows(A / A.sum(axis=1, keepdims=True))


add(softmax, [X])
y = np.zeros((2, 4, 2, 4))
for i, p, q in np.ndindex(2, 2, 4):
    y[i, (i + p + q) % 4, p, q] = 1
add(lambda P: -(rows(y) * np.log(P + 1e-10)).sum() / 16, [softmax(X)], 1.0)
# 38 to 40: conv1d
add(lambda X, W: rows(convolve(images(X, 2, 1, 16), W.reshape(2, 2, 1, 3), 1, 3, 0, 1)), [X, numbers(2, 6, 0.9)])


# 41 to 58: mbconv with expansion 2, squeeze 0.5: outputs, dX, then derivatives by all parameters
def squeeze_network(X, W1, b1, g1, h1, W2, b2, g2, h2, Ws, bs, We, be, W3, b3, g3, h3):
    def norm(A, g, b):
        c = (1, -1, 1, 1)
        return ((A - A.mean(axis=(0, 2, 3)).reshape(c)) / np.sqrt(A.var(axis=(0, 2, 3)).reshape(c) + 1e-5) * g.reshape(c)
                + b.reshape(c))

    silu = lambda A: A / (1 + np.exp(-A))
    c = (1, -1, 1, 1)
    A = images(X, 2, 4, 4)
    B = silu(norm(convolve(A, W1.reshape(4, 2, 1, 1), 1, 1, 0, 0) + b1.reshape(c), g1, h1))
    B = silu(norm(convolve(B, W2.reshape(4, 1, 3, 3), 1, 1, 1, 1, groups=4) + b2.reshape(c), g2, h2))
    inner = silu(B.mean(axis=(2, 3)) @ Ws.T + bs.T)
    B = B * (1 / (1 + np.exp(-(inner @ We.T + be.T))))[:, :, None, None]
    return rows(norm(convolve(B, W3.reshape(2, 4, 1, 1), 1, 1, 0, 0) + b3.reshape(c), g3, h3) + A)


parameters = [X]
for index, (r, s) in enumerate([(4, 2), (4, 1), (4, 1), (4, 1), (4, 9), (4, 1), (4, 1), (4, 1), (2, 4), (2, 1), (4, 2),
                                (4, 1), (2, 4), (2, 1), (2, 1), (2, 1)], 1):
    parameters.append((1 if index in (3, 7, 15) else 0) + numbers(r, s, 0.1 + 0.05 * index))
out = squeeze_network(*parameters)
d = numbers(2, 32, 1.7)
results.append(np.round(out, 13))
results.extend(differences(squeeze_network, parameters, d))
save("nn_layers_images", *results)

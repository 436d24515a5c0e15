# SPDX-License-Identifier: Apache-2.0
"""What bench/scripts/transformer.dml, crnn.dml and dien.dml must find, computed another way with NumPy and SciPy.

    neural_reference.py transformer|crnn|dien double|single DRAWN.csv RESULT.csv NAME=NUMBER...

DRAWN.csv holds the data and weights that the script has drawn, RESULT.csv what it has learned (dien: the likelihoods). The numbers are the script's
arguments. Of every part the change by training (of dien: the result) must agree to 1e-8 of its norm, of a run in single precision to TOLERANCE_OF_SINGLES. Prints the differences; exit code 1 when they are
larger.
"""
import sys

import numpy as np
from scipy.special import erf


# A change is the small difference of weights that are rounded to floats.
TOLERANCE_OF_SINGLES = 1e-3


class Cells:
    """A column of all cells, taken apart from the front."""

    def __init__(self, path):
        self.cells, self.at = np.loadtxt(path, delimiter=",").reshape(-1), 0

    def take(self, rows, columns):
        part = self.cells[self.at : self.at + rows * columns].reshape(rows, columns)
        self.at += rows * columns
        return part.copy()


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def norm(x, g, e):
    c = x - x.mean(1, keepdims=True)
    scale = 1 / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5)
    return c * scale * g + e, c * scale, scale


def norm_backward(dy, n, scale, g):
    dn = dy * g
    return (dn - dn.mean(1, keepdims=True) - n * (dn * n).mean(1, keepdims=True)) * scale, (dy * n).sum(0, keepdims=True), dy.sum(0, keepdims=True)


def transformer(drawn, batch, places, width, heads, hidden, steps, rate=0.001):
    rows, size = batch * places, width // heads
    x, goal = drawn.take(rows, width), drawn.take(rows, width)
    names = ["Wq", "Wk", "Wv", "Wo", "W1", "W2", "bq", "bk", "bv", "bo", "c1", "c2", "g1", "e1", "g2", "e2"]
    shapes = {"W1": (width, hidden), "W2": (hidden, width), "c1": (1, hidden)}
    p = {n: drawn.take(*shapes.get(n, (width, width) if n[0] == "W" else (1, width))) for n in names}
    first, m, v = dict(p), {n: 0 * p[n] for n in names}, {n: 0 * p[n] for n in names}
    split = lambda t: t.reshape(batch, places, heads, size).transpose(0, 2, 1, 3)
    join = lambda t: t.transpose(0, 2, 1, 3).reshape(rows, width)
    for step in range(1, steps + 1):
        q, k, w = (split(x @ p["W" + c] + p["b" + c]) for c in "qkv")
        weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(size))
        a = join(weights @ w)
        f, n1, s1 = norm(x + a @ p["Wo"] + p["bo"], p["g1"], p["e1"])
        h = f @ p["W1"] + p["c1"]
        g = 0.5 * h * (1 + erf(h / np.sqrt(2)))
        y, n2, s2 = norm(f + g @ p["W2"] + p["c2"], p["g2"], p["e2"])
        d = {}
        d2, d["g2"], d["e2"] = norm_backward(2 * (y - goal) / (rows * width), n2, s2, p["g2"])
        dh = d2 @ p["W2"].T * (0.5 * (1 + erf(h / np.sqrt(2))) + h * np.exp(-h * h / 2) / np.sqrt(2 * np.pi))
        d1, d["g1"], d["e1"] = norm_backward(d2 + dh @ p["W1"].T, n1, s1, p["g1"])
        da = split(d1 @ p["Wo"].T)
        dw = da @ w.swapaxes(-1, -2)
        ds = weights * (dw - (dw * weights).sum(-1, keepdims=True)) / np.sqrt(size)
        dq, dk, dv = join(ds @ k), join(ds.swapaxes(-1, -2) @ q), join(weights.swapaxes(-1, -2) @ da)
        for name, left, right in (("q", x, dq), ("k", x, dk), ("v", x, dv), ("o", a, d1)):
            d["W" + name], d["b" + name] = left.T @ right, right.sum(0, keepdims=True)
        d["W1"], d["c1"], d["W2"], d["c2"] = f.T @ dh, dh.sum(0, keepdims=True), g.T @ d2, d2.sum(0, keepdims=True)
        for n in names:
            m[n] = 0.9 * m[n] + 0.1 * d[n]
            v[n] = 0.999 * v[n] + 0.001 * d[n] ** 2
            p[n] = p[n] - rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * m[n] / (np.sqrt(v[n]) + 1e-8)
    # Softmax does not see bk: its gradient is zero but for rounding.
    return {n: (first[n] - (n == "bk"), p[n]) for n in names}


def windows(x, r, s, pad):
    """All windows of images n x c x h x w: n x h x w x c x r x s."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    return np.lib.stride_tricks.sliding_window_view(x, (r, s), (2, 3)).transpose(0, 2, 3, 1, 4, 5)


def conv(x, f):
    return np.einsum("nhwcrs,kcrs->nkhw", windows(x, 3, 3, 1), f)


def conv_backward(x, f, dy):
    df = np.einsum("nhwcrs,nkhw->kcrs", windows(x, 3, 3, 1), dy)
    dx = np.einsum("nhwkrs,kcrs->nchw", windows(dy, 3, 3, 1), f[:, :, ::-1, ::-1])
    return dx, df


def pool(x, r, s):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // s, s).max((3, 5))


def pool_backward(x, y, dy, r, s):
    """To the first of the largest cells of a window."""
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // r, r, w // s, s).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // r, w // s, r * s)
    first = np.zeros_like(cells)
    np.put_along_axis(first, cells.argmax(-1)[..., None], dy[..., None], -1)
    return first.reshape(n, c, h // r, w // s, r, s).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)


def lstm(x, w, b, memory):
    """x: n x t x d. Gates in the order input, forget, output, candidate."""
    n, steps, _ = x.shape
    out, state, kept = np.zeros((n, memory)), np.zeros((n, memory)), []
    for t in range(steps):
        joined = np.hstack([x[:, t], out])
        z = joined @ w + b
        i, f, o = (sigmoid(z[:, k * memory : (k + 1) * memory]) for k in range(3))
        g = np.tanh(z[:, 3 * memory :])
        before, state = state, f * state + i * g
        out = o * np.tanh(state)
        kept.append((joined, i, f, o, g, before, state, out))
    return np.stack([k[-1] for k in kept], 1), kept


def lstm_backward(kept, w, dl):
    n, steps, memory = dl.shape
    d = w.shape[0] - memory
    dw, db, dx = np.zeros_like(w), np.zeros((1, 4 * memory)), np.zeros((n, steps, d))
    dout, dstate = np.zeros((n, memory)), np.zeros((n, memory))
    for t in reversed(range(steps)):
        joined, i, f, o, g, before, state, _ = kept[t]
        dout = dout + dl[:, t]
        dstate = dstate + dout * o * (1 - np.tanh(state) ** 2)
        dz = np.hstack([dstate * g * i * (1 - i), dstate * before * f * (1 - f), dout * np.tanh(state) * o * (1 - o), dstate * i * (1 - g * g)])
        dw, db = dw + joined.T @ dz, db + dz.sum(0, keepdims=True)
        dj = dz @ w.T
        dx[:, t], dout, dstate = dj[:, :d], dj[:, d:], dstate * f
    return dx, dw, db


def crnn(drawn, batch, height, width, filters, memory, classes, steps, rate=0.05, momentum=0.9):
    n, k, places = batch, filters, width // 4
    features = 4 * k * height // 8
    x = drawn.take(n, height * width).reshape(n, 1, height, width)
    goal = np.eye(classes)[drawn.take(n * places, 1).astype(int).reshape(-1) - 1]
    shapes = {"F1": (k, 9), "F2": (2 * k, 9 * k), "F3": (4 * k, 18 * k), "W": (features + memory, 4 * memory), "O": (memory, classes),
              "gamma": (4 * k, 1), "beta": (4 * k, 1)}
    p = {name: drawn.take(*shape) for name, shape in shapes.items()}
    p |= {"b1": np.full((k, 1), 0.01), "b2": np.full((2 * k, 1), 0.01), "b": np.zeros((1, 4 * memory)), "c": np.zeros((1, classes))}
    first, v = dict(p), {name: 0 * p[name] for name in p}
    of_channels = lambda t: t.reshape(1, -1, 1, 1)
    for _ in range(steps):
        f1, f2, f3 = p["F1"].reshape(k, 1, 3, 3), p["F2"].reshape(2 * k, k, 3, 3), p["F3"].reshape(4 * k, 2 * k, 3, 3)
        r1 = np.maximum(conv(x, f1) + of_channels(p["b1"]), 0)
        m1 = pool(r1, 2, 2)
        r2 = np.maximum(conv(m1, f2) + of_channels(p["b2"]), 0)
        m2 = pool(r2, 2, 2)
        c3 = conv(m2, f3)
        centred = c3 - c3.mean((0, 2, 3), keepdims=True)
        scale = 1 / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True) + 1e-5)
        n3 = centred * scale
        r3 = np.maximum(n3 * of_channels(p["gamma"]) + of_channels(p["beta"]), 0)
        m3 = pool(r3, 2, 1)
        s = m3.reshape(n, features, places).transpose(0, 2, 1)
        l, kept = lstm(s, p["W"], p["b"], memory)
        flat = l.reshape(n * places, memory)
        scores = (softmax(flat @ p["O"] + p["c"]) - goal) / (n * places)
        d = {"O": flat.T @ scores, "c": scores.sum(0, keepdims=True)}
        ds, d["W"], d["b"] = lstm_backward(kept, p["W"], (scores @ p["O"].T).reshape(n, places, memory))
        dm3 = ds.transpose(0, 2, 1).reshape(m3.shape)
        db3 = pool_backward(r3, m3, dm3, 2, 1) * (r3 > 0)
        d["gamma"], d["beta"] = ((db3 * t).sum((0, 2, 3)).reshape(-1, 1) for t in (n3, 1))
        dn = db3 * of_channels(p["gamma"])
        dc3 = scale * (dn - dn.mean((0, 2, 3), keepdims=True) - n3 * (dn * n3).mean((0, 2, 3), keepdims=True))
        dm2, d["F3"] = conv_backward(m2, f3, dc3)
        dr2 = pool_backward(r2, m2, dm2, 2, 2) * (r2 > 0)
        dm1, d["F2"] = conv_backward(m1, f2, dr2)
        dr1 = pool_backward(r1, m1, dm1, 2, 2) * (r1 > 0)
        _, d["F1"] = conv_backward(x, f1, dr1)
        d["b1"], d["b2"] = (t.sum((0, 2, 3)).reshape(-1, 1) for t in (dr1, dr2))
        for name in p:
            v[name] = momentum * v[name] - rate * d[name].reshape(p[name].shape)
            p[name] = p[name] + v[name]
    order = ["F1", "F2", "F3", "W", "O", "gamma", "beta", "b1", "b2", "b", "c"]
    return {name: (first[name], p[name]) for name in order}


def gated(h, g, u, a):
    width = h.shape[1]
    r = h @ u[:, : 2 * width]
    update = sigmoid(g[:, :width] + r[:, :width]) * a
    reset = sigmoid(g[:, width : 2 * width] + r[:, width:])
    return h + update * (np.tanh(g[:, 2 * width :] + (reset * h) @ u[:, 2 * width :]) - h)


def dien(drawn, users, places, things, width, layer):
    history = drawn.take(places, users).astype(int) - 1
    lengths, offer = drawn.take(users, 1), drawn.take(users, 1).astype(int).reshape(-1) - 1
    embedding, w, u, b = drawn.take(things, width), drawn.take(width, 3 * width), drawn.take(width, 3 * width), drawn.take(1, 3 * width)
    attend, w2, u2, b2 = drawn.take(width, width), drawn.take(width, 3 * width), drawn.take(width, 3 * width), drawn.take(1, 3 * width)
    l1, c1, l2, c2, l3 = drawn.take(4 * width, layer), drawn.take(1, layer), drawn.take(layer, layer // 2), drawn.take(1, layer // 2), drawn.take(layer // 2, 1)
    e, target = embedding[history], embedding[offer]
    h, states = np.zeros((users, width)), []
    for place in range(places):
        h = gated(h, e[place] @ w + b, u, 1)
        states.append(h)
    a = np.stack([(s * (target @ attend)).sum(1) for s in states], 1) / np.sqrt(width)
    counts = np.arange(1, places + 1)[None, :] <= lengths
    a = softmax(np.where(counts, a, -1e9))
    h, sums = np.zeros((users, width)), np.zeros((users, width))
    for place in range(places):
        h = gated(h, states[place] @ w2 + b2, u2, a[:, place : place + 1])
        sums = sums + e[place] * counts[:, place : place + 1]
    prelu = lambda d: np.maximum(d, 0) + 0.25 * np.minimum(d, 0)
    d = prelu(np.hstack([target, h, sums / lengths, target * h]) @ l1 + c1)
    return {"clicks": (0, sigmoid(prelu(d @ l2 + c2) @ l3))}


def main():
    name, precision, drawn, result = sys.argv[1], sys.argv[2], Cells(sys.argv[3]), Cells(sys.argv[4])
    numbers = {key: int(value) for key, value in (word.split("=") for word in sys.argv[5:])}
    expected = {"transformer": transformer, "crnn": crnn, "dien": dien}[name](drawn, **numbers)
    wrong = drawn.at != drawn.cells.size
    for part, (first, last) in expected.items():
        difference = np.linalg.norm(result.take(*last.shape) - last) / np.linalg.norm(last - first)
        wrong |= not difference <= (TOLERANCE_OF_SINGLES if precision == "single" else 1e-8)
        print(f"{name} {part}: {difference:.2g}")
    sys.exit(1 if wrong or result.at != result.cells.size else 0)


main()

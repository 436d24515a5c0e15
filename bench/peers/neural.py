# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/scripts (transformer, crnn, dien) in PyTorch and JAX, in single precision and at the scripts' sizes, beside `heddle run`.

    python bench/peers/neural.py [--threads N] [--only TEXT] [--rounds N] [--heddle BINARY]

One JSON object a line: milliseconds of a forward pass and of a training step, the best of several. PyTorch as written ("eager") and compiled
("compile"), JAX compiled. Of heddle a run of many passes minus a run of one. A library that is not there is skipped by name.
"""
import argparse
import json
import math
import os
import subprocess
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--threads", type=int, default=os.cpu_count())
PARSER.add_argument("--only", default="")
PARSER.add_argument("--rounds", type=int, default=10)
PARSER.add_argument("--heddle", default="build/release/heddle")
OPTIONS = PARSER.parse_args()
os.environ["OMP_NUM_THREADS"] = str(OPTIONS.threads)
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={OPTIONS.threads}"

BATCH, PLACES, WIDTH, HEADS, HIDDEN = 8, 128, 512, 8, 2048
IMAGES, HEIGHT, LINE, FILTERS, MEMORY, CLASSES = 16, 32, 100, 32, 128, 37
USERS, HISTORY, THINGS, EMBEDDED, LAYER = 256, 50, 10000, 32, 80


def report(case, library, run):
    """run() does it once and waits for the result."""
    name = f"{case} {library}"
    if OPTIONS.only not in name:
        return
    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    run()
    best = math.inf
    for _ in range(OPTIONS.rounds):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    print(json.dumps({"bench": "neural", "case": case, "library": library, "ms": round(best * 1e3, 3), "first_ms": round(first * 1e3, 1), "threads": OPTIONS.threads}), flush=True)


def with_torch():
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(OPTIONS.threads)
    torch.manual_seed(7)

    def norm(x, g, e):
        c = x - x.mean(-1, keepdim=True)
        return c / torch.sqrt((c * c).mean(-1, keepdim=True) + 1e-5) * g + e

    class Encoder(nn.Module):
        """Softmax, gelu and norm as formulas, as in the script."""

        def __init__(self):
            super().__init__()
            draw = lambda *shape: nn.Parameter(torch.rand(*shape) * 0.1 - 0.05)
            self.q, self.k, self.v, self.o = (draw(WIDTH, WIDTH) for _ in range(4))
            self.bq, self.bk, self.bv, self.bo, self.c2, self.e1, self.e2 = (draw(WIDTH) for _ in range(7))
            self.w1, self.w2, self.c1 = draw(WIDTH, HIDDEN), draw(HIDDEN, WIDTH), draw(HIDDEN)
            self.g1, self.g2 = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))

        def forward(self, x):
            split = lambda t: t.view(BATCH, PLACES, HEADS, WIDTH // HEADS).transpose(1, 2)
            q, k, v = split(x @ self.q + self.bq), split(x @ self.k + self.bk), split(x @ self.v + self.bv)
            s = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
            e = torch.exp(s - s.amax(-1, keepdim=True))
            a = ((e / e.sum(-1, keepdim=True)) @ v).transpose(1, 2).reshape(BATCH * PLACES, WIDTH)
            f = norm(x + (a @ self.o + self.bo), self.g1, self.e1)
            h = f @ self.w1 + self.c1
            return norm(f + (0.5 * h * (1 + torch.erf(h / math.sqrt(2))) @ self.w2 + self.c2), self.g2, self.e2)

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, FILTERS, 3, padding=1)
            self.conv2 = nn.Conv2d(FILTERS, 2 * FILTERS, 3, padding=1)
            self.conv3 = nn.Conv2d(2 * FILTERS, 4 * FILTERS, 3, padding=1, bias=False)
            self.normal = nn.BatchNorm2d(4 * FILTERS)
            self.lstm = nn.LSTM(4 * FILTERS * HEIGHT // 8, MEMORY, batch_first=True)
            self.scores = nn.Linear(MEMORY, CLASSES)

        def forward(self, x):
            m = F.max_pool2d(F.relu(self.conv1(x)), 2)
            m = F.max_pool2d(F.relu(self.conv2(m)), 2)
            m = F.max_pool2d(F.relu(self.normal(self.conv3(m))), (2, 1))
            s, _ = self.lstm(m.flatten(1, 2).transpose(1, 2))
            return self.scores(s).flatten(0, 1)

    class Interest(nn.Module):
        def __init__(self):
            super().__init__()
            draw = lambda *shape: nn.Parameter(torch.rand(*shape) * 0.6 - 0.3)
            self.embedding = draw(THINGS, EMBEDDED)
            self.w, self.u, self.w2, self.u2 = (draw(EMBEDDED, 3 * EMBEDDED) for _ in range(4))
            self.b, self.b2, self.attend = draw(3 * EMBEDDED), draw(3 * EMBEDDED), draw(EMBEDDED, EMBEDDED)
            self.l1, self.c1 = draw(4 * EMBEDDED, LAYER), draw(LAYER)
            self.l2, self.c2, self.l3 = draw(LAYER, LAYER // 2), draw(LAYER // 2), draw(LAYER // 2, 1)

        def unit(self, h, g, u, a):
            w = EMBEDDED
            r = h @ u[:, : 2 * w]
            update = torch.sigmoid(g[:, :w] + r[:, :w]) * a
            reset = torch.sigmoid(g[:, w : 2 * w] + r[:, w:])
            return h + update * (torch.tanh(g[:, 2 * w :] + (reset * h) @ u[:, 2 * w :]) - h)

        def forward(self, history, lengths, offer):
            e, target = self.embedding[history], self.embedding[offer]
            g, h, states = e @ self.w + self.b, torch.zeros(USERS, EMBEDDED), []
            for place in range(HISTORY):
                h = self.unit(h, g[place], self.u, 1.0)
                states.append(h)
            states = torch.stack(states)
            counts = torch.arange(1, HISTORY + 1)[None, :] <= lengths
            a = (states * (target @ self.attend)).sum(-1).T / math.sqrt(EMBEDDED)
            a = torch.softmax(a.masked_fill(~counts, -1e9), 1)
            g, h = states @ self.w2 + self.b2, torch.zeros(USERS, EMBEDDED)
            for place in range(HISTORY):
                h = self.unit(h, g[place], self.u2, a[:, place : place + 1])
            sums = (e * counts.T[:, :, None]).sum(0)
            d = F.leaky_relu(torch.cat([target, h, sums / lengths, target * h], 1) @ self.l1 + self.c1, 0.25)
            return torch.sigmoid(F.leaky_relu(d @ self.l2 + self.c2, 0.25) @ self.l3)

    x, goal = torch.rand(BATCH * PLACES, WIDTH) * 2 - 1, torch.rand(BATCH * PLACES, WIDTH)
    images, classes = torch.rand(IMAGES, 1, HEIGHT, LINE), torch.randint(CLASSES, (IMAGES * LINE // 4,))
    users = (torch.randint(THINGS, (HISTORY, USERS)), torch.randint(1, HISTORY + 1, (USERS, 1)), torch.randint(THINGS, (USERS,)))
    encoder, reader, interest = Encoder(), Reader(), Interest()
    cases = [
        ("transformer", encoder, (x,), lambda y: ((y - goal) ** 2).mean(), torch.optim.Adam(encoder.parameters())),
        ("crnn", reader, (images,), lambda y: F.cross_entropy(y, classes), torch.optim.SGD(reader.parameters(), 0.05, 0.9)),
        ("dien", interest, users, None, None),
    ]
    for compiled in (False, True):
        library = f"torch {torch.__version__} " + ("compile" if compiled else "eager")
        for name, network, inputs, loss, optimizer in cases:
            if OPTIONS.only not in f"{name} forward {library}" and OPTIONS.only not in f"{name} step {library}":
                continue
            run = torch.compile(network, dynamic=False) if compiled else network
            with torch.no_grad():
                report(f"{name} forward", library, lambda: run(*inputs))
            if optimizer is None:
                continue

            def step():
                optimizer.zero_grad()
                loss(run(*inputs)).backward()
                optimizer.step()

            report(f"{name} step", library, step)


def with_jax():
    import jax
    import jax.numpy as np
    from jax import lax, nn

    keys = iter(jax.random.split(jax.random.PRNGKey(7), 100))
    draw = lambda *shape, size=0.05: jax.random.uniform(next(keys), shape, minval=-size, maxval=size)

    def norm(x, g, e):
        c = x - x.mean(-1, keepdims=True)
        return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + e

    def encoder(p, x):
        split = lambda t: t.reshape(BATCH, PLACES, HEADS, WIDTH // HEADS).swapaxes(1, 2)
        q, k, v = (split(x @ p["w" + c] + p["b" + c]) for c in "qkv")
        a = nn.softmax(q @ k.swapaxes(-1, -2) / math.sqrt(WIDTH // HEADS)) @ v
        f = norm(x + a.swapaxes(1, 2).reshape(BATCH * PLACES, WIDTH) @ p["wo"] + p["bo"], p["g1"], p["e1"])
        h = f @ p["w1"] + p["c1"]
        return norm(f + (0.5 * h * (1 + lax.erf(h / math.sqrt(2)))) @ p["w2"] + p["c2"], p["g2"], p["e2"])

    def reader(p, x):
        conv = lambda x, f: lax.conv_general_dilated(x, f, (1, 1), "SAME")
        pool = lambda x, h, w: lax.reduce_window(x, -np.inf, lax.max, (1, 1, h, w), (1, 1, h, w), "VALID")
        of_channels = lambda t: t[None, :, None, None]
        m = pool(nn.relu(conv(x, p["f1"]) + of_channels(p["b1"])), 2, 2)
        c = conv(pool(nn.relu(conv(m, p["f2"]) + of_channels(p["b2"])), 2, 2), p["f3"])
        d = c - c.mean((0, 2, 3), keepdims=True)
        n = d / np.sqrt((d * d).mean((0, 2, 3), keepdims=True) + 1e-5) * of_channels(p["gamma"]) + of_channels(p["beta"])
        s = pool(nn.relu(n), 2, 1).reshape(IMAGES, -1, LINE // 4).transpose(2, 0, 1)

        def unit(state, z):
            out, cell = state
            i, f, o, g = np.split(z + out @ p["u"], 4, 1)
            cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * np.tanh(g)
            out = nn.sigmoid(o) * np.tanh(cell)
            return (out, cell), out

        start = np.zeros((IMAGES, MEMORY))
        _, outs = lax.scan(unit, (start, start), s @ p["w"] + p["b"])
        return (outs.swapaxes(0, 1) @ p["o"] + p["c"]).reshape(-1, CLASSES)

    def interest(p, history, lengths, offer):
        w = EMBEDDED

        def unit(h, g, u, a):
            r = h @ u[:, : 2 * w]
            update, reset = nn.sigmoid(g[:, :w] + r[:, :w]) * a, nn.sigmoid(g[:, w : 2 * w] + r[:, w:])
            return h + update * (np.tanh(g[:, 2 * w :] + (reset * h) @ u[:, 2 * w :]) - h)

        e, target, start = p["embedding"][history], p["embedding"][offer], np.zeros((USERS, w))
        _, states = lax.scan(lambda h, g: 2 * (unit(h, g, p["u"], 1.0),), start, e @ p["w"] + p["b"])
        counts = np.arange(1, HISTORY + 1)[None, :] <= lengths
        a = nn.softmax(np.where(counts, (states * (target @ p["attend"])).sum(-1).T / math.sqrt(w), -1e9), 1)
        h, _ = lax.scan(lambda h, t: (unit(h, t[0], p["u2"], t[1][:, None]), None), start, (states @ p["w2"] + p["b2"], a.T))
        sums = (e * counts.T[:, :, None]).sum(0)
        d = nn.leaky_relu(np.concatenate([target, h, sums / lengths, target * h], 1) @ p["l1"] + p["c1"], 0.25)
        return nn.sigmoid(nn.leaky_relu(d @ p["l2"] + p["c2"], 0.25) @ p["l3"])

    def adam(p, d, state):
        m, v, t = state
        t = t + 1
        m = jax.tree.map(lambda m, d: 0.9 * m + 0.1 * d, m, d)
        v = jax.tree.map(lambda v, d: 0.999 * v + 0.001 * d * d, v, d)
        rate = 0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return jax.tree.map(lambda p, m, v: p - rate * m / (np.sqrt(v) + 1e-8), p, m, v), (m, v, t)

    def descend(p, d, v):
        v = jax.tree.map(lambda v, d: 0.9 * v - 0.05 * d, v, d)
        return jax.tree.map(np.add, p, v), v

    def cross_entropy(scores, classes):
        return -np.take_along_axis(nn.log_softmax(scores), classes[:, None], 1).mean()

    x, goal = draw(BATCH * PLACES, WIDTH, size=1), draw(BATCH * PLACES, WIDTH, size=1)
    p = {"w" + c: draw(WIDTH, WIDTH) for c in "qkvo"} | {"b" + c: draw(WIDTH) for c in "qkvo"} | {n: draw(WIDTH) for n in ("c2", "e1", "e2")}
    p |= {"w1": draw(WIDTH, HIDDEN), "w2": draw(HIDDEN, WIDTH), "c1": draw(HIDDEN), "g1": np.ones(WIDTH), "g2": np.ones(WIDTH)}
    zeros = lambda p: jax.tree.map(np.zeros_like, p)
    k, features = FILTERS, 4 * FILTERS * HEIGHT // 8
    r = {"f1": draw(k, 1, 3, 3), "f2": draw(2 * k, k, 3, 3), "f3": draw(4 * k, 2 * k, 3, 3), "b1": draw(k), "b2": draw(2 * k), "gamma": np.ones(4 * k), "beta": draw(4 * k)}
    r |= {"w": draw(features, 4 * MEMORY), "u": draw(MEMORY, 4 * MEMORY), "b": draw(4 * MEMORY), "o": draw(MEMORY, CLASSES), "c": draw(CLASSES)}
    images, classes = draw(IMAGES, 1, HEIGHT, LINE, size=1), jax.random.randint(next(keys), (IMAGES * LINE // 4,), 0, CLASSES)
    i = {"embedding": draw(THINGS, EMBEDDED), "attend": draw(EMBEDDED, EMBEDDED), "l1": draw(4 * EMBEDDED, LAYER), "c1": draw(LAYER), "l2": draw(LAYER, LAYER // 2), "c2": draw(LAYER // 2), "l3": draw(LAYER // 2, 1)}
    i |= {n: draw(EMBEDDED, 3 * EMBEDDED) for n in ("w", "u", "w2", "u2")} | {n: draw(3 * EMBEDDED) for n in ("b", "b2")}
    users = (jax.random.randint(next(keys), (HISTORY, USERS), 0, THINGS), jax.random.randint(next(keys), (USERS, 1), 1, HISTORY + 1), jax.random.randint(next(keys), (USERS,), 0, THINGS))
    cases = [
        ("transformer", encoder, p, (x,), lambda y: ((y - goal) ** 2).mean(), adam, (zeros(p), zeros(p), 0.0)),
        ("crnn", reader, r, (images,), lambda y: cross_entropy(y, classes), descend, zeros(r)),
        ("dien", interest, i, users, None, None, None),
    ]
    library = f"jax {jax.__version__}"
    for name, network, weights, inputs, loss, learn, state in cases:
        forward = jax.jit(network)
        report(f"{name} forward", library, lambda: jax.block_until_ready(forward(weights, *inputs)))
        if loss is None:
            continue

        @jax.jit
        def step(weights, state):
            return learn(weights, jax.grad(lambda w: loss(network(w, *inputs)))(weights), state)

        report(f"{name} step", library, lambda: jax.block_until_ready(step(weights, state)))


def with_heddle():
    def seconds(name, fusion, passes, steps):
        words = [OPTIONS.heddle, "run", "--precision", "single", "--fusion", fusion, "--threads", str(OPTIONS.threads), "--stats", "--json",
                 f"bench/scripts/{name}.dml", "-nvargs", f"passes={passes}", f"steps={steps}"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        line = next(line for line in (done.stdout + done.stderr).splitlines() if line.startswith('{"rank"'))
        return json.loads(line)["elapsed_ns"] / 1e9

    for name, case in (("transformer", "forward"), ("transformer", "step"), ("crnn", "forward"), ("crnn", "step"), ("dien", "forward")):
        for fusion in ("off", "cost"):
            library = f"heddle --fusion {fusion}"
            if OPTIONS.only not in f"{name} {case} {library}":
                continue
            many = OPTIONS.rounds + 1
            one, all_of_them = (min(seconds(name, fusion, n if case == "forward" else 1, n if case == "step" else 1) for _ in range(3)) for n in (1, many))
            print(json.dumps({"bench": "neural", "case": f"{name} {case}", "library": library, "ms": round((all_of_them - one) / OPTIONS.rounds * 1e3, 3), "first_ms": round(one * 1e3, 1), "threads": OPTIONS.threads}), flush=True)


for library in (with_heddle, with_torch, with_jax):
    try:
        library()
    except ImportError as missing:
        print(json.dumps({"bench": "neural", "skipped": str(missing)}), flush=True)
    except OSError as missing:
        print(json.dumps({"bench": "neural", "skipped": str(missing)}), flush=True)

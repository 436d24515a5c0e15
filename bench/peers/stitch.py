#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of `heddle-bench stitch` in PyTorch (as written and compiled), JAX and, of sparse matrices, SciPy, one JSON object a line.

    bench/peers/stitch.py [--threads N] [--only TEXT] [--rounds N]

Names are those of heddle-bench, so that lines can be joined by them. A library that is not there is skipped by name.
"""
import argparse
import json
import math
import os
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--threads", type=int, default=os.cpu_count())
PARSER.add_argument("--only", default="")
PARSER.add_argument("--rounds", type=int, default=10)
OPTIONS = PARSER.parse_args()
os.environ["OMP_NUM_THREADS"] = str(OPTIONS.threads)

import numpy

SHAPES = [(8192, 1024), (750000, 32), (64, 30000), (1, 10_000_000)]


class Formulas:
    """The cases by functions that libraries name differently: sums, means and largest cells of an axis, and cell by cell."""

    def __init__(self, sum, mean, max, exp, log, sqrt, tanh):
        self.sum, self.mean, self.max, self.exp, self.log, self.sqrt, self.tanh = sum, mean, max, exp, log, sqrt, tanh

    def softmax(self, x):
        e = self.exp(x - self.max(x, 1))
        return e / self.sum(e, 1)

    def log_softmax(self, x):
        m = x - self.max(x, 1)
        return m - self.log(self.sum(self.exp(m), 1))

    def norm(self, x, g, b, axis):
        c = x - self.mean(x, axis)
        return c / self.sqrt(self.mean(c * c, axis) + 1e-5) * g + b

    def layer_norm(self, x, g, b):
        return self.norm(x, g, b, 1)

    def layer_norm_and_residual(self, x, d, g, b):
        t = x + d
        return self.norm(t, g, b, 1), t

    def batch_norm(self, x, g, b):
        return self.norm(x, g, b, 0)

    def gelu_and_bias(self, x, b):
        h = x + b
        return 0.5 * h * (1 + self.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))

    def softmax_backward(self, y, d):
        return (d - self.sum(d * y, 1)) * y

    def layer_norm_backward(self, x, d, g):
        c = x - self.mean(x, 1)
        r = 1 / self.sqrt(self.mean(c * c, 1) + 1e-5)
        n, gd = c * r, d * g
        return (gd - self.mean(gd, 1) - n * self.mean(gd * n, 1)) * r, self.sum(d * n, 0), self.sum(d, 0)

    def cosine_rows(self, x):
        return x / self.sqrt(self.sum(x * x, 1))

    def zscore_and_colMaxs(self, x):
        c = x - self.mean(x, 0)
        z = c / self.sqrt(self.sum(c * c, 0) / (x.shape[0] - 1))
        return z, self.max(z, 0)

    def sinkhorn_3_steps(self, x):
        a = self.exp(x)
        for _ in range(3):
            a = a / self.sum(a, 1)
            a = a / self.sum(a, 0)
        return a

    def logsumexp(self, x):
        h = self.max(x, 1)
        return h + self.log(self.sum(self.exp(x - h), 1))


# Name, inputs (g and b are rows), whether it makes sense for a single row.
CASES = [("softmax", "X", True), ("log-softmax", "X", True), ("layer norm", "Xgb", True), ("layer norm and residual", "XDgb", True), ("batch norm", "Xgb", False),
         ("gelu and bias", "Xb", True), ("softmax backward", "YD", True), ("layer norm backward", "XDg", True), ("cosine rows", "X", True),
         ("z-score and colMaxs", "X", False), ("sinkhorn 3 steps", "X", False), ("logsumexp", "X", True)]


def measure(library, formulas, convert, wrap, wait):
    for name, inputs, of_one_row in CASES:
        for rows, columns in SHAPES:
            for cells, precision in (("f8", "double"), ("f4", "single")):
                case = f"{name} {rows}x{columns} {precision}"
                if (rows == 1 and not of_one_row) or OPTIONS.only not in f"{case} {library}":
                    continue
                random = numpy.random.default_rng(7)
                given = [convert((random.random((1 if i in "gb" else rows, columns)) + 0.1).astype(cells)) for i in inputs]
                method = getattr(formulas, {"log-softmax": "log_softmax", "z-score and colMaxs": "zscore_and_colMaxs"}.get(name, name.replace(" ", "_")))
                run = wrap(method)
                begin = time.perf_counter()
                wait(run(*given))
                first, best = time.perf_counter() - begin, math.inf
                for _ in range(OPTIONS.rounds):
                    begin = time.perf_counter()
                    wait(run(*given))
                    best = min(best, time.perf_counter() - begin)
                print(json.dumps({"bench": "stitch", "case": case, "library": library, "ms": round(best * 1e3, 3), "first_ms": round(first * 1e3, 1), "threads": OPTIONS.threads}), flush=True)


def with_torch():
    import torch

    torch.set_num_threads(OPTIONS.threads)
    torch.set_grad_enabled(False)
    formulas = Formulas(lambda x, a: x.sum(a, keepdim=True), lambda x, a: x.mean(a, keepdim=True), lambda x, a: x.amax(a, keepdim=True), torch.exp, torch.log, torch.sqrt, torch.tanh)

    def compiled(f):
        torch._dynamo.reset()
        return torch.compile(f, dynamic=False)

    measure(f"torch {torch.__version__} eager", formulas, torch.from_numpy, lambda f: f, lambda y: y)
    measure(f"torch {torch.__version__} compile", formulas, torch.from_numpy, compiled, lambda y: y)


def with_jax():
    import jax
    import jax.numpy as np

    jax.config.update("jax_enable_x64", True)
    formulas = Formulas(lambda x, a: x.sum(a, keepdims=True), lambda x, a: x.mean(a, keepdims=True), lambda x, a: x.max(a, keepdims=True), np.exp, np.log, np.sqrt, np.tanh)
    measure(f"jax {jax.__version__}", formulas, np.asarray, jax.jit, jax.block_until_ready)


def report(case, library, run):
    if OPTIONS.only not in f"{case} {library}":
        return
    begin = time.perf_counter()
    run()
    first, best = time.perf_counter() - begin, math.inf
    for _ in range(OPTIONS.rounds):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    print(json.dumps({"bench": "stitch", "case": case, "library": library, "ms": round(best * 1e3, 3), "first_ms": round(first * 1e3, 1), "threads": OPTIONS.threads}), flush=True)


def each_mask(*names):
    """Names as heddle-bench has them, a CSR matrix of values in [0.1, 1.1), and three matrices of 64 columns; only those that a case of `names` asks for."""
    import scipy.sparse

    for density in (1e-3, 1e-2, 1e-1):
        for cells, precision in (("f8", "double"), ("f4", "single")):
            shape = f"8192x8192 {density:g} {precision}"
            if not any(OPTIONS.only in f"{name} {shape}" for name in names):
                continue
            random = numpy.random.default_rng(7)
            mask = scipy.sparse.random(8192, 8192, density, "csr", random_state=random, data_rvs=lambda n: random.random(n) + 0.1).astype(cells)
            yield shape, mask, [(random.random((8192, 64)) + 0.1).astype(cells) for _ in range(3)]


def with_scipy():
    """Softmax and attention at the entries of a mask, by the arrays of a CSR matrix; rows without entries are left out."""
    import scipy
    import scipy.sparse

    library = f"scipy {scipy.__version__}"
    for shape, mask, (q, k, v) in each_mask("sparse softmax", "masked attention"):
        counts = numpy.diff(mask.indptr)
        rows = numpy.repeat(numpy.arange(mask.shape[0]), counts)
        starts = mask.indptr[:-1][counts > 0]

        def softmax(scores, weights):
            e = numpy.exp(scores - numpy.repeat(numpy.maximum.reduceat(scores, starts), counts[counts > 0])) * weights
            return e / numpy.repeat(numpy.add.reduceat(e, starts), counts[counts > 0])

        def attention():
            scores = numpy.einsum("ij,ij->i", q[rows], k[mask.indices]) * mask.data / 8
            return scipy.sparse.csr_matrix((softmax(scores, mask.data), mask.indices, mask.indptr), mask.shape) @ v

        report(f"sparse softmax {shape}", library, lambda: softmax(mask.data, 1))
        report(f"masked attention {shape}", library, attention)


def with_dense_attention():
    """Attention beside -Infinity with all cells, as torch has it."""
    import torch

    torch.set_grad_enabled(False)
    for shape, mask, factors in each_mask("hidden attention"):
        shown = torch.from_numpy(mask.toarray() != 0)
        q, k, v = (torch.from_numpy(factor) for factor in factors)
        report(f"hidden attention {shape}", f"torch {torch.__version__} scaled_dot_product_attention", lambda: torch.nn.functional.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], attn_mask=shown))


for library in (with_torch, with_jax, with_scipy, with_dense_attention):
    try:
        library()
    except ImportError as missing:
        print(json.dumps({"bench": "stitch", "skipped": str(missing)}), flush=True)

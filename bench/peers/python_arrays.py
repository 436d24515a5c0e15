#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Array expressions by lazy arrays of Heddle beside NumPy, Numba and JAX, one JSON object a line.

    bench/peers/python_arrays.py [--rows 1000000] [--columns 20] [--rounds 7] [--threads 2]

    standardized product   ((X - X.mean(0)) / X.std(0)).T @ y
    step                   one operator on a small array, built and not computed (Heddle alone)
    small program          (x + 1).sum() of 3 x 4 from expression to number

Libraries take turns in each round, and the best round of each counts: `ms` by the wall clock, `cpu_ms` of all threads. Inputs are NumPy arrays;
JAX has doubles, and its own copies of the inputs before the clock starts. What compiles has done so before. `difference` is the greatest relative
one from NumPy's result. Needs the package heddle, and numba and jax where they are to be compared.
"""
import argparse
import json
import os
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rows", type=int, default=1_000_000)
parser.add_argument("--columns", type=int, default=20)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--threads", type=int, default=os.cpu_count())
arguments = parser.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = str(arguments.threads)

import numpy as np  # noqa: E402  (threads are set first)

import heddle as hd  # noqa: E402

generator = np.random.default_rng(1)
X = generator.standard_normal((arguments.rows, arguments.columns))
y = generator.standard_normal(arguments.rows)


def by_numpy():
    return ((X - X.mean(0)) / X.std(0)).T @ y


def by_heddle():
    x = hd.array(X)
    return ((x - x.mean(0)) / x.std(0)).T @ y


def numba_forms():
    """Loops over rows, each thread with sums of its own: pass by pass as the expression says; and rearranged by hand so that one pass adds up
    squares and products and the division comes last, which rounds otherwise."""
    import numba

    @numba.njit(parallel=True, fastmath=True)
    def by_passes(X, y):
        rows, columns = X.shape
        parts = numba.get_num_threads()
        sums, squares, products = np.zeros((parts, columns)), np.zeros((parts, columns)), np.zeros((parts, columns))
        for part in numba.prange(parts):
            for i in range(part * rows // parts, (part + 1) * rows // parts):
                for j in range(columns):
                    sums[part, j] += X[i, j]
        means = sums.sum(0) / rows
        for part in numba.prange(parts):
            for i in range(part * rows // parts, (part + 1) * rows // parts):
                for j in range(columns):
                    squares[part, j] += (X[i, j] - means[j]) ** 2
        deviations = np.sqrt(squares.sum(0) / rows)
        for part in numba.prange(parts):
            for i in range(part * rows // parts, (part + 1) * rows // parts):
                for j in range(columns):
                    products[part, j] += (X[i, j] - means[j]) / deviations[j] * y[i]
        return products.sum(0)

    @numba.njit(parallel=True, fastmath=True)
    def rearranged(X, y):
        rows, columns = X.shape
        parts = numba.get_num_threads()
        sums, squares, products = np.zeros((parts, columns)), np.zeros((parts, columns)), np.zeros((parts, columns))
        for part in numba.prange(parts):
            for i in range(part * rows // parts, (part + 1) * rows // parts):
                for j in range(columns):
                    sums[part, j] += X[i, j]
        means = sums.sum(0) / rows
        for part in numba.prange(parts):
            for i in range(part * rows // parts, (part + 1) * rows // parts):
                for j in range(columns):
                    rest = X[i, j] - means[j]
                    squares[part, j] += rest * rest
                    products[part, j] += rest * y[i]
        return products.sum(0) / np.sqrt(squares.sum(0) / rows)

    return {"numba": lambda: by_passes(X, y), "numba, rearranged by hand": lambda: rearranged(X, y)}


def jax_forms():
    import jax
    jax.config.update("jax_enable_x64", True)
    of_jax, y_of_jax = jax.numpy.asarray(X), jax.numpy.asarray(y)
    product = jax.jit(lambda x, y: ((x - x.mean(0)) / x.std(0)).T @ y)
    return {"jax": lambda: np.asarray(product(of_jax, y_of_jax).block_until_ready())}


def report(case, peer, **figures):
    print(json.dumps({"bench": "python_arrays", "case": case, "peer": peer, **figures}), flush=True)


forms = {"heddle": lambda: by_heddle().compute(threads=arguments.threads), "numpy": by_numpy}
for name, make in (("numba", numba_forms), ("jax", jax_forms)):
    try:
        forms.update(make())
    except ImportError:
        report("standardized product", name, skipped="it is not installed")
expected = by_numpy()
best = {name: [float("inf")] * 2 for name in forms}
differences = {}
for _ in range(arguments.rounds + 1):  # the first round compiles
    for name, form in forms.items():
        time.sleep(0.2)  # threads of the one before stop to wait actively, which counts as time of cores
        begin, begin_of_cores = time.perf_counter(), time.process_time()
        result = form()
        times = time.perf_counter() - begin, time.process_time() - begin_of_cores
        best[name] = [min(one, other) for one, other in zip(best[name], times)]
        differences[name] = float(np.max(np.abs(result - expected) / np.abs(expected)))
for name, (seconds, of_cores) in best.items():
    report("standardized product", name, rows=arguments.rows, columns=arguments.columns, threads=arguments.threads,
           ms=round(seconds * 1e3, 2), cpu_ms=round(of_cores * 1e3, 2), difference=differences[name])

small = hd.array(np.ones((3, 4)))
row = small.mean(0)
for name, step in (("x + x", lambda: small + small), ("x - row", lambda: small - row), ("x.sum(0)", lambda: small.sum(0)),
                   ("x[1:3]", lambda: small[1:3]), ("np.exp(x)", lambda: np.exp(small))):
    seconds = float("inf")
    for _ in range(arguments.rounds):
        begin = time.process_time()
        for _ in range(2000):
            step()
        seconds = min(seconds, (time.process_time() - begin) / 2000)
    report("step", "heddle", expression=name, us=round(seconds * 1e6, 2))
for name, form in (("heddle", lambda: float((small + 1).sum())),):
    seconds = float("inf")
    for _ in range(20 * arguments.rounds):
        begin = time.perf_counter()
        form()
        seconds = min(seconds, time.perf_counter() - begin)
    report("small program", name, us=round(seconds * 1e6, 1))

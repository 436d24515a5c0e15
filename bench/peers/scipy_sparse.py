#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sparse cases of `heddle-bench fusion` in SciPy, one JSON object a line. Needs python3-scipy (Debian).

    bench/peers/scipy_sparse.py [CELLS]        CELLS as --cells has it: 100000000
"""
import json
import sys
import time

import numpy as np
import scipy
import scipy.sparse as sp


def random_sparse(rows, columns, density, seed):
    random = np.random.default_rng(seed)
    counts = random.binomial(columns, density, rows)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    # Distinct columns of each row: drawn with a few to spare, sorted, repetitions dropped.
    indexes = random.integers(0, columns, offsets[-1], dtype=np.int32)
    matrix = sp.csr_matrix((random.random(offsets[-1]) + 0.1, indexes, offsets), shape=(rows, columns))
    matrix.sum_duplicates()
    return matrix


def best_ms(work):
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


cells = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000_000
rows, columns = cells // 100, 1000
for density in (0.1, 0.01, 0.001):
    x, y, z = (random_sparse(rows, columns, density, seed) for seed in (41, 43, 44))
    v = np.random.default_rng(42).random(columns)
    for case, work in (("sum(X*Y*Z)", lambda: x.multiply(y).multiply(z).sum()),
                       ("t(X)%*%(X%*%v)", lambda: x.T @ (x @ v))):
        print(json.dumps({"bench": "scipy", "case": f"{case} {rows}x{columns} sparse {density}",
                          "ms": round(best_ms(work), 3), "version": scipy.__version__}), flush=True)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of `heddle-bench transforms` in pandas and scikit-learn, one JSON object a line.

    bench/peers/one_hot.py [CELLS]        CELLS as --cells has it: 10000000
"""
import json
import sys
import time

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

WORDS = 10_000


def frame_of_words(rows, columns):
    cells = np.arange(rows * columns, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = np.array([f"word{k}" for k in range(WORDS)], dtype=object)
    drawn = words[(cells >> np.uint64(32)) % np.uint64(WORDS)].reshape(rows, columns)
    return pd.DataFrame({f"C{j + 1}": drawn[:, j] for j in range(columns)})


def best_ms(work, rounds=3):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


cells = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
for columns in (1, 10, 100):
    rows = cells // columns
    frame = frame_of_words(rows, columns)
    as_objects = frame.astype(object).to_numpy()
    cases = {
        "pandas.factorize": lambda: [pd.factorize(frame[name]) for name in frame],
        "OneHotEncoder": lambda: OneHotEncoder().fit_transform(as_objects),
    }
    for name, work in cases.items():
        ms = best_ms(work)
        print(json.dumps({"bench": "one_hot", "case": f"{name} {rows}x{columns}", "ms": round(ms, 1),
                          "ns_per_cell": round(ms * 1e6 / (rows * columns), 2)}), flush=True)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of `heddle-bench files --data FOLDER`, read and written by Polars, pandas, SciPy and scikit-learn; one
JSON object a line.

    bench/peers/files.py FOLDER [ROUNDS]
"""
import importlib
import json
import os
import sys
import time


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(json.dumps({"bench": "files", "peer": name, "skipped": "it is not installed"}), flush=True)
        return None


def best_ms(work):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times), result


def report(peer, case, ms, path):
    print(json.dumps({"bench": "files", "peer": peer, "case": case, "ms": round(ms, 1),
                      "mb_per_s": round(os.path.getsize(path) / ms / 1e3)}), flush=True)


def run(peer, case, file, read, write=None):
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        return
    ms, value = best_ms(lambda: read(path))
    report(peer, f"{case} read", ms, path)
    if write is None:
        return
    copy = path + ".peer"
    ms, _ = best_ms(lambda: write(value, copy))
    report(peer, f"{case} write", ms, copy)
    os.remove(copy)


if len(sys.argv) < 2:
    sys.exit(__doc__)
folder = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
csv_files = [("csv doubles", "doubles.csv"), ("csv decimals", "decimals.csv"), ("csv frame", "frame.csv")]
if polars := library("polars"):
    for case, file in csv_files:
        run("polars", case, file, lambda path: polars.read_csv(path, has_header=False),
            lambda frame, path: frame.write_csv(path, include_header=False))
if pandas := library("pandas"):
    for case, file in csv_files:
        run("pandas", case, file, lambda path: pandas.read_csv(path, header=None),
            lambda frame, path: frame.to_csv(path, header=False, index=False))
if scipy_io := library("scipy.io"):
    run("scipy", "mm sparse", "sparse.mtx", scipy_io.mmread, scipy_io.mmwrite)
if sklearn := library("sklearn.datasets"):
    run("scikit-learn", "libsvm sparse", "sparse.libsvm", sklearn.load_svmlight_file,
        lambda data, path: sklearn.dump_svmlight_file(*data, path, zero_based=False))

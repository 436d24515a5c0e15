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


def best(work, count):
    times, of_cores = [], []
    for _ in range(count):
        begin, begin_of_cores = time.perf_counter(), time.process_time()
        result = work()
        times.append(time.perf_counter() - begin)
        of_cores.append(time.process_time() - begin_of_cores)
    return (1e3 * min(times), 1e3 * min(of_cores)), result


def report(peer, case, taken, path):
    ms, cpu_ms = taken
    print(json.dumps({"bench": "files", "peer": peer, "case": case, "ms": round(ms, 1), "cpu_ms": round(cpu_ms, 1),
                      "mb_per_s": round(os.path.getsize(path) / ms / 1e3)}), flush=True)


def run(peer, case, file, read, write=None, writes=None):
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        return
    taken, value = best(lambda: read(path), rounds)
    report(peer, f"{case} read", taken, path)
    if write is None:
        return
    copy = os.path.join(folder, "peer-" + file)
    taken, _ = best(lambda: write(value, copy), writes or rounds)
    report(peer, f"{case} write", taken, copy)
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
            lambda frame, path: frame.to_csv(path, header=False, index=False), writes=1)  # Half a minute each.
if scipy_io := library("scipy.io"):
    run("scipy", "mm sparse", "sparse.mtx", scipy_io.mmread,
        lambda matrix, path: scipy_io.mmwrite(path, matrix))
if sklearn := library("sklearn.datasets"):
    run("scikit-learn", "libsvm sparse", "sparse.libsvm", sklearn.load_svmlight_file,
        lambda data, path: sklearn.dump_svmlight_file(*data, path, zero_based=False))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python module beside NumPy and scikit-learn: functions of the library, what a call costs, what values cost on their way.

    PYTHONPATH=build/release/python bench/peers/python_library.py [--rows 1000000] [--columns 100] [--threads 2] [--rounds 3]

One line a case: seconds (best round, both in turns) of Heddle and of the peer, how many times slower the peer is, and the
same quality of what both computed.
"""
import argparse
import os
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--rows", type=int, default=1_000_000)
PARSER.add_argument("--columns", type=int, default=100)
PARSER.add_argument("--threads", type=int, default=2)
PARSER.add_argument("--rounds", type=int, default=3)
PARSER.add_argument("--only", default="")
OPTIONS = PARSER.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(OPTIONS.threads)

import heddle as hd  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402

ROWS, COLUMNS = OPTIONS.rows, OPTIONS.columns
random = np.random.default_rng(1)
X = random.random((ROWS, COLUMNS))
weights = random.uniform(-1, 1, COLUMNS)
y = X @ weights + random.random(ROWS)
label = 1.0 + (X @ weights - weights.sum() / 2 + random.uniform(-1, 1, ROWS) > 0)


def run(script, outputs, **inputs):
    return hd.run(script, inputs, outputs, threads=OPTIONS.threads, print=lambda text: None)


def squares(B):
    return float(((y - X @ B) ** 2).sum())


def logistic(B):
    signs = 3 - 2 * label  # class 1 is the first
    return float(np.logaddexp(0, -signs * (X @ B[:-1] + B[-1])).sum())


def inertia(centers):
    norms = (X * X).sum(1)
    best = np.full(ROWS, np.inf)
    for center in centers:
        best = np.minimum(best, norms - 2 * (X @ center) + center @ center)
    return float(best.sum())


start = X[random.choice(ROWS, 10, replace=False)]
CASES = {
    "lm beside LinearRegression": (
        lambda: run("B = lm(X, y, verbose=FALSE)", "B", X=X, y=y).B.ravel(),
        lambda: LinearRegression(fit_intercept=False).fit(X, y).coef_, squares),
    "lm beside np.linalg.lstsq": (
        lambda: run("B = lm(X, y, verbose=FALSE)", "B", X=X, y=y).B.ravel(),
        lambda: np.linalg.lstsq(X, y, rcond=None)[0], squares),
    "multiLogReg beside LogisticRegression": (
        lambda: run("B = multiLogReg(X, y, icpt=1, reg=1e-6, verbose=FALSE)", "B", X=X, y=label).B.ravel(),
        lambda: (lambda m: -np.append(m.coef_, m.intercept_))(LogisticRegression(C=1e6, max_iter=200).fit(X, label)),
        logistic),
    "kmeans beside KMeans, 10 clusters, 20 iterations": (
        lambda: run("[C, Y] = kmeans(X, k=10, runs=1, max_iter=20, eps=1e-12, seed=7, is_verbose=FALSE)", "C", X=X).C,
        lambda: KMeans(10, init="random", n_init=1, max_iter=20, tol=0, algorithm="lloyd", random_state=7).fit(X)
        .cluster_centers_, inertia),
    "pca beside PCA, 10 components": (
        lambda: run("[S, C] = pca(X, K=10, scale=FALSE)", "C", X=X).C,
        lambda: PCA(10, svd_solver="covariance_eigh").fit(X).components_.T,
        lambda C: float((((X - X.mean(0)) @ C) ** 2).sum())),
}


def best_of(rounds, *works):
    """The best time of each in turns, and what each has returned last."""
    times, results = [float("inf")] * len(works), [None] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            if len(works) > 1:
                time.sleep(0.3)  # threads that the other library has left spinning go to sleep
            begin = time.perf_counter()
            results[index] = work()
            times[index] = min(times[index], time.perf_counter() - begin)
    return times, results


for name, (ours, theirs, quality) in CASES.items():
    if OPTIONS.only not in name:
        continue
    (own, peer), (mine, other) = best_of(OPTIONS.rounds, ours, theirs)
    print(f"{name}: {own:.3f} s, {peer:.3f} s, {peer / own:.2f} times; quality {quality(mine):.9g} and {quality(other):.9g}",
          flush=True)

if OPTIONS.only in "a call, a conversion":
    (call,), _ = best_of(1000, lambda: hd.run("s = 1 + 2", outputs="s"))
    print(f"a call of a script of scalars: {call * 1e6:.0f} us")
    large = np.zeros((2**27 // 1024, 1024))  # 1 GB
    (echo,), ((shared,)) = best_of(20, lambda: hd.run("Y = X", {"X": large}, "Y").Y)
    print(f"1 GB in and out: {echo * 1e6:.0f} us, "
          f"{'no copy' if np.shares_memory(shared, large) else 'COPIED'}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of the library beside scikit-learn and NumPy on the same 10^6 x 50 doubles, one JSON object a line.

    bench/peers/library_sklearn.py [--heddle build/release/heddle] [--rows 1000000] [--threads 2] [--rounds 3] [--only NAME,...]

Times are of the call, data in memory, the best round of one process. `loss` is the same function of what both computed:
the objective that is minimised, or the sum of the squares of the result's cells.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--heddle", default="build/release/heddle")
PARSER.add_argument("--rows", type=int, default=1_000_000)
PARSER.add_argument("--threads", type=int, default=2)
PARSER.add_argument("--rounds", type=int, default=3)
PARSER.add_argument("--only", default="")
PARSER.add_argument("--folder", default="/dev/shm")
OPTIONS = PARSER.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(OPTIONS.threads)
# Threads that wait must not take the processors of other programs, nor of this one's other library.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import numpy as np  # noqa: E402
import threadpoolctl  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge  # noqa: E402
from sklearn.metrics import accuracy_score, confusion_matrix, mean_squared_error, roc_auc_score  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

random = np.random.default_rng(1)
X = random.random((OPTIONS.rows, 50))
weights = random.uniform(-1, 1, 50)
y = X @ weights + random.random(OPTIONS.rows)
label = (X @ weights - weights.sum() / 2 + random.uniform(-1, 1, OPTIONS.rows) > 0).astype(float)
classes = np.ceil(random.random(OPTIONS.rows) * 5)
guesses = np.where(random.random(OPTIONS.rows) < 0.7, classes, np.ceil(random.random(OPTIONS.rows) * 5))


def squares(B, reg):
    residual = y - X @ B[:50] - B[50]
    return residual @ residual + reg * (B[:50] @ B[:50])


def logistic(B, reg):
    scores = X @ B[:50] + B[50]
    return np.logaddexp(0, -(2 * label - 1) * scores).sum() + reg / 2 * (B[:50] @ B[:50])


def hinges(B, reg):
    scores = X @ B[:50] + B[50]
    return 0.5 * reg * (B @ B) + 0.5 * (np.maximum(0, 1 - (2 * label - 1) * scores) ** 2).sum()


def inertia(C):
    distances = (C ** 2).sum(axis=1) - 2 * X @ C.T
    return distances.min(axis=1).sum() + (X ** 2).sum()


def left_over(C):
    Z = X - X.mean(axis=0)
    return (Z ** 2).sum() - ((Z @ C) ** 2).sum()


def linear(model):
    return np.append(np.ravel(model.coef_), model.intercept_)


def sum_of_squares(*results):
    return float(sum((np.asarray(result, dtype=float) ** 2).sum() for result in results))


# Name; the call in DML; what is written of it (a matrix); the loss of what is written; the peer's name, call and loss.
CASES = [
    ("lmDS", "B = lmDS(X=X, y=y, icpt=1, reg=0.0, verbose=FALSE)", "B", lambda B: squares(B, 0),
     "LinearRegression", lambda: LinearRegression().fit(X, y), lambda m: squares(linear(m), 0)),
    ("lmDS, reg=1", "B = lmDS(X=X, y=y, icpt=1, reg=1.0, verbose=FALSE)", "B", lambda B: squares(B, 1),
     "Ridge", lambda: Ridge(alpha=1).fit(X, y), lambda m: squares(linear(m), 1)),
    ("lmCG, reg=1", "B = lmCG(X=X, y=y, icpt=1, reg=1.0, tol=1e-9, verbose=FALSE)", "B", lambda B: squares(B, 1),
     "Ridge(solver='sparse_cg')", lambda: Ridge(alpha=1, solver="sparse_cg", tol=1e-9).fit(X, y),
     lambda m: squares(linear(m), 1)),
    ("lmPredict", "R = lmPredict(X=X, B=w, icpt=0)", "as.matrix(sum(R^2))", lambda v: v[0],
     "LinearRegression.predict", lambda: FITTED["linear"].predict(X), sum_of_squares),
    ("multiLogReg", "B = multiLogReg(X=X, Y=2 - label, icpt=1, reg=1.0, tol=1e-6, verbose=FALSE)", "B",
     lambda B: logistic(B, 1), "LogisticRegression", lambda: LogisticRegression(C=1.0).fit(X, label),
     lambda m: logistic(linear(m), 1)),
    ("l2svm", "B = l2svm(X=X, Y=2 * label - 1, intercept=TRUE, epsilon=1e-12, reg=1.0)", "B",
     lambda B: hinges(B, 1), "LinearSVC", lambda: LinearSVC(C=0.5, dual=False).fit(X, label),
     lambda m: hinges(linear(m), 1)),
    ("kmeans", "[B, Y] = kmeans(X=X, k=10, runs=1, max_iter=20, eps=1e-15, seed=3)", "matrix(B, rows=500, cols=1)",
     lambda v: inertia(v.reshape(10, 50)), "KMeans",
     lambda: KMeans(n_clusters=10, n_init=1, max_iter=20, tol=0, random_state=3).fit(X),
     lambda m: inertia(m.cluster_centers_)),
    ("kmeansPredict", "Y = kmeansPredict(X=X, C=X[1:10,])", "as.matrix(sum(Y != 0))", lambda v: v[0],
     "KMeans.predict", lambda: FITTED["clusters"].predict(X), len),
    ("pca", "[R, B, c, f] = pca(X=X, K=5, scale=FALSE)", "matrix(B, rows=250, cols=1)",
     lambda v: left_over(v.reshape(50, 5)), "PCA.fit_transform",
     lambda: fitted_pca(), lambda m: left_over(m.components_.T)),
    ("scale", "[R, c, f] = scale(X=X)", "as.matrix(sum(R^2))", lambda v: v[0], "StandardScaler",
     lambda: StandardScaler().fit_transform(X), sum_of_squares),
    ("scaleMinMax", "R = scaleMinMax(X=X)", "as.matrix(sum(R^2))", lambda v: v[0], "MinMaxScaler",
     lambda: MinMaxScaler().fit_transform(X), sum_of_squares),
    ("normalize", "[R, c, f] = normalize(X=X)", "as.matrix(sum(R^2))", lambda v: v[0], "MinMaxScaler",
     lambda: MinMaxScaler().fit_transform(X), sum_of_squares),
    ("scaleRobust", "[R, m, a, b] = scaleRobust(X=X)", "as.matrix(sum(R^2))", lambda v: v[0], "RobustScaler",
     lambda: RobustScaler().fit_transform(X), sum_of_squares),
    ("confusionMatrix", "[C, A] = confusionMatrix(P=guesses, Y=classes)", "as.matrix(sum(C^2))", lambda v: v[0],
     "confusion_matrix", lambda: confusion_matrix(classes, guesses), sum_of_squares),
    ("getAccuracy", "a = getAccuracy(y=classes, yhat=guesses)", "as.matrix(a / 100)", lambda v: v[0],
     "accuracy_score", lambda: accuracy_score(classes, guesses), float),
    ("auc", "a = auc(Y=2 * label - 1, P=y)", "as.matrix(a)", lambda v: v[0],
     "roc_auc_score", lambda: roc_auc_score(label, y), float),
    ("mse", "[Z, Q] = mse(X=y, Y=label)", "Z", lambda v: v[0],
     "mean_squared_error", lambda: mean_squared_error(y, label), float),
    ("split", "[A, B, a, b] = split(X=X, Y=y, f=0.7, cont=FALSE, seed=7)",
     "as.matrix(sum(A^2) + sum(B^2) + sum(a^2) + sum(b^2))", lambda v: v[0],
     "train_test_split", lambda: train_test_split(X, y, train_size=0.7, random_state=7),
     lambda parts: sum_of_squares(*parts)),
    ("cor", "R = cor(X)", "as.matrix(sum(R^2))", lambda v: v[0],
     "numpy.corrcoef", lambda: np.corrcoef(X, rowvar=False), sum_of_squares),
]


def fitted_pca():
    model = PCA(n_components=5)
    model.fit_transform(X)
    return model


def by_heddle(call, written, names):
    with tempfile.TemporaryDirectory(dir=OPTIONS.folder) as folder:
        lines = [f'{name} = read("{OPTIONS.folder}/library_{name}.npy", format="npy")' for name in names]
        # What could be read after the clock has stopped is computed, and stored, before.
        results = call.split(" = ")[0].strip("[]").split(", ")
        for number in range(OPTIONS.rounds + 1):
            lines += ["begin = time()", "if (begin > 0) {", "  " + call, "}", 'print("round " + (time() - begin))',
                      "if (begin < 0) {"]
            lines += [f"  print(sum(as.matrix({result})))" for result in results] + ["}"]
        lines += [f'write({written}, "{folder}/result.csv", format="csv")']
        path = os.path.join(folder, "call.dml")
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        done = subprocess.run([OPTIONS.heddle, "run", "--threads", str(OPTIONS.threads), path], capture_output=True,
                              text=True)
        if done.returncode:
            sys.exit(done.stderr)
        rounds = [float(line.split()[1]) * 1e-6 for line in done.stdout.splitlines() if line.startswith("round ")]
        result = np.loadtxt(os.path.join(folder, "result.csv"), delimiter=",", ndmin=1)
        return min(rounds), result


def by_peer(call):
    best = float("inf")
    for number in range(max(OPTIONS.rounds, 2)):
        # Threads of BLAS that wait for each other lose much time where other programs run: the better of one and of all counts.
        with threadpoolctl.threadpool_limits(OPTIONS.threads if number % 2 == 0 else 1, user_api="blas"):
            begin = time.perf_counter()
            result = call()
            best = min(best, 1000 * (time.perf_counter() - begin))
    return best, result


FITTED = {}
data = {"X": X, "y": y.reshape(-1, 1), "label": label.reshape(-1, 1), "classes": classes.reshape(-1, 1),
        "guesses": guesses.reshape(-1, 1), "w": weights.reshape(-1, 1)}
for name, values in data.items():
    np.save(f"{OPTIONS.folder}/library_{name}.npy", values)
FITTED["linear"] = LinearRegression()
FITTED["linear"].coef_, FITTED["linear"].intercept_ = weights, 0.0
FITTED["clusters"] = KMeans(n_clusters=10, n_init=1, init=X[:10], max_iter=1).fit(X[:1000])
try:
    for name, call, written, loss, peer, peer_call, peer_loss in CASES:
        if OPTIONS.only and name.split(",")[0] not in OPTIONS.only.split(","):
            continue
        ms, result = by_heddle(call, written, [one for one in data if one in call.replace("(", " ").replace(
            ",", " ").replace("=", " ").replace(")", " ").replace("[", " ").split()])
        peer_ms, peer_result = by_peer(peer_call)
        print(json.dumps({"bench": "library_sklearn", "function": name, "peer": peer, "ms": round(ms, 2),
                          "peer_ms": round(peer_ms, 2), "ratio": round(peer_ms / ms, 2), "loss": float(loss(result)),
                          "peer_loss": float(peer_loss(peer_result))}), flush=True)
finally:
    for name in data:
        os.unlink(f"{OPTIONS.folder}/library_{name}.npy")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of heddle-bench compression in Apache SystemDS, compressed and not, one JSON object a line.

    heddle-bench compression --data FOLDER
    bench/peers/compression_systemds.py --systemds CMD [--rounds 3] [--timeout 300] [--only TEXT] FOLDER

CMD SCRIPT runs a DML script; FOLDER has the matrices as NAME.csv. The best round counts, by time() around it.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile

PARSER = argparse.ArgumentParser()
PARSER.add_argument("folder")
PARSER.add_argument("--systemds", required=True)
PARSER.add_argument("--rounds", type=int, default=3)
PARSER.add_argument("--timeout", type=float, default=300)
PARSER.add_argument("--only", default="")

# As in bench/compression.cc; the result is r.
CASES = {
    "sum": "r = as.matrix(sum(X))",
    "colSums": "r = colSums(X)",
    "rowSums": "r = rowSums(X)",
    "max": "r = as.matrix(max(X))",
    "X^2": "r = X^2",
    "X%*%v": "r = X %*% v",
    "t(v)%*%X": "r = t(w) %*% X",
    "t(X)%*%X": "r = t(X) %*% X",
    "mmchain": "r = t(X) %*% (w * (X %*% v))",
    "scale and shift": "r = (X - shifts) * scales",
    "k-means": "[r, assigned] = kmeans(X=X, k=5, runs=1, max_iter=10, eps=0.0, seed=7)",
    "PCA": "[reduced, r, centers, factors] = pca(X=X, K=2)",
    "multinomial regression":
        "r = multiLogReg(X=X, Y=labels, icpt=1, tol=0.0, reg=1.0, maxi=5, maxii=5, verbose=FALSE)",
    "linear regression, CG": "r = lmCG(X=X, y=y, reg=0.001, tol=0.0, maxi=20, verbose=FALSE)",
    "linear regression, direct": "r = lmDS(X=X, y=y, reg=0.001, verbose=FALSE)",
    "L2SVM": "r = l2svm(X=X, Y=classes, epsilon=0.0, reg=1.0, maxIterations=10, verbose=FALSE)",
}
PREPARATION = """
v = rand(rows=ncol(D), cols=1, min=-1, max=1, seed=1)
w = rand(rows=nrow(D), cols=1, min=-1, max=1, seed=2)
shifts = colMeans(D)
scales = 1 / (colMaxs(abs(D)) + 1)
y = D %*% (v * t(scales)) + 0.1 * w
classes = 2 * (y > mean(y)) - 1
labels = 1 + (y > mean(y)) + (y > mean(y) + sd(y))
"""


def script(path, text, is_compressed, rounds):
    lines = [f'D = read("{path}", data_type="matrix", format="csv", header=FALSE)', PREPARATION]
    lines += ["begin = time()", "if (begin > 0) {", "  X = compress(D)" if is_compressed else "  X = D", "}",
              "ready = sum(X) + sum(v) + sum(w) + sum(shifts) + sum(scales) + sum(classes) + sum(labels)",
              'print("compress " + (time() - begin) + " " + ready)']
    for _ in range(rounds):
        lines += ["begin = time()", "if (begin > 0) {", f"  {text}", '  print("result " + sum(r))', "}",
                  'print("round " + (time() - begin))']
    return "\n".join(lines) + "\n"


def main():
    options = PARSER.parse_args()
    for file in sorted(os.listdir(options.folder)):
        if not file.endswith(".csv"):
            continue
        name = file[:-4]
        for case, text in CASES.items():
            if options.only not in f"{name} {case}":
                continue
            line = {"bench": "compression_systemds", "data": name, "case": case}
            for is_compressed in (False, True):
                with tempfile.NamedTemporaryFile("w", suffix=".dml") as made:
                    made.write(script(os.path.join(options.folder, file), text, is_compressed, options.rounds))
                    made.flush()
                    key = "compressed_ms" if is_compressed else "ms"
                    try:
                        done = subprocess.run([options.systemds, made.name], capture_output=True, text=True,
                                              timeout=options.timeout)
                    except subprocess.TimeoutExpired:
                        line["error"] = f"more than {options.timeout:g} s"
                        continue
                    times = [float(ns) * 1e-6 for ns in re.findall(r"^round ([0-9.E]+)", done.stdout, re.M)]
                    results = re.findall(r"^result (.*)", done.stdout, re.M)
                    if times:
                        line[key] = round(min(times), 3)
                        line["result" + ("_compressed" if is_compressed else "")] = results[-1] if results else ""
                    else:
                        said = [text for text in (done.stderr + done.stdout).splitlines() if "rror" in text]
                        line["error"] = " / ".join(said[-3:])[:400]
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of heddle-bench compression in Apache SystemDS, compressed and not, one JSON object a line.

    heddle-bench compression --data FOLDER
    bench/peers/compression_systemds.py --systemds CMD [--rounds 3] [--timeout 300] [--only TEXT] FOLDER

CMD SCRIPT runs a DML script; FOLDER has the matrices as NAME.csv. All cases of a matrix run in one process, in turns
of the cases; where one fails or takes longer than the timeout, another process goes on behind it. The best round
counts, by time() around it. `compress_ms` is what compress() takes, of the least of those processes.
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


def script(path, cases, is_compressed, rounds):
    lines = [f'D = read("{path}", data_type="matrix", format="csv", header=FALSE)', PREPARATION,
             'print("prepared " + (sum(D) + sum(v) + sum(w) + sum(shifts) + sum(scales) + sum(classes) + sum(labels)))',
             "begin = time()", "if (begin > 0) {", "  X = compress(D)" if is_compressed else "  X = D", "}",
             'print("compressed " + ncol(X) + " in " + (time() - begin))']
    for case in cases:
        lines += [f'print("case {case}")']
        for _ in range(rounds):
            # Blocks of their own: in one, sum(rowSums(X)) would become sum(X). What a result puts off, as compressed
            # ones may, is no part of the time.
            lines += ["begin = time()", "if (begin > 0) {", f"  {CASES[case]}", "}",
                      'print("round " + (time() - begin))', "if (begin > 0) {", '  print("result " + sum(r))', "}"]
    return "\n".join(lines) + "\n"


def run(options, path, cases, is_compressed):
    """What a process prints of the cases, and why it ended before the last of them ("": it did not)."""
    with tempfile.NamedTemporaryFile("w", suffix=".dml") as made:
        made.write(script(path, cases, is_compressed, options.rounds))
        made.flush()
        try:
            done = subprocess.run([options.systemds, made.name], capture_output=True, text=True,
                                  timeout=options.timeout)
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode(), f"more than {options.timeout:g} s"
    said = [text for text in (done.stderr + done.stdout).splitlines() if "rror" in text]
    return done.stdout, " / ".join(said[-3:])[:400]


def measure(options, path, cases, is_compressed):
    """By case: milliseconds of the best round and the result, or the error; and what compress() took."""
    found, compress_ms, left = {}, [], list(cases)
    while left:
        printed, error = run(options, path, left, is_compressed)
        compress_ms += [float(ns) * 1e-6 for ns in re.findall(r"^compressed .* in ([0-9.E]+)", printed, re.M)]
        for text in re.split(r"^case ", printed, flags=re.M)[1:]:
            times = [float(ns) * 1e-6 for ns in re.findall(r"^round ([0-9.E]+)", text, re.M)]
            results = re.findall(r"^result (.*)", text, re.M)
            if len(times) == options.rounds:
                found[text.split("\n")[0]] = {"ms": round(min(times), 3), "result": results[-1]}
        behind = [case for case in left if case not in found]
        if behind:
            found[behind[0]] = {"error": error or "it printed no time"}
        left = behind[1:]
    return found, round(min(compress_ms), 1) if compress_ms else None


def main():
    options = PARSER.parse_args()
    for file in sorted(os.listdir(options.folder)):
        if not file.endswith(".csv"):
            continue
        name = file[:-4]
        cases = [case for case in CASES if options.only in f"{name} {case}"]
        if not cases:
            continue
        path = os.path.join(options.folder, file)
        plain, _ = measure(options, path, cases, False)
        compressed, compress_ms = measure(options, path, cases, True)
        for case in cases:
            line = {"bench": "compression_systemds", "data": name, "case": case, "compress_ms": compress_ms}
            line.update(plain[case])
            line.update({key + "_compressed" if key != "ms" else "compressed_ms": value
                         for key, value in compressed[case].items()})
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What examples/l2svm.dml and examples/linreg_cg.dml must find, computed another way with NumPy and SciPy.

    regression_reference.py linreg_cg|l2svm DATA.libsvm[.gz] OBJECTIVE MODEL.csv

Linear regression: a direct solve of the normal equations. The SVM: Newton's method with the generalised Hessian. Both
objective and coefficients must agree to 1e-9 relative. Prints the differences; exit code 1 when they are larger.
"""
import gzip
import sys

import numpy as np
import scipy.linalg


def read_libsvm(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    labels, entries = [], []
    with opened as lines:
        for line in lines:
            words = line.split()
            labels.append(float(words[0]))
            entries.append([(int(i) - 1, float(v)) for i, v in (w.split(":") for w in words[1:])])
    columns = 1 + max(i for row in entries for i, _ in row)
    x = np.zeros((len(labels), columns))
    for r, row in enumerate(entries):
        for i, v in row:
            x[r, i] = v
    return x, np.array(labels)


def linear_regression(x, y):
    w = scipy.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y, assume_a="pos")
    return w, 0.5 * np.sum((x @ w - y) ** 2) + 0.5 * np.sum(w ** 2)


def svm(x, y):
    s = 2 * y - 1
    objective = lambda w: 0.5 * np.sum(np.maximum(0, 1 - s * (x @ w)) ** 2) + 0.5 * np.sum(w ** 2)
    w = np.zeros(x.shape[1])
    for _ in range(100):
        slack = np.maximum(0, 1 - s * (x @ w))
        gradient = w - x.T @ (s * slack)
        active = x[slack > 0]
        step = scipy.linalg.solve(active.T @ active + np.eye(x.shape[1]), -gradient, assume_a="pos")
        size = 1.0
        while objective(w + size * step) > objective(w) and size > 1e-12:
            size /= 2
        w = w + size * step
        if np.linalg.norm(size * step) <= 1e-14 * np.linalg.norm(w):
            break
    return w, objective(w)


def main():
    algorithm, data, objective, model = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    w, expected = {"linreg_cg": linear_regression, "l2svm": svm}[algorithm](*read_libsvm(data))
    found = np.loadtxt(model, delimiter=",").reshape(-1)
    of_objective = abs(objective - expected) / abs(expected)
    of_model = np.linalg.norm(found - w) / np.linalg.norm(w)
    print(f"{algorithm}: objective {objective} expected {expected} relative difference {of_objective:.2e}, "
          f"coefficients relative difference {of_model:.2e}")
    sys.exit(0 if of_objective <= 1e-9 and of_model <= 1e-9 else 1)


main()

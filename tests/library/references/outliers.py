# SPDX-License-Identifier: Apache-2.0
"""Outliers of the breast cancer data and of the lynx series, by NumPy, SciPy and statsmodels."""
import numpy as np
from scipy.stats.mstats import winsorize
from statsmodels.tsa.ar_model import AutoReg

from reference import data, save

X = data("breast_cancer")[:, :8]
lower, upper = (np.quantile(X, p, axis=0, method="inverted_cdf") for p in (0.1, 0.95))
# SciPy cuts a number of values: those below rank ceil(0.1 n), and above rank ceil(0.95 n).
n = len(X)
cut = np.array([winsorize(x, ((np.ceil(0.1 * n) - 1) / n, (n - np.ceil(0.95 * n)) / n)) for x in X.T]).T


def sd_rounds(A, k, rounds):
    """A with NaN for outliers, mean and deviation of the last round."""
    A = A.copy()
    while rounds != 0:
        mean, deviation = np.nanmean(A, axis=0), np.nanstd(A, axis=0, ddof=1)
        outliers = np.abs(A - mean) > k * deviation
        if not outliers.any():
            break
        A[outliers] = np.nan
        rounds -= 1
    return A, mean, deviation


once, mean1, deviation1 = sd_rounds(X, 3, 1)
always, mean, deviation = sd_rounds(X, 3, -1)
q1, q3 = (np.quantile(X, p, axis=0, method="inverted_cdf") for p in (0.25, 0.75))
fenced = np.where((X < q1 - 1.5 * (q3 - q1)) | (X > q3 + 1.5 * (q3 - q1)), np.nan, X)
farthest = [x[np.argmax(np.abs(x - x.mean()))] for x in X.T]
opposite = [x.min() if f == x.max() else x.max() for x, f in zip(X.T, farthest)]

lynx = np.log(data("lynx"))
lynx[60] += 4


def where(fit, first):
    e = fit.resid
    return first + 1 + np.flatnonzero(np.abs(e) > 2.5 * e.std(ddof=1))


plain = AutoReg(lynx, 2, trend="c").fit()
seasonal = AutoReg(lynx, [1, 10, 11], trend="c").fit()
difference = AutoReg(np.diff(lynx), 2, trend="n").fit()
save("outliers", lower, upper, cut[:10], np.isnan(once).sum(axis=0), mean1, deviation1, np.isnan(always).sum(axis=0),
     mean, deviation, q1, q3, np.isnan(fenced).sum(axis=0), farthest, opposite, where(plain, 2), where(seasonal, 11),
     where(difference, 3))

# SPDX-License-Identifier: Apache-2.0
"""The wine data with holes, filled by scikit-learn, pandas and SciPy."""
import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.impute import SimpleImputer

from reference import data, save

D = data("wine")[:90]
holes = np.add.outer(7 * np.arange(1, 91), 13 * np.arange(1, 15)) % 11 == 0
D[:, 4] = np.floor(D[:, 4] / 10 + 0.5) - 6
D[holes] = np.nan
mean = SimpleImputer(strategy="mean").fit(D)
median = SimpleImputer(strategy="median").fit(D)
mode = np.array([pd.Series(x).mode().max() for x in D.T])
forward = pd.DataFrame(D).ffill().bfill().to_numpy()
backward = pd.DataFrame(D).bfill().ffill().to_numpy()

# The nearest record that has a value in the column.
X = D[:, :5]
filled = mean.transform(D)[:, :5]
distances = cdist(filled, filled)
nearest = X.copy()
for i, j in zip(*np.nonzero(np.isnan(X))):
    candidates = np.flatnonzero(~np.isnan(X[:, j]))
    nearest[i, j] = X[candidates[np.argmin(distances[i, candidates])], j]

# Functional dependencies of the class: 1 and 2 here, and quarters of other columns.
S = data("wine")
codes = np.column_stack([S[:, 13], np.ceil(S[:, 6]), np.ceil(S[:, 0] - 11), np.ceil(S[:, 9] / 2)])
scores = np.array([[pd.crosstab(codes[:, i], codes[:, j]).max(axis=1).sum() / len(S) for j in range(4)] for i in range(4)])
counts = pd.crosstab(codes[:, 1], codes[:, 0]).reindex(range(1, 7), fill_value=0)
targets = np.where(counts.max(axis=1) > 0.8 * counts.sum(axis=1), counts.idxmax(axis=1), 0)

save("impute", mean.statistics_, median.statistics_, mode, mean.transform(D)[:10], median.transform(D)[:10],
     forward[:12, :6], backward[-12:, :6], nearest, codes, scores, targets)

# SPDX-License-Identifier: Apache-2.0
"""Principal square roots of matrices of the wine data by SciPy."""
import numpy as np
from scipy.linalg import sqrtm

from reference import data, save

X = data("wine")[:, :-1]
covariances = np.cov(X, rowvar=False)
# Not symmetric, with pairs of complex eigenvalues.
other = np.corrcoef(X[:13]) + 3 * np.eye(13) + np.triu(np.corrcoef(X[20:33]), 1)
save("sqrtMatrix", sqrtm(covariances).real, sqrtm(other).real)

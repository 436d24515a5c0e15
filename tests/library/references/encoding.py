# SPDX-License-Identifier: Apache-2.0
"""Categories of the wine data encoded by scikit-learn, pandas and SciPy."""
import numpy as np
import pandas as pd
from scipy.stats import entropy
from sklearn.preprocessing import OneHotEncoder

from reference import data, save

W = data("wine")
codes = np.column_stack([W[:, 13], np.ceil(W[:, 6]), np.ceil(W[:, 0] - 11)])
frequencies, weights = np.zeros((3, 6)), np.zeros((3, 6))
for j in range(3):
    for code, part in pd.Series(codes[:, j]).value_counts(normalize=True).items():
        frequencies[j, int(code) - 1] = part
    for code, counts in pd.crosstab(codes[:, j], W[:, 13]).iterrows():
        weights[j, int(code) - 1] = entropy(counts, base=2)
save("encoding", codes, OneHotEncoder(categories=[range(1, 7)], sparse_output=False).fit_transform(codes[:40, 1:2]),
     frequencies, weights)

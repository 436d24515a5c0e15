# SPDX-License-Identifier: Apache-2.0
"""Scaled columns of the wine data by scikit-learn, SciPy and NumPy."""
import numpy as np
from scipy.stats import zscore
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from reference import data, save

X = data("wine")[:, :-1]
train, rest = X[:140], X[140:148]
ranges = MinMaxScaler().fit(train)
deviations = train.std(axis=0, ddof=1)
roots = np.sqrt((train**2).sum(axis=0) / (len(train) - 1))
quartiles = np.quantile(train, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf")
save("scaling",
     ranges.transform(train)[:8], ranges.data_min_, ranges.data_max_, ranges.transform(rest),
     zscore(train, ddof=1)[:8], train.mean(axis=0), deviations, (rest - train.mean(axis=0)) / deviations,
     (train / roots)[:8], StandardScaler(with_std=False).fit_transform(train)[:8],
     ((train - quartiles[1]) / (quartiles[2] - quartiles[0]))[:8], quartiles,
     (rest - quartiles[1]) / (quartiles[2] - quartiles[0]))

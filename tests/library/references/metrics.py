# SPDX-License-Identifier: Apache-2.0
"""Measures of predictions by scikit-learn and NumPy."""
import numpy as np
from sklearn import metrics

from reference import data, save

wine = data("wine")
y, color = wine[:, -1], wine[:, 9]
p = np.where(color < 3.5, 2, np.where(color < 6, 1, 3))
counts = metrics.confusion_matrix(y, p).T
cancer = data("breast_cancer")
benign = cancer[:, -1] == 2
small = cancer[:, 0] < 14
X = data("diabetes")[:, :-1]
Y = np.floor(X / 10 + 0.5) * 10
quantiles = np.array([0, 0.1, 0.25, 0.5, 0.77, 1])


def loss(values, total=None):
    return [total if total is not None else values.mean(),
            *np.quantile(values, quantiles, method="inverted_cdf")]


difference = np.abs(X - Y)
spread = X.max() - X.min()
rmse = metrics.root_mean_squared_error(X.ravel(), Y.ravel())
save("metrics",
     counts, counts / counts.sum(axis=0),
     [metrics.accuracy_score(y, p), metrics.balanced_accuracy_score(y, p)],
     1 - metrics.precision_score(y, p, average=None),
     [metrics.f1_score(~benign, ~small), metrics.matthews_corrcoef(benign, small)],
     [metrics.roc_auc_score(benign, -np.floor(cancer[:, 0])), metrics.roc_auc_score(benign, -cancer[:, 1]),
      metrics.roc_auc_score(benign, small)],
     loss(difference ** 2, metrics.mean_squared_error(X.ravel(), Y.ravel())),
     loss(difference, rmse), loss(difference / spread, rmse / spread),
     loss(difference, metrics.mean_absolute_error(X.ravel(), Y.ravel())),
     loss(difference / X, metrics.mean_absolute_percentage_error(X.ravel(), Y.ravel())),
     loss(2 * difference / (X + Y)), loss(2 * difference / np.maximum(X + Y + 0.1, 0.6)),
     20 * np.log10(X.max()) - 10 * np.log10((difference ** 2).mean()),
     np.quantile(X, quantiles, method="inverted_cdf"))

# SPDX-License-Identifier: Apache-2.0
"""The slices of the diabetes data where a linear regression errs most, by looking at all of them."""
import itertools

import numpy as np
from sklearn.linear_model import LinearRegression

from reference import data, save

D = data("diabetes")
X, y = D[:, :7], D[:, -1]
e = np.abs(y - LinearRegression().fit(D[:, :-1], y).predict(D[:, :-1]))
low, high = X.min(axis=0), X.max(axis=0)
B = np.minimum(np.floor((X - low) / (high - low) * 4), 3) + 1


def slices(B, e, k, max_level, support, alpha):
    n, m = B.shape
    found = []
    for values in itertools.product(*([0] + sorted(set(B[:, j])) for j in range(m))):
        values = np.array(values)
        if not 0 < (values > 0).sum() <= max_level:
            continue
        inside = ((values == 0) | (B == values)).all(axis=1)
        if inside.sum() >= support:
            score = alpha * (e[inside].mean() / e.mean() - 1) - (1 - alpha) * (n / inside.sum() - 1)
            if score > 0:
                found.append((score, e[inside].sum(), e[inside].max(), inside.sum(), values))
    found.sort(key=lambda slice_: -slice_[0])
    return np.array([s[4] for s in found[:k]]), np.array([s[:4] for s in found[:k]])


changed = np.delete(np.arange(442), [4, 9, 100, 399])
save("sliceLine", *slices(B, e, 6, 7, 15, 0.97), *slices(B, e, 5, 2, 10, 0.98), *slices(B[changed], e[changed], 6, 7, 15, 0.97))

# SPDX-License-Identifier: Apache-2.0
"""softmax and its relatives by SciPy."""
from scipy.special import expit, logsumexp, softmax

from reference import data, save

wine = data("wine")[:, :-1]
wine = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
save("softmax",
     softmax(wine[:6, :7], axis=1), expit(wine[:6, :7]),
     logsumexp(wine), logsumexp(40 * wine, axis=1)[:20], logsumexp(wine, axis=0)[None])

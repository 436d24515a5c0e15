# SPDX-License-Identifier: Apache-2.0
"""Statistics of the columns of the breast cancer and wine data, and of pairs of them, by SciPy, NumPy and statsmodels."""
import itertools

import numpy as np
import statsmodels.api as sm
from scipy import stats
from scipy.stats.contingency import association

from reference import data, save

X = data("breast_cancer")[:, :10]
n = len(X)


def middle_half(x):
    """The mean of the values between n/4 and 3n/4, of which the first and the last count in part."""
    x = np.sort(x)
    upper, lower = np.minimum(np.arange(1, n + 1), 0.75 * n), np.maximum(np.arange(n), 0.25 * n)
    return np.average(x, weights=np.maximum(upper - lower, 0))


deviations = X.std(axis=0, ddof=1)
univar = np.array([X.min(axis=0), X.max(axis=0), np.ptp(X, axis=0), X.mean(axis=0), X.var(axis=0, ddof=1), deviations,
                   stats.sem(X), stats.variation(X, ddof=1), stats.moment(X, 3) / deviations**3,
                   stats.moment(X, 4) / deviations**4 - 3,
                   np.full(10, np.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))),
                   np.full(10, np.sqrt(24 * n * (n - 1)**2 / ((n - 3) * (n - 2) * (n + 3) * (n + 5)))),
                   np.median(X, axis=0), [middle_half(x) for x in X.T]])

# Pairs: numbers in columns 1, 2 and 13 of the wine data; categories are quarters of columns, and the class.
W = data("wine")
W = np.column_stack([W[:, :3], np.ceil(stats.rankdata(W[:, 5]) / 45), np.ceil(stats.rankdata(W[:, 6]) / 36), W[:, 13]])
scale = []
for i, j in [(1, 2), (1, 3)]:
    x, y = W[:, i - 1], W[:, j - 1]
    scale.append([i, j, stats.pearsonr(x, y)[0], np.cov(x, y)[0, 1], x.std(ddof=1), y.std(ddof=1)])
nominal_scale = []
for i, j, c, s in [(1, 5, 5, 1), (1, 6, 6, 1), (4, 2, 4, 2), (4, 3, 4, 3), (6, 2, 6, 2), (6, 3, 6, 3)]:
    groups = [W[W[:, c - 1] == g, s - 1] for g in np.unique(W[:, c - 1])]
    f, p = stats.f_oneway(*groups)
    within = sum(((g - g.mean())**2).sum() for g in groups)
    between = ((W[:, s - 1] - W[:, s - 1].mean())**2).sum() - within
    df1, df2 = len(groups) - 1, len(W) - len(groups)
    nominal_scale.append([i, j, np.sqrt(between / (between + within)), f, p, between, within, df1, df2, between / df1,
                          within / df2])
nominal, ordinal = [], []
for i, j in [(4, 5), (4, 6), (6, 5), (6, 6)]:
    counts = stats.contingency.crosstab(W[:, i - 1], W[:, j - 1]).count
    chi2, p, df, _ = stats.chi2_contingency(counts, correction=False)
    nominal.append([i, j, chi2, df, p, association(counts, "cramer")])
ordinal = [[4, 5, stats.spearmanr(W[:, 3], W[:, 4])[0]]]

# Regressions inside the classes of the wine data, with missing values in two columns.
V = data("wine")
V[2::9, 1] = np.nan
V[4::7, 4] = np.nan
strata = V[:, 13].copy()
strata[5::20] = np.nan


def of_column(x):
    mask = ~np.isnan(x)
    both = mask & ~np.isnan(strata)
    fit = sm.OLS(x[both], np.equal.outer(strata[both], [1, 2, 3]).astype(float)).fit()
    return [mask.sum(), x[mask].mean(), x[mask].std(ddof=1), np.sqrt(fit.mse_resid), fit.rsquared, fit.rsquared_adj,
            fit.f_pvalue]


def of_pair(x, y):
    mask = ~np.isnan(x) & ~np.isnan(y)
    fit = sm.OLS(y[mask], sm.add_constant(x[mask])).fit()
    globally = [mask.sum(), fit.params[1], fit.bse[1], np.sign(fit.params[1]) * np.sqrt(fit.rsquared),
                np.sqrt(fit.mse_resid), fit.rsquared, fit.rsquared_adj, fit.pvalues[1]]
    mask &= ~np.isnan(strata)
    groups = np.equal.outer(strata[mask], [1, 2, 3]).astype(float)
    fit = sm.OLS(y[mask], np.column_stack([x[mask], groups])).fit()
    alone = sm.OLS(y[mask], groups).fit()
    r2 = 1 - fit.ssr / alone.ssr
    inside = [mask.sum(), fit.params[0], fit.bse[0], np.sign(fit.params[0]) * np.sqrt(r2), np.sqrt(fit.mse_resid), r2,
              1 - (fit.ssr / fit.df_resid) / (alone.ssr / alone.df_resid), fit.pvalues[0]]
    return globally + [0, 0] + inside + [3, 0]


strat = [[i, *of_column(V[:, i - 1]), 0, 0, j, *of_column(V[:, j - 1]), 0, 0, *of_pair(V[:, i - 1], V[:, j - 1])]
         for i in (1, 2) for j in (5, 10, 3)]

# Gaps in a series of 100 values.
missing = (np.arange(1, 101) * 37 % 100 < 30) | (np.arange(1, 101) % 40 < 6)
lengths = [sum(1 for _ in run) for gap, run in itertools.groupby(missing) if gap]
times = np.bincount(lengths)
totals = times * np.arange(len(times))
last = len(times) - 1
stats_na = [100, missing.sum(), missing.mean(), len(lengths), np.mean(lengths), max(lengths),
            last - np.argmax(times[::-1]), last - np.argmax(totals[::-1])]

save("describe", univar, np.corrcoef(X.T), stats.moment(X[:, :1], 3)[0] / deviations[0]**3, np.array(scale).T,
     np.array(nominal_scale).T, np.array(nominal).T, np.array(ordinal).T, W[:, 3:5], strat,
     (X[:, [0, 1, 4]].var(axis=0, ddof=1) > 0.01).astype(float), stats_na)

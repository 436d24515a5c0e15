# SPDX-License-Identifier: Apache-2.0
"""Choice of hyper-parameters and features for linear regressions of the diabetes data, by scikit-learn and NumPy."""
import numpy as np
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_predict

from reference import data, save

D = data("diabetes")
X, y = D[:, :-1], D[:, -1]
n, m = X.shape
Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
results = []
# 1-2: Ridge, 13 folds of 34 rows.
search = GridSearchCV(Ridge(solver="cholesky"), {"alpha": [0.001, 1, 10, 50, 100, 1000]}, cv=KFold(13),
                      scoring="neg_mean_squared_error").fit(Z, y)
results += [np.append(search.best_estimator_.coef_, search.best_estimator_.intercept_), search.best_params_["alpha"]]
# 3-5: five folds, the last with what remains.
folds = PredefinedSplit(np.minimum(np.arange(n) // (n // 5), 4))
results.append(cross_val_predict(Ridge(alpha=2, solver="cholesky"), X, y, cv=folds))
models = [Ridge(alpha=2, solver="cholesky").fit(X[a], y[a]) for a, _ in folds.split()]
results.append([np.append(f.coef_, f.intercept_) for f in models])
results.append([LinearRegression(fit_intercept=False).fit(X[a], y[a]).coef_ for a, _ in folds.split()])
# 6-7: lasso.
results += [Lasso(alpha=tau / n, fit_intercept=False, tol=1e-15, max_iter=100000).fit(Z, y - y.mean()).coef_
            for tau in (200, 5000)]
# 8-9: forward selection by Akaike's criterion.
def criterion(features):
    fit = LinearRegression().fit(X[:, features], y) if features else None
    rest = y - (fit.predict(X[:, features]) if features else y.mean())
    return n * np.log(rest @ rest / n) + 2 * (len(features) + 1)
selected = []
while True:
    values = {j: criterion(selected + [j]) for j in range(m) if j not in selected}
    best = min(values, key=values.get)
    if values[best] >= criterion(selected):
        break
    selected.append(best)
fit = LinearRegression().fit(X[:, selected], y)
coefficients = np.zeros(m + 1)
coefficients[selected] = fit.coef_
coefficients[m] = fit.intercept_
results += [[[j + 1 for j in selected] + [m + 1]], coefficients]
save("selection", *results)

# SPDX-License-Identifier: Apache-2.0
"""Linear regression of the diabetes data by scikit-learn."""
import numpy as np
from sklearn.linear_model import LinearRegression, Ridge

from reference import data, save

D = data("diabetes")
X, y = D[:, :-1], D[:, -1]
plain = LinearRegression(fit_intercept=False).fit(X, y)
ridge = Ridge(alpha=10, solver="cholesky").fit(X, y)
scales = X.std(axis=0, ddof=1)
Z = (X - X.mean(axis=0)) / scales
scaled = Ridge(alpha=10, solver="cholesky").fit(Z, y)
coefficients = scaled.coef_ / scales
residuals = y - ridge.predict(X)
save("lm",
     plain.coef_,
     np.append(ridge.coef_, ridge.intercept_),
     np.append(coefficients, scaled.intercept_ - coefficients @ X.mean(axis=0)),
     ridge.predict(X),
     [residuals.mean(), ((residuals - residuals.mean()) ** 2).sum(), ridge.score(X, y)])

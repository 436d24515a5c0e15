# SPDX-License-Identifier: Apache-2.0
"""Boosted trees by the xgboost package. Its max_depth counts splits, ours levels of nodes: one more."""
import numpy as np
import xgboost

from reference import data, save


def boosted(X, y, rows, **parameters):
    """Predictions of a model of the first `rows` records for these: thresholds lie elsewhere between values than ours."""
    rounds = parameters.pop("rounds")
    parameters = {"min_child_weight": 1, "tree_method": "exact", "nthread": 1, **parameters}
    model = xgboost.train(parameters, xgboost.DMatrix(X[:rows], y[:rows]), rounds)
    return model.predict(xgboost.DMatrix(X[:rows]))


results = []
# Up to 256 records, so that each value has a bin of its own.
D = data("diabetes")
X, y = D[:, :-1], D[:, -1]
results.append(boosted(X, y, 250, rounds=7, max_depth=5, eta=0.3, **{"lambda": 0}, base_score=np.median(y[:250])))
results.append(boosted(X, y, 250, rounds=20, max_depth=2, eta=0.1, **{"lambda": 3}, base_score=np.median(y[:250])))
B = data("breast_cancer")
X, y = B[:, :-1], B[:, -1] - 1
results.append(boosted(X, y, 250, rounds=7, max_depth=3, eta=0.3, **{"lambda": 1}, objective="binary:logistic",
                       base_score=y[:250].mean()))
# A third of the records is for the comparison.
for D, target, objective in ((D, D[:, -1], "reg:squarederror"), (B, y, "binary:logistic")):
    test = np.arange(len(D)) % 3 == 2
    model = xgboost.train({"objective": objective, "max_depth": 3, "eta": 0.1, "lambda": 1, "tree_method": "hist", "nthread": 1},
                          xgboost.DMatrix(D[~test, :-1], target[~test]), 40)
    predicted = model.predict(xgboost.DMatrix(D[test, :-1]))
    results.append(np.sqrt(((predicted - target[test]) ** 2).mean()) if objective[0] == "r"
                   else ((predicted > 0.5) == target[test]).mean())
save("xgboost_trees", *results)

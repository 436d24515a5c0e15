# SPDX-License-Identifier: Apache-2.0
"""Sets of the iris data by NumPy, relations by pandas."""
import numpy as np
import pandas as pd

from reference import data, save

D = data("iris")
X, Y = D[:50, :4], D[50:100, :4]
left, right = pd.DataFrame(D[::7]), pd.DataFrame(D[::5] + np.array([0, 0, 0, 0, 10]))
left["i"], right["j"] = range(len(left)), range(len(right))
joined = left.merge(right, how="inner", left_on=2, right_on=2, suffixes=("", "r"))
joined = joined.sort_values([2, "i", "j"])
columns = [c for c in left.columns if c != "i"]
joined = np.hstack([left.loc[joined["i"], columns].to_numpy(), right.loc[joined["j"], columns].to_numpy()])
grouped = [np.concatenate([[value]] + [row for row in group.drop(columns=4).to_numpy()])
           for value, group in pd.DataFrame(D[::9]).groupby(4)]
width = max(map(len, grouped))
grouped = np.array([np.pad(row, (0, width - len(row))) for row in grouped])
save("relations",
     np.union1d(X, Y), np.intersect1d(X, Y), np.setdiff1d(X, Y), np.setxor1d(X, Y),
     D[D[:, 2] > 6],
     joined, grouped)

# SPDX-License-Identifier: Apache-2.0
"""A spline, a matrix profile and smoothed series of R's data sets, by SciPy, NumPy loops and statsmodels. The data are
those that arima.R writes."""
import numpy as np
from scipy.interpolate import CubicSpline

from reference import HERE, save

level = np.loadtxt(HERE.parent / "data" / "lake_huron.csv", skiprows=1)
deaths = np.loadtxt(HERE.parent / "data" / "accidents.csv", skiprows=1)
years = np.cumsum(1 + np.arange(98) % 3)
spline = CubicSpline(years, level, bc_type="natural")
points = [years[0], 50.5, 77.25, years[-1]]


def profile(x, w):
    windows = np.array([x[i:i + w] for i in range(len(x) - w + 1)])
    windows = (windows - windows.mean(axis=1, keepdims=True)) / windows.std(axis=1, keepdims=True)
    distances = np.sqrt(((windows[:, None] - windows[None]) ** 2).sum(axis=2))
    near = np.abs(np.subtract.outer(np.arange(len(windows)), np.arange(len(windows)))) <= np.ceil(w / 4)
    distances[near] = np.inf
    return distances.min(axis=1), distances.argmin(axis=1) + 1


def smoothed(x, alpha):
    value = 0
    for cell in x:
        value = alpha * cell + (1 - alpha) * value
    return value


save("time_series", spline(points), spline(years, 1), *profile(deaths, 12), *profile(level, 5), smoothed(level, 0.3))

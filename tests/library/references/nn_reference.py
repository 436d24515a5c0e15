# SPDX-License-Identifier: Apache-2.0
"""What the references of layers have in common: numbers and central differences."""
import numpy as np


def numbers(rows, cols, k):
    """The numbers between -1 and 1 that the cases compute by the same formula."""
    return np.sin(np.arange(1, rows * cols + 1) * k).reshape(rows, cols)


def differences(function, parameters, d, h=1e-5):
    """Central differences of sum(function(*parameters) * d) by each cell of each parameter, of fourth order."""
    results = []
    for parameter in parameters:
        result = np.zeros_like(parameter)
        for index in np.ndindex(parameter.shape):
            before = parameter[index]
            values = []
            for step in (-2, -1, 1, 2):
                parameter[index] = before + step * h
                values.append(np.sum(function(*parameters) * d))
            parameter[index] = before
            slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
            result[index] = round(slope, 10)
        results.append(result)
    return results

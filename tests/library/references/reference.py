# SPDX-License-Identifier: Apache-2.0
"""What the references of the library's tests have in common. A file NAME.py computes with another implementation what
the case cases/NAME.dml computes with Heddle, and writes NAME.csv: one line for each cell of each result."""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def data(name):
    """The matrix of data/NAME.csv, which has a line of names first."""
    return np.loadtxt(HERE.parent / "data" / f"{name}.csv", delimiter=",", skiprows=1)


def save(name, *results):
    """Writes the results (numbers, vectors as columns, matrices), numbered from 1."""
    with open(HERE / f"{name}.csv", "w") as file:
        file.write("result,row,column,value\n")
        for index, result in enumerate(results, 1):
            cells = np.asarray(result, dtype=float)
            cells = cells.reshape(-1, 1) if cells.ndim < 2 else cells
            for (i, j), value in np.ndenumerate(cells):
                file.write(f"{index},{i + 1},{j + 1},{float(value)!r}\n".replace("nan", "NaN").replace("inf", "Inf"))

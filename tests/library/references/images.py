# SPDX-License-Identifier: Apache-2.0
"""Four images of digits, 8 x 8, by NumPy and scipy.ndimage."""
import numpy as np
from scipy.ndimage import affine_transform

from reference import data, save

images = data("digits")[:4, :-1].reshape(4, 8, 8)[:, :7, :]


def transformed(image, matrix, offset, shape, fill):
    """Nearest neighbours; matrix and offset map (x, y) forward, with pixel centres at .5."""
    inverse = np.linalg.inv(matrix)
    # In (row, column): swap both axes, and from centres at .5 to centres at whole numbers.
    swap = np.array([[0, 1], [1, 0]])
    shift = inverse @ (0.5 - np.asarray(offset)) - 0.5
    return affine_transform(image, swap @ inverse @ swap, offset=swap @ shift, output_shape=shape, order=0,
                            mode="grid-constant", cval=fill, prefilter=False)


def rows(result):
    return np.asarray(result).reshape(4, -1)


angle = 0.7
turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
centre = np.array([4, 3.5])
padded = np.pad(images, ((0, 0), (2, 0), (0, 1)), constant_values=-1)[:, :6]
save("images",
     rows(np.clip(images + 3, 0, 14)),
     rows(images[:, 2:5, 3:7]),
     rows(np.floor(images * 16 / 64) * 64),
     rows(0.7 * images + 0.3 * images[2]),
     rows([transformed(i, [[1.1, 0.33], [-0.22, 0.87]], [-0.37, 1.21], (9, 6), 17) for i in images]),
     rows([transformed(i, turn, centre - turn @ centre, (7, 8), -1) for i in images]),
     rows([transformed(i, [[1, 0.43], [0.21, 1]], [0, 0], (7, 8), -1) for i in images]),
     rows(padded))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder, with NumPy, h5py and pyarrow as their users do; tests read them."""
import os

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

folder = os.path.dirname(os.path.abspath(__file__))
cells = np.arange(24, dtype=np.float64).reshape(6, 4) / 4
cells[0, 0] = -0.0
cells[5] = [np.nan, np.inf, -np.inf, 5e-324]

np.savez_compressed(f"{folder}/arrays.npz", cells=cells, fortran=np.asfortranarray(cells), ones=np.ones(3, "i4"))

with h5py.File(f"{folder}/datasets.h5", "w") as file:
    file["cells"] = cells
    file.create_dataset("packed", data=np.tile(cells, (100, 1)), chunks=(64, 3), compression="gzip", shuffle=True)
    file["group/deep/floats"] = cells.astype(">f4")
    file["integers"] = np.array([[1, -2], [3, 2**40]])
    file["booleans"] = np.array([True, False])
    file["single"] = 2.5
    file["images"] = np.arange(24).reshape(2, 3, 4)
    file["texts"] = ["a", "b"]
    file["records"] = np.zeros(2, dtype=[("a", "f8"), ("b", "i4")])
    file["link"] = h5py.SoftLink("/cells")
    file["elsewhere"] = h5py.ExternalLink("other.h5", "/cells")
    file["rows_none"] = np.zeros((0, 3))
    file["nothing"] = h5py.Empty("f8")
    outside = file.create_dataset("outside", (2, 2), dtype="f8", external=[("/etc/hostname", 0, 32)])

numbers = pa.table({"a": pa.array([1.5, -0.0, None, 5e-324]), "b": pa.array([1, 2, 3, None], "int16"),
                    "c": pa.array([True, None, False, True])})
pa.parquet.write_table(numbers, f"{folder}/numbers.parquet", row_group_size=3, compression="zstd")
table = pa.table({
    "text": pa.array(["a", None, "\u00e4\n", ""]),
    "word": pa.array(["x", "y", None, "x"]).dictionary_encode(),
    "large": pa.array([2**40, None, -1, 0]),
    "small": pa.array([1, 2, None, 255], "uint8"),
    "half": pa.array(np.array([1.5, 2, 3, 4], "f2")),
    "day": pa.array([0, 1, None, 20000], "date32"),
    "list": pa.array([[1, 2], None, [], [3]]),
    "none": pa.nulls(4),
})
pa.parquet.write_table(table.drop(["half"]), f"{folder}/table.parquet", row_group_size=3)
pa.feather.write_feather(table, f"{folder}/table.feather", chunksize=3, compression="lz4")

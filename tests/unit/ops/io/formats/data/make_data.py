#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder, with NumPy, SciPy, h5py, hdf5storage, pyarrow, pandas, Polars and DuckDB as their
users do; tests read them. make_data.py FUNCTION... writes those of some functions. Those of Octave and R: make_data.m, make_data.R."""
import os
import sys

import numpy as np

folder = os.path.dirname(os.path.abspath(__file__))
cells = np.arange(24, dtype=np.float64).reshape(6, 4) / 4
cells[0, 0] = -0.0
cells[5] = [np.nan, np.inf, -np.inf, 5e-324]


def arrays():
    np.savez_compressed(f"{folder}/arrays.npz", cells=cells, fortran=np.asfortranarray(cells), ones=np.ones(3, "i4"))

    import h5py

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


def tables():
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    numbers = pa.table({"a": pa.array([1.5, -0.0, None, 5e-324]), "b": pa.array([1, 2, 3, None], "int16"),
                        "c": pa.array([True, None, False, True])})
    pa.parquet.write_table(numbers, f"{folder}/tables/numbers.parquet", row_group_size=3, compression="zstd")
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
    pa.parquet.write_table(table.drop(["half"]), f"{folder}/tables/table.parquet", row_group_size=3)
    pa.feather.write_feather(table, f"{folder}/tables/table.feather", chunksize=3, compression="lz4")


def tables_of_others():
    """Tables of pandas, Polars and DuckDB, and what of Arrow such programs write."""
    from decimal import Decimal
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    tables = f"{folder}/tables"
    frame = pd.DataFrame({"x": [1.5, 2, 3, 4], "n": [1, 2, 3, 4]})
    frame[frame.x != 3].to_parquet(f"{tables}/pandas_rows.parquet")
    frame.assign(k=list("abcd")).set_index(["k", "n"]).to_feather(f"{tables}/pandas_index.feather")

    numbers = pa.table({
        "d": pa.array([Decimal("0.1"), Decimal("18.0"), None, Decimal("-0.3")], pa.decimal128(5, 1)),
        "whole": pa.array([Decimal(7), None, Decimal(-9), Decimal(0)], pa.decimal128(18, 0)),
        "long": pa.array([Decimal("12345678901234567890.12")] * 4, pa.decimal256(50, 2)),
        "hundreds": pa.array([Decimal(500)] * 4, pa.decimal128(9, -2)),
        "small": pa.array([Decimal("12.34")] * 4, pa.decimal32(6, 2)),
        "entries": pa.array([1.5, 2, None, 1.5]).dictionary_encode(),
        "flags": pa.array([True, None, False, True]).dictionary_encode(),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], pa.int16()), pa.array([7, None, 9])),
        "none": pa.nulls(4),
        "bytes": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, None, 5], pa.int8())),
    })
    pa.feather.write_feather(numbers, f"{tables}/numbers.feather", chunksize=3, compression="uncompressed")
    texts = pa.table({
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array(["a", None])),
        "id": pa.array([bytes(range(16)), None, bytes(16)], pa.uuid()),
        "sums": pa.array([[Decimal("0.5"), None], [], None], pa.list_(pa.decimal128(3, 1))),
    })
    pa.feather.write_feather(texts, f"{tables}/texts.feather", compression="uncompressed")
    large = pa.table({"u": pa.array([1, 2**64 - 1], pa.uint64()), "i": [2**53 + 1, 2**60]})
    pa.parquet.write_table(large, f"{tables}/large.parquet")
    with pa.OSFile(f"{tables}/stream.arrows", "wb") as file, pa.ipc.new_stream(file, large.schema) as writer:
        writer.write_table(large)
    pa.feather.write_feather(frame, f"{tables}/feather1.feather", version=1)

    polars = pl.DataFrame({"t": ["x", None, "a text of more than twelve"], "c": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
                           "d": pl.Series([Decimal("0.5"), None, Decimal("2.0")], dtype=pl.Decimal(10, 1))})
    polars.write_ipc(f"{tables}/polars.arrow")
    pl.DataFrame({"wide": pl.Series([1, 2**70], dtype=pl.Int128)}).write_ipc(f"{tables}/wide.arrow")
    duckdb.sql("""copy (select 0.1 as d, 5::hugeint as h, 'a'::enum('a', 'b') as e, interval 2 day as i, null as n,
                  '00112233-4455-6677-8899-aabbccddeeff'::uuid as u) to '""" + f"{tables}/duckdb.parquet' (format parquet)")


def sparse():
    """SciPy's save_npz(): all its formats, as matrices and as arrays, compressed and not."""
    import scipy.sparse as sp

    matrix = sp.csr_matrix(np.array([[0, 1.5, 0, 0], [0, 0, 0, 0], [-2, 0, 0, 3]]))
    for kind in ["csr", "csc", "coo", "bsr", "dia"]:
        sp.save_npz(f"{folder}/sparse_{kind}.npz", matrix.asformat(kind))
    sp.save_npz(f"{folder}/sparse_array.npz", sp.csr_array(matrix).astype("f4"), compressed=False)
    sp.save_npz(f"{folder}/sparse_blocks.npz", sp.bsr_matrix(np.kron([[1, 0], [0, 2]], np.ones((2, 3))), blocksize=(2, 3)))
    twice = sp.coo_matrix(([1, 2, 4], ([1, 0, 1], [2, 0, 2])), shape=(2, 3))
    sp.save_npz(f"{folder}/sparse_twice.npz", twice)
    sp.save_npz(f"{folder}/sparse_list.npz", sp.coo_array(np.array([0, 2.5, 0, 1])))
    sp.save_npz(f"{folder}/sparse_complex.npz", sp.csr_matrix(np.array([[1j, 0]])))


def matlab():
    """MATLAB 5 and 4 by SciPy, MATLAB 7.3 by hdf5storage."""
    import hdf5storage
    import scipy.io
    import scipy.sparse as sp

    values = {"X": np.arange(6.0).reshape(2, 3), "S": sp.csc_matrix([[0, 1.5, 0], [2, 0, 0]]), "E": np.zeros((0, 3)),
              "L": np.array([[True, False]]), "I": np.array([[1, -2]], "i4"), "T": np.arange(24.0).reshape(2, 3, 4),
              "text": "abc", "z": np.array([[1 + 2j]]), "cell": np.array([[1, "a"]], dtype=object)}
    scipy.io.savemat(f"{folder}/matlab5.mat", values, do_compression=True)
    scipy.io.savemat(f"{folder}/matlab4.mat", {"X": values["X"]}, format="4")
    del values["S"], values["cell"]
    hdf5storage.savemat(f"{folder}/matlab73.mat", values, format="7.3", store_python_metadata=False)


def others():
    """HDF5 of h5py: types of other tools, a block before the mark, AnnData, and what is newer than HDF5 1.10."""
    import h5py

    with h5py.File(f"{folder}/types.h5", "w", userblock_size=1024) as file:
        def bits(name, kind, cells):
            cells = np.array(cells)
            space = h5py.h5s.create_simple(cells.shape)
            h5py.h5d.create(file.id, name, kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, cells, mtype=kind)
        bits(b"bits", h5py.h5t.STD_B8LE, np.array([0, 1, 3], "u1"))
        bits(b"wide", h5py.h5t.STD_B16LE, np.array([0, 1, 3], "u2"))
        words = h5py.enum_dtype({"FALSE": 0, "TRUE": 1, "NA": 255}, basetype="u1")
        file.create_dataset("enumeration", data=np.array([1, 255, 0], "u1"), dtype=words)
        file["complex"] = np.array([1 + 2j])
        group = file.create_group("X")  # as AnnData keeps a sparse matrix
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [2, 3]})
        group.update({"data": np.array([1.5, -2]), "indices": np.array([2, 0]), "indptr": np.array([0, 1, 2])})
        file["tensor"] = np.arange(24.0).reshape(2, 3, 4)
        file.create_dataset("chunks", data=np.arange(35.0).reshape(5, 7), chunks=(2, 3), compression="gzip")
    with h5py.File(f"{folder}/newer.h5", "w", libver=("v112", "v112")) as file:
        file["booleans"] = np.array([True, False])
    with h5py.File(f"{folder}/large_chunk.h5", "w") as file:
        # 128 MB of zeros, packed twice: some hundred bytes.
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((4096, 4096))
        made.set_deflate(9)
        made.set_deflate(9)
        made.set_obj_track_times(False)
        space = h5py.h5s.create_simple((2, 2), (h5py.h5s.UNLIMITED,) * 2)
        h5py.h5d.create(file.id, b"cells", h5py.h5t.IEEE_F64LE, space, made).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.array([[1.0, 2], [3, 4]]))


for function in sys.argv[1:] or ["arrays", "tables", "tables_of_others", "sparse", "matlab", "others"]:
    globals()[function]()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of `heddle-bench memory` by DuckDB, Polars (streaming) and Dask, with as much memory:

    heddle-bench memory --peers 'python3 bench/peers/memory.py'

runs this program in its control group, once a case, and before that once for each file without a limit:

    memory.py prepare X.bin|X.csv                            writes what the peers read best beside the file
    memory.py PEER CASE X.bin|X.csv LABELS BYTES THREADS     prints seconds, without imports, and the sum of the
                                                             absolute cells of the result; or why there is none

Binary files: Dask reads the cells as NumPy maps them, DuckDB and Polars a parquet file of the same doubles that is
not compressed. Of text all read the same csv file. Products are sums of batches of rows multiplied by NumPy where the
peer has no product of its own; l2svm is the algorithm of bench/scripts/memory/l2svm.dml.
"""
import os
import struct
import sys
import time

BATCH_ROWS = 16384


def memory_map(path):
    """The cells of a binary file whose blocks are all dense: they follow each other behind the header."""
    import numpy
    with open(path, "rb") as file:
        rows, columns = struct.unpack_from("<QQ", file.read(64), 16)
    return numpy.memmap(path, dtype="<f8", mode="r", offset=64, shape=(rows, columns))


def parquet_of(path):
    return path + ".parquet"


def prepare(path):
    if path.endswith(".csv") or os.path.exists(parquet_of(path)):
        return
    import pyarrow
    import pyarrow.parquet
    x = memory_map(path)
    names = [f"c{j}" for j in range(x.shape[1])]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    beginning = parquet_of(path) + ".part"
    with pyarrow.parquet.ParquetWriter(beginning, schema, compression="none", use_dictionary=False) as writer:
        for begin in range(0, len(x), BATCH_ROWS):
            rows = x[begin:begin + BATCH_ROWS]
            writer.write_table(pyarrow.table([pyarrow.array(rows[:, j].copy()) for j in range(x.shape[1])], names),
                               row_group_size=BATCH_ROWS)
    os.rename(beginning, parquet_of(path))


class Batches:
    """What a peer without products has of its batches of rows, in their order."""

    def sum(self):
        return self.column_sums()[0].sum()

    def column_means(self):
        sums, rows = self.column_sums()
        return sums / rows

    def cross_product(self):
        return sum(batch.T @ batch for batch in self.batches())

    def multiply(self, s):
        import numpy
        return numpy.concatenate([batch @ s for batch in self.batches()])

    def transposed(self, v):
        result, begin = 0, 0
        for batch in self.batches():
            result = result + batch.T @ v[begin:begin + len(batch)]
            begin += len(batch)
        return result


class DuckDb(Batches):
    def __init__(self, path, memory, threads):
        import duckdb
        self.connection = duckdb.connect()
        self.connection.execute(f"SET memory_limit='{memory // 2 ** 20}MiB'")
        self.connection.execute(f"SET threads={threads}")
        self.connection.execute(f"SET temp_directory='{os.path.dirname(path)}/duckdb-spill'")
        self.source = (f"read_csv('{path}', header=false)" if path.endswith(".csv")
                       else f"read_parquet('{parquet_of(path)}')")

    def batches(self):
        import numpy
        reader = self.connection.execute(f"SELECT * FROM {self.source}").to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            yield numpy.column_stack([column.to_numpy() for column in batch.columns])

    def column_sums(self):
        import numpy
        row = self.connection.execute(f"SELECT count(*), sum(COLUMNS(*)) FROM {self.source}").fetchone()
        return numpy.array(row[1:]), row[0]


class Polars(Batches):
    def __init__(self, path, memory, threads):
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        import polars
        self.polars = polars
        self.frame = (polars.scan_csv(path, has_header=False) if path.endswith(".csv")
                      else polars.scan_parquet(parquet_of(path)))

    def batches(self):
        for batch in self.frame.collect_batches(maintain_order=True, engine="streaming"):
            yield batch.to_numpy()

    def column_sums(self):
        found = self.frame.select(self.polars.all().sum(), self.polars.len().alias("rows")).collect(engine="streaming")
        values = found.to_numpy()[0]
        return values[:-1], values[-1]


class Dask:
    def __init__(self, path, memory, threads):
        import dask
        import dask.array
        dask.config.set(scheduler="threads", num_workers=threads)
        self.array = dask.array
        if path.endswith(".csv"):
            import dask.dataframe
            frame = dask.dataframe.read_csv(path, header=None, blocksize=16 << 20)
            self.x = frame.to_dask_array(lengths=True)
        else:
            self.x = dask.array.from_array(memory_map(path), chunks=(BATCH_ROWS, -1), name=False)

    def sum(self):
        return self.x.sum().compute()

    def column_means(self):
        return self.x.mean(axis=0).compute()

    def cross_product(self):
        return (self.x.T @ self.x).compute()

    def multiply(self, s):
        return (self.x @ s).compute()

    def transposed(self, v):
        return (self.x.T @ self.array.from_array(v, chunks=(self.x.chunks[0],), name=False)).compute()


def l2svm(peer, labels, rounds=3, steps=5, weight=1.0):
    import numpy
    y = numpy.array(memory_map(labels)[:, 0])
    pieces = [slice(begin, begin + (1 << 20)) for begin in range(0, len(y), 1 << 20)]
    g_old = peer.transposed(y)
    s = g_old
    w = numpy.zeros_like(s)
    xw = numpy.zeros_like(y)
    for _ in range(rounds):
        xd = peer.multiply(s)
        wd, dd = weight * w @ s, weight * s @ s
        step = 0.0
        for _ in range(steps):
            g, h = wd + step * dd, dd
            for at in pieces:
                slack = numpy.maximum(1 - y[at] * (xw[at] + step * xd[at]), 0)
                g -= (slack * y[at]) @ xd[at]
                h += (xd[at] * (slack > 0)) @ xd[at]
            step -= g / h
        w = w + step * s
        for at in pieces:
            xw[at] += step * xd[at]
            xd[at] = numpy.maximum(1 - y[at] * xw[at], 0) * y[at]
        g_new = peer.transposed(xd) - weight * w
        s = (g_new @ g_new) / (g_old @ g_old) * s + g_new
        g_old = g_new
    return w


def main(words):
    if len(words) == 2 and words[0] == "prepare":
        return prepare(words[1])
    if len(words) != 6:
        sys.exit(__doc__)
    name, case, path, labels, memory, threads = words
    try:
        # Imports take no part in the time.
        import numpy
        __import__(name if name != "dask" else "dask.array")
    except ImportError as error:
        print(f"skipped: {error}")
        return None
    peer_type = {"duckdb": DuckDb, "polars": Polars, "dask": Dask}[name]
    begin = time.perf_counter()
    peer = peer_type(path, int(memory), int(threads))
    result = l2svm(peer, labels) if case == "l2svm" else getattr(peer, case)()
    seconds = time.perf_counter() - begin
    print(f"{seconds:.6f} {numpy.abs(numpy.asarray(result)).sum():.17g}")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])

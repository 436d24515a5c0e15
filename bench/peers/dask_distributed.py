#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Heddle on worker processes beside Dask's distributed scheduler: product, transpose, order, sums of groups.

    pip install "dask[array,dataframe,distributed]"
    bench/peers/dask_distributed.py --heddle build/release/heddle [--workers 4] [--rounds 3] [--only product]

Both have as many processes of one thread each, kept to the same two processors, and the same sizes. The data are drawn where
they lie, and the result stays there, cut by rows: what is timed is the operation alone. Of each the best of several rounds, in
turns. A sum over the results of both is shown: the numbers are drawn by each, so they agree but for chance.
"""
import argparse
import logging
import os
import subprocess
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--heddle", default="build/release/heddle")
PARSER.add_argument("--workers", type=int, default=4)
PARSER.add_argument("--rounds", type=int, default=3)
PARSER.add_argument("--only", default="")
OPTIONS = PARSER.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas  # noqa: E402
from dask.distributed import Client, LocalCluster, wait  # noqa: E402

# `if` on a number that is drawn ends a block: what is before it is computed before the clock is read.
SCRIPT = """
{draw}
seen = {seen}
if (seen < -1e300) print("never")
begin = time()
if (begin < 0) print("never")
{work}
least = {least}
if (least < -1e300) print("never")
end = time()
if (end < 0) print("never")
print("TIME " + (end - begin) / 1000000000 + " " + {check})
"""

ROWS = {"product": 20_000, "transpose": 20_000, "order": 2_000_000, "group sums": 8_000_000}
COLUMNS, GROUPS = 2_000, 1_000


def chunks(rows):
    return -(-rows // OPTIONS.workers)


def matrix(rows, columns):
    return da.random.random((rows, columns), chunks=(chunks(rows), columns)).persist()


def table(rows, make):
    part = chunks(rows)
    return dd.from_map(lambda i: make(i, min(part, rows - i * part)), range(OPTIONS.workers)).persist()


def drawn(i, rows):
    import numpy
    random = numpy.random.default_rng(i)
    return pandas.DataFrame(random.random((rows, 4)), columns=list("abcd"))


def grouped(i, rows):
    import numpy
    random = numpy.random.default_rng(i)
    return pandas.DataFrame({"k": random.integers(1, GROUPS + 1, rows).astype(float), "v": random.random(rows)})


# Of each: Heddle's data, operation and check; what reads a little of the result, so that it is there; and Dask's the same.
CASES = {
    "product": (
        f"X = rand(rows={ROWS['product']}, cols={COLUMNS}, seed=1); Y = rand(rows={COLUMNS}, cols={COLUMNS}, seed=2)",
        "sum(X[1,]) + sum(Y[1,])", "Z = X %*% Y", "sum(Z[1:4,])", "mean(Z)",
        lambda: (matrix(ROWS["product"], COLUMNS), da.random.random((COLUMNS, COLUMNS), chunks=(COLUMNS, COLUMNS)).persist()),
        lambda x, y: da.tensordot(x, y, axes=1), lambda z: z.mean().compute()),
    "transpose": (
        f"X = rand(rows={ROWS['transpose']}, cols={COLUMNS}, seed=1)", "sum(X[1,])", "Z = t(X)", "sum(Z[1:4,])", "mean(Z)",
        lambda: (matrix(ROWS["transpose"], COLUMNS),),
        lambda x: x.T.rechunk((chunks(COLUMNS), ROWS["transpose"])), lambda z: z.mean().compute()),
    "order": (
        f"X = rand(rows={ROWS['order']}, cols=4, seed=1)", "sum(X[1,])", "Z = order(target=X, by=1)", "sum(Z[1:4,])",
        f"as.scalar(Z[{ROWS['order'] // 2}, 1])",
        lambda: (table(ROWS["order"], drawn),),
        lambda x: x.sort_values("a"), lambda z: z["a"].partitions[0].compute().is_monotonic_increasing),
    "group sums": (
        f"k = ceil(rand(rows={ROWS['group sums']}, cols=1, seed=1) * {GROUPS}); v = rand(rows={ROWS['group sums']}, cols=1, seed=2)",
        "sum(k[1,]) + sum(v[1,])", "Z = aggregate(target=v, groups=k, fn=\"sum\")", "sum(Z)", "mean(Z)",
        lambda: (table(ROWS["group sums"], grouped),),
        lambda x: x.groupby("k")["v"].sum(), lambda z: z.mean().compute()),
}


def heddle(draw, seen, work, least, check):
    script = SCRIPT.format(draw=draw, seen=seen, work=work, least=least, check=check)
    done = subprocess.run([OPTIONS.heddle, "sim", "--workers", str(OPTIONS.workers), "--threads", "1", "-"], input=script,
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    words = next(line for line in done.stdout.splitlines() if line.startswith("TIME")).split()
    return float(words[1]), words[2]


def dask(draw, work, check):
    given = draw()
    wait(given)
    begin = time.perf_counter()
    result = work(*given).persist()
    wait(result)
    return time.perf_counter() - begin, check(result)


def main():
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with LocalCluster(n_workers=OPTIONS.workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL) as cluster, Client(cluster):
        for name, (draw, seen, work, least, check, draw_dask, work_dask, check_dask) in CASES.items():
            if OPTIONS.only not in name:
                continue
            rounds = [(heddle(draw, seen, work, least, check), dask(draw_dask, work_dask, check_dask))
                      for _ in range(OPTIONS.rounds)]
            own, peer = min(r[0] for r in rounds), min(r[1] for r in rounds)
            print(f"{name}: {own[0]:.3f} s, {peer[0]:.3f} s, {peer[0] / own[0]:.2f} times; {own[1]} and {peer[1]}", flush=True)


if __name__ == "__main__":
    main()

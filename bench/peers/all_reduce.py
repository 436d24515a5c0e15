#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All-reduce of 1, 4, 16 and 64 MB of doubles on 2 and 4 processes: Heddle's links beside Gloo (torch.distributed).

    python3 bench/peers/all_reduce.py build/release/heddle-bench [--rounds N]

Needs torch with Gloo (pip install torch). Both run in turns, N times (3); the best of each counts. Process r is kept on
processor r modulo their number, with one thread. Prints one JSON object for each number of processes and size.
"""
import argparse
import json
import multiprocessing
import os
import subprocess
import tempfile
import time

SIZES = [1 << 20, 4 << 20, 16 << 20, 64 << 20]
RANKS = [2, 4]
ROUND_BYTES = 256 << 20


def member(rank, ranks, store, results):
    import torch
    import torch.distributed as dist

    os.sched_setaffinity(0, {rank % os.cpu_count()})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    for size in SIZES:
        count = max(4, min(64, ROUND_BYTES // size))
        vector = torch.full((size // 8,), float(rank + 1), dtype=torch.float64)
        best = float("inf")
        for round_ in range(4):  # the first to warm up
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(count):
                dist.all_reduce(vector)
            elapsed = (time.perf_counter() - begin) / count
            if round_ > 0:
                best = min(best, elapsed)
            vector.fill_(float(rank + 1))
        dist.all_reduce(vector)
        assert bool((vector == ranks * (ranks + 1) / 2).all())
        if rank == 0:
            results.put((ranks, size, best * 1e3))
    dist.destroy_process_group()


def gloo():
    times = {}
    context = multiprocessing.get_context("spawn")
    for ranks in RANKS:
        with tempfile.TemporaryDirectory() as folder:
            results = context.Queue()
            members = [
                context.Process(target=member, args=(rank, ranks, folder + "/store", results)) for rank in range(ranks)
            ]
            for each in members:
                each.start()
            for _ in SIZES:
                ranks_, size, ms = results.get()
                times[(ranks_, size)] = ms
            for each in members:
                each.join()
    return times


def heddle(bench):
    times = {}
    command = [bench, "transport", "--only", "all-reduce", "--json"]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        figure = json.loads(line)
        times[(figure["ranks"], figure["bytes"], figure["way"])] = figure["ms"]
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    best = {}
    for _ in range(arguments.rounds):
        for times in (heddle(arguments.bench), gloo()):
            for key, ms in times.items():
                best[key] = min(ms, best.get(key, float("inf")))
    for ranks in RANKS:
        for size in SIZES:
            shared, grpc, peer = (best[(ranks, size, "shared memory")], best[(ranks, size, "gRPC")], best[(ranks, size)])
            print(
                json.dumps(
                    {
                        "bench": "all_reduce",
                        "ranks": ranks,
                        "bytes": size,
                        "shared_ms": round(shared, 3),
                        "grpc_ms": round(grpc, 3),
                        "gloo_ms": round(peer, 3),
                        "gloo_to_shared": round(peer / shared, 2),
                        "gloo_to_grpc": round(peer / grpc, 2),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()

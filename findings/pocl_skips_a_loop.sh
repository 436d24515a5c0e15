#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# POCL 3.0, OpenCL on processors: of two loops between barriers, whose first values are the number of the work-item, a
# work-group skips one where the last work-items have no part in it. Each work-item reads and writes its own places of
# local memory, all work-items meet at every barrier, and no two touch a place between two barriers: the program is
# valid. A group with 64 rows is right; one with 2 or 20 rows has sums of what local memory held before. Loops of as
# many rounds for every work-item, with a condition inside, are right. POCL 3.1 of Debian 12 does the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pocl-binary-distribution==3.0 pyopencl==2025.1 numpy==2.2.6
POCL_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" - <<'PYTHON'
import numpy, pyopencl

KERNEL = """
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void row_sums(const long rows, const long tasks, __global const double* x, __global const double* y,
              __global double* sums) {
  const int item = (int)get_local_id(0);
  __local double lanes[128], factors[192], cells[192];
  for (long task = (long)get_group_id(0); task < tasks; task += (long)get_num_groups(0)) {
    const long end = min(rows, (task + 1) * 64);
    for (long row = task * 64; row < end; row += 64) {
      const int n = (int)min((long)64, end - row);
      EACH { const int i = c / 3, j = c - i * 3; factors[i * 3 + j] = (y + row)[i]; }
      barrier(CLK_LOCAL_MEM_FENCE);
      EACH { const int i = c / 3, j = c - i * 3; cells[i * 3 + j] = (x + row * 3)[i * 3 + j] * factors[i * 3 + j]; }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int base = 0; base < n; base += 16) {
        const int w = base + item / 8, lane = item % 8;
        double sum = 0.0;
        if (w < n) { for (int j = lane; j < 3; j += 8) { sum = sum + cells[w * 3 + j]; } }
        lanes[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0 && w < n) { (sums + row)[w] = lanes[item] + lanes[item + 1] + lanes[item + 2]; }
        barrier(CLK_LOCAL_MEM_FENCE);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
}
"""
LOOPS = {
    "own rounds": "for (int c = item; c < n * 3; c += 128)",
    "equal rounds": "for (int k = 0, c = item; k < n * 3; k += 128, c += 128) if (c < n * 3)",
}
[platform] = [p for p in pyopencl.get_platforms() if "PoCL 3.0" in p.version]
context = pyopencl.Context(platform.get_devices())
queue = pyopencl.CommandQueue(context)
print(platform.version)
wrong = {}
for name, loop in LOOPS.items():
    program = pyopencl.Program(context, KERNEL.replace("EACH", loop)).build(["-cl-std=CL1.2"])
    for rows in (64, 128, 130, 20):
        x, y, sums = numpy.arange(1.0, rows * 3 + 1).reshape(-1, 3), numpy.ones(rows), numpy.zeros(rows)
        buffers = [pyopencl.Buffer(context, pyopencl.mem_flags.COPY_HOST_PTR, hostbuf=a) for a in (x, y, sums)]
        tasks = (rows + 63) // 64
        program.row_sums(queue, (128 * tasks,), (128,), numpy.int64(rows), numpy.int64(tasks), *buffers)
        pyopencl.enqueue_copy(queue, sums, buffers[2])
        wrong[name, rows] = int((sums != x.sum(axis=1)).sum())
        print(f"{name}, {rows} rows: {wrong[name, rows]} wrong")
assert wrong == {("own rounds", 64): 0, ("own rounds", 128): 0, ("own rounds", 130): 2, ("own rounds", 20): 20,
                 ("equal rounds", 64): 0, ("equal rounds", 128): 0, ("equal rounds", 130): 0, ("equal rounds", 20): 0}
PYTHON
# Seen with pocl-binary-distribution 3.0 (PoCL 3.0-rc2, LLVM 14.0.6) on a processor with AVX-512:
#   own rounds, 64 rows: 0 wrong
#   own rounds, 128 rows: 0 wrong
#   own rounds, 130 rows: 2 wrong
#   own rounds, 20 rows: 20 wrong
#   equal rounds, 64 rows: 0 wrong
#   ... (all others: 0 wrong)

// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/row_offsets.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/values/panels.h"

namespace heddle::ops {
namespace {

// Each work-item adds up a run of rows; one puts the sums of the runs before each other; then each adds what
// is before its run. Whole numbers have no order.
constexpr std::string_view kAddUp = R"(
__kernel void heddle_sum_runs(const long rows, const long run, __global const long* offsets,
                              __global long* sums) {
  for (long r = (long)get_global_id(0); r * run < rows; r += (long)get_global_size(0)) {
    long sum = 0;
    for (long i = r * run; i < min(rows, (r + 1) * run); ++i) sum += offsets[i + 1];
    sums[r] = sum;
  }
}
__kernel void heddle_sum_before(const long runs, __global long* sums) {
  if (get_global_id(0) > 0) return;
  long before = 0;
  for (long r = 0; r < runs; ++r) {
    const long sum = sums[r];
    sums[r] = before;
    before += sum;
  }
}
__kernel void heddle_add_up(const long rows, const long run, __global long* offsets,
                            __global const long* sums) {
  for (long r = (long)get_global_id(0); r * run < rows; r += (long)get_global_size(0)) {
    long before = sums[r];
    if (r == 0) offsets[0] = 0;
    for (long i = r * run; i < min(rows, (r + 1) * run); ++i) {
      before += offsets[i + 1];
      offsets[i + 1] = before;
    }
  }
}
)";

constexpr int64_t kMostRuns = 1024, kLeastRun = 64;

}  // namespace

Status AddUpRows(DeviceCommands& commands, int64_t rows, const std::shared_ptr<DeviceMemory>& offsets) {
  const int64_t run = std::max(kLeastRun, CeilDivide(rows, kMostRuns)), runs = CeilDivide(rows, run);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> sums, commands.device().Allocate(runs * 8));
  const std::string source(kAddUp);
  const DeviceArgument of_runs[] = {rows, run, offsets, sums}, before[] = {runs, sums};
  const LaunchShape shape = commands.ShapeOfCells(runs);
  HEDDLE_RETURN_IF_ERROR(commands.Launch(source, "heddle_sum_runs", of_runs, shape));
  HEDDLE_RETURN_IF_ERROR(commands.Launch(source, "heddle_sum_before", before, {}));
  return commands.Launch(source, "heddle_add_up", of_runs, shape);
}

}  // namespace heddle::ops

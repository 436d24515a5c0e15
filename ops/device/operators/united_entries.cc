// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/united_entries.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "ops/device/device_matrix.h"
#include "ops/device/operators/device_commands.h"
#include "ops/device/operators/row_offsets.h"

namespace heddle::ops {
namespace {

// A work-item merges the entries of a row of all matrices, whose columns ascend. `take` is what it does with
// each column `next` that some of them have; `has0` says whether the first one has it.
std::string MergeOf(size_t matrices, std::string_view name, std::string_view parameters,
                    std::string_view before, std::string_view take, std::string_view behind) {
  std::string text =
      fmt::format("\n__kernel void {}(const long rows, __global long* offsets{}", name, parameters);
  for (size_t m = 0; m < matrices; ++m)
    text += fmt::format(", __global const int* columns{0}, __global const long* offsets{0}", m);
  text += ") {\n  for (long i = (long)get_global_id(0); i < rows; i += (long)get_global_size(0)) {\n";
  for (size_t m = 0; m < matrices; ++m)
    text += fmt::format("    long e{0} = offsets{0}[i]; const long end{0} = offsets{0}[i + 1];\n", m);
  text += fmt::format("    {}\n    for (;;) {{\n      long next = LONG_MAX;\n", before);
  for (size_t m = 0; m < matrices; ++m)
    text += fmt::format("      if (e{0} < end{0}) next = min(next, (long)columns{0}[e{0}]);\n", m);
  text += "      if (next == LONG_MAX) break;\n";
  for (size_t m = 0; m < matrices; ++m)
    text += fmt::format("      const int has{0} = e{0} < end{0} && columns{0}[e{0}] == next;\n", m);
  text += fmt::format("      {}\n", take);
  for (size_t m = 0; m < matrices; ++m) text += fmt::format("      e{0} += has{0};\n", m);
  return text + fmt::format("    }}\n    {}\n  }}\n}}\n", behind);
}

std::string SourceOf(size_t matrices, ElementType type) {
  return OverBits(type, MergeOf(matrices, "heddle_count_united", "", "long count = 0;", "++count;",
                                "offsets[i + 1] = count;") +
                            MergeOf(matrices, "heddle_unite",
                                    ", __global CELL* to, __global int* columns, __global const CELL* values",
                                    "long at = offsets[i];",
                                    "columns[at] = (int)next; to[at] = has0 ? values[e0] : 0; ++at;", ""));
}

void AddRows(const std::vector<Matrix>& matrices, std::vector<DeviceArgument>* arguments) {
  for (const Matrix& matrix : matrices) {
    const EntriesOnDevice& entries = CellsOf(matrix).entries();
    arguments->insert(arguments->end(), {entries.columns, entries.offsets});
  }
}

}  // namespace

Result<std::unique_ptr<UnitedEntries>> UnitedEntries::Count(std::vector<Matrix> matrices,
                                                            ComputeDevice& device, DeviceQueue& queue) {
  std::unique_ptr<UnitedEntries> united(new UnitedEntries(std::move(matrices), device));
  const std::vector<Matrix>& all = united->matrices_;
  const int64_t rows = all[0].rows();
  HEDDLE_ASSIGN_OR_RETURN(united->offsets_, device.Allocate((rows + 1) * 8));
  DeviceCommands commands(device, queue, nullptr);
  std::vector<DeviceArgument> arguments = {rows, united->offsets_};
  AddRows(all, &arguments);
  HEDDLE_RETURN_IF_ERROR(commands.Launch(SourceOf(all.size(), all[0].element_type()), "heddle_count_united",
                                         arguments, commands.ShapeOfCells(rows)));
  HEDDLE_RETURN_IF_ERROR(AddUpRows(commands, rows, united->offsets_));
  HEDDLE_RETURN_IF_ERROR(queue.Read(*united->offsets_, rows * 8, 8, &united->count_));
  return united;
}

Result<Matrix> UnitedEntries::Make(DeviceQueue& queue) const {
  const Matrix& first = matrices_[0];
  const ElementType type = first.element_type();
  EntriesOnDevice entries{.offsets = offsets_, .count = count_};
  HEDDLE_ASSIGN_OR_RETURN(entries.values, device_.Allocate(count_ * BytesOf(type)));
  HEDDLE_ASSIGN_OR_RETURN(entries.columns, device_.Allocate(count_ * 4));
  std::vector<DeviceArgument> arguments = {first.rows(), offsets_, entries.values, entries.columns,
                                           CellsOf(first).entries().values};
  AddRows(matrices_, &arguments);
  DeviceCommands commands(device_, queue, nullptr);
  if (count_ > 0)
    HEDDLE_RETURN_IF_ERROR(commands.Launch(SourceOf(matrices_.size(), type), "heddle_unite", arguments,
                                           commands.ShapeOfCells(first.rows())));
  return Matrix::OfDeviceCells(
      std::make_shared<CellsOnDevice>(device_, std::move(entries), first.shape(), type));
}

}  // namespace heddle::ops

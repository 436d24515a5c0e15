// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/run_tiles_on_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/device/compiled_kernels.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/find_infinite.h"
#include "ops/device/operators/spread_entries.h"
#include "ops/fused/run/body_scalars.h"
#include "ops/fused/run/run_tiles.h"

namespace heddle::ops {
namespace {

// Work-groups for each compute unit: enough that others run while one waits for memory.
constexpr int64_t kGroupsPerUnit = 8;
constexpr int64_t kGroupSize = 128;
// Buffers of a work-item that is alone: they stay in the first-level cache.
constexpr int64_t kBytesAlone = 32 << 10;

// Sums of so small numbers are finite however many ranks join theirs; others the host looks at.
constexpr double kFarFromOverflow = 0x1p960;

bool AreFarFromOverflow(const double* numbers, int64_t count) {
  return std::all_of(numbers, numbers + count, [](double x) { return std::fabs(x) < kFarFromOverflow; });
}

// Payloads of so many cells are joined in less time than another thread needs to wake up.
constexpr int64_t kFewPayloadCells = 4096;

bool IsSparseThere(const Matrix& matrix) { return matrix.IsOnDevice() && CellsOf(matrix).IsSparse(); }

constexpr int32_t kNoFlags[2] = {0, 0};

TileLimits LimitsOf(const DeviceDescription& description, int64_t group_size) {
  if (group_size == 0) group_size = description.is_host ? 1 : kGroupSize;
  if (group_size == 1)
    return {.local_bytes = std::min(description.local_bytes, kBytesAlone), .group_size = 1};
  // Two groups share the local memory of a compute unit, so that one computes while the other waits.
  return {.local_bytes = std::min<int64_t>(description.local_bytes / 2, 64 << 10),
          .group_size = std::min(group_size, description.most_group_size / 8 * 8)};
}

int64_t GroupsOf(int64_t tasks, const DeviceDescription& device) {
  return std::clamp<int64_t>(tasks, 1, device.compute_units * kGroupsPerUnit);
}

}  // namespace

TileScratch TileScratch::Of(const TileProgram& program, const PrintedTiles& printed) {
  // Each device has 32 KiB of local memory (OpenCL 1.2, table 4.3), of which a group has half. Other buffers
  // are as low as tiles are: eight rows.
  constexpr int64_t kLeastLocalBytes = 16 << 10, kRowsOfTile = 8;
  TileScratch scratch;
  const int64_t doubles = SaturatingProduct(printed.buffer_columns, kRowsOfTile);
  if (doubles > (kLeastLocalBytes - kGroupSize * 8) / 8) scratch.group_doubles = doubles;
  for (const TileRoot& root : program.roots) {
    scratch.payloads.push_back({root.height, root.width});
    // Chains that go on from tile to tile.
    if (AddsSingles(program, root)) scratch.group_doubles = SaturatingSum(scratch.group_doubles, root.width);
  }
  return scratch;
}

int64_t TileScratch::Bytes(int64_t rows, const DeviceDescription& device) const {
  constexpr int64_t kLeastRowsOfTask = 8;
  int64_t doubles = SaturatingProduct(GroupsOf(CeilDivide(rows, kLeastRowsOfTask), device), group_doubles);
  for (const Payloads& of_root : payloads)
    doubles = SaturatingSum(doubles, SaturatingProduct(CeilDivide(rows, of_root.height), of_root.width));
  return SaturatingSum(SaturatingProduct(doubles, 8), static_cast<int64_t>(sizeof(kNoFlags)));
}

Result<PrintedTiles> DeviceTiles::Print(const TileProgram& program, const DeviceDescription& device,
                                        int64_t group_size) {
  const TileLimits limits = LimitsOf(device, group_size);
  if (limits.group_size != 1 && limits.group_size < 8)
    return Unimplemented("a device whose work-groups have fewer than 8 work-items");
  return PrintTiles(program, limits);
}

Result<std::shared_ptr<const DeviceTiles>> DeviceTiles::Make(std::shared_ptr<const TileProgram> program,
                                                             ComputeDevice& device, PrintedTiles printed) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceKernel> kernel,
                          KernelOf(device, printed.source, printed.name));
  return std::shared_ptr<const DeviceTiles>(
      new DeviceTiles(std::move(program), device, std::move(printed), std::move(kernel)));
}

struct DeviceTiles::Readings {
  int32_t flags[2] = {0, 0};
  std::vector<Matrix> leaves;
  std::vector<std::shared_ptr<DeviceMemory>> memory;  // What is read from, until it has been.
};

class DeviceTiles::QueuedTiles : public QueuedCall {
 public:
  QueuedTiles(std::shared_ptr<const DeviceTiles> tiles, const KernelCall& call,
              std::shared_ptr<Readings> readings)
      : tiles_(std::move(tiles)), call_(call), readings_(std::move(readings)) {}

  bool HasRest() const override { return tiles_->printed_.sets_flags || !readings_->leaves.empty(); }
  bool IsLong() const override {
    int64_t cells = 0;
    for (const Matrix& leaves : readings_->leaves) cells += leaves.cells();
    return cells > kFewPayloadCells;
  }
  Status Finish(std::span<Value> results) override {
    if (readings_->flags[0] != 0) return Unimplemented("a sum is infinite or NaN");
    if (readings_->flags[1] != 0) return Unimplemented("cells that are not zero beside a result's entries");
    for (size_t r = 0; r < readings_->leaves.size(); ++r) {
      const Matrix& leaves = readings_->leaves[r];
      if (AddsUp(tiles_->program_->roots[r].aggregate) && !AreFarFromOverflow(leaves.data(), leaves.cells()))
        return Unimplemented("a sum is infinite or NaN");
    }
    return tiles_->FinishRoots(call_, readings_->leaves, results);
  }

 private:
  const std::shared_ptr<const DeviceTiles> tiles_;
  const KernelCall call_;
  const std::shared_ptr<Readings> readings_;
};

Result<std::unique_ptr<QueuedCall>> DeviceTiles::Queue(const KernelCall& call, DeviceQueue& queue,
                                                       std::span<Value> results) const {
  auto readings = std::make_shared<Readings>();
  if (const Status status = QueueReadings(call, queue, results, readings); !status.ok()) {
    // What is queued already may write there.
    if (!queue.WhenDone([readings](const Status&) {}).ok()) static_cast<void>(queue.Finish());
    return status;
  }
  return std::unique_ptr<QueuedCall>(
      std::make_unique<QueuedTiles>(shared_from_this(), call, std::move(readings)));
}

Status DeviceTiles::QueueReadings(const KernelCall& call, DeviceQueue& queue, std::span<Value> results,
                                  const std::shared_ptr<Readings>& readings) const {
  const TileProgram& program = *program_;
  std::vector<Matrix>& leaves = readings->leaves;
  const int64_t rows = call.inputs[static_cast<size_t>(program.fused.driver)]->matrix().rows();
  const int64_t kernel_rows = rows * printed_.rows_of_row;
  const int64_t tasks = CeilDivide(kernel_rows, printed_.task_rows);
  std::vector<DeviceArgument> arguments = {kernel_rows, tasks};
  Matrix driver;                                        // A CSR one, on the device.
  std::vector<std::shared_ptr<DeviceMemory>> infinite;  // In the order of inputs, as `checked` is.
  for (size_t i = 0; i < printed_.inputs.size(); ++i) {
    const Matrix& given = call.inputs[static_cast<size_t>(printed_.inputs[i])]->matrix();
    if (printed_.sparse[i]) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix there, EntriesToDevice(given, device_, queue));
      if (printed_.inputs[i] == program.fused.driver) driver = there;
      const EntriesOnDevice& entries = CellsOf(there).entries();
      arguments.insert(arguments.end(), {entries.values, entries.columns, entries.offsets});
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const Matrix there, IsSparseThere(given) ? SpreadEntries(given, device_, queue)
                                                                     : ToDevice(given, device_, queue));
    PlaceOnDevice place = PlaceOf(there);
    arguments.emplace_back(std::move(place.memory));
    arguments.emplace_back(place.first_cell);
    if (std::find(printed_.checked.begin(), printed_.checked.end(), printed_.inputs[i]) ==
        printed_.checked.end())
      continue;
    HEDDLE_ASSIGN_OR_RETURN(infinite.emplace_back(), FindInfinite(there, device_, queue));
  }
  BodyScalars scalars(program);
  HEDDLE_RETURN_IF_ERROR(scalars.Evaluate(call));
  for (const NodeId scalar : printed_.scalars) arguments.emplace_back(scalars[static_cast<size_t>(scalar)]);
  for (const int result : printed_.results) {
    const ValueInfo& info = program.fused.body[program.fused.roots[static_cast<size_t>(result)]].info;
    const ElementType type = program.single ? ElementType::kFloat32 : ElementType::kFloat64;
    if (program.IsPatterned(result)) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix entries, SameEntriesOnDevice(driver, type));
      arguments.emplace_back(CellsOf(entries).entries().values);
      results[static_cast<size_t>(result)] = std::move(entries);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                            MakeOnDevice(device_, {rows, info.shape.columns}, type));
    arguments.emplace_back(cells->memory());
    results[static_cast<size_t>(result)] = Matrix::OfDeviceCells(cells);
  }
  std::vector<std::shared_ptr<DeviceMemory>>& payloads = readings->memory;
  for (const TileRoot& root : program.roots) {
    HEDDLE_ASSIGN_OR_RETURN(leaves.emplace_back(), Matrix::Dense(CeilDivide(rows, root.height), root.width));
    HEDDLE_ASSIGN_OR_RETURN(payloads.emplace_back(), device_.Allocate(leaves.back().cells() * 8));
    arguments.emplace_back(payloads.back());
  }
  std::shared_ptr<DeviceMemory> flags;  // Where nobody sets them the kernel has an address of nothing.
  if (printed_.sets_flags) {
    HEDDLE_ASSIGN_OR_RETURN(flags, device_.Allocate(sizeof(kNoFlags)));
    readings->memory.push_back(flags);
    HEDDLE_RETURN_IF_ERROR(queue.Write(kNoFlags, sizeof(kNoFlags), *flags, 0));
  }
  arguments.emplace_back(flags);
  const int64_t groups = GroupsOf(tasks, device_.description());
  if (printed_.scratch_doubles > 0) {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> scratch,
                            device_.Allocate(groups * printed_.scratch_doubles * 8));
    arguments.emplace_back(std::move(scratch));
  }
  for (int p = 0; p < printed_.patterns; ++p) {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> pattern,
                            device_.Allocate(CellsOf(driver).entries().count * 8));
    arguments.emplace_back(std::move(pattern));
  }
  arguments.insert(arguments.end(), infinite.begin(), infinite.end());
  if (kernel_rows > 0)
    HEDDLE_RETURN_IF_ERROR(
        queue.Launch(kernel_, arguments, {.groups = groups, .group_size = printed_.group_size}));
  for (size_t r = 0; r < leaves.size(); ++r)
    HEDDLE_RETURN_IF_ERROR(queue.Read(*payloads[r], 0, leaves[r].cells() * 8, leaves[r].mutable_data()));
  if (printed_.sets_flags)
    HEDDLE_RETURN_IF_ERROR(queue.Read(*flags, 0, sizeof(readings->flags), readings->flags));
  return OkStatus();
}

// This rank's nodes of reductions that have one tree: the payloads of `roots`, one behind the other.
// kUnimplemented where sums are to be added again in a wider range, or may be when others join theirs.
Result<Matrix> DeviceTiles::NodesOf(const Reduction& reduction, int64_t first_leaf, int64_t leaf_count,
                                    const std::vector<Matrix>& leaves, std::span<const size_t> roots) const {
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes,
      ReduceLeaves(reduction, first_leaf, first_leaf + leaf_count, [&](int64_t leaf, double* payload) {
        for (const size_t r : roots) {
          const TileRoot& root = program_->roots[r];
          const int64_t offset = roots.size() == 1 ? 0 : root.offset;
          std::memcpy(payload + offset, leaves[r].data() + (leaf - first_leaf) * root.width,
                      static_cast<size_t>(root.width) * sizeof(double));
        }
        return true;
      }));
  for (const size_t r : roots) {
    const TileRoot& root = program_->roots[r];
    if (!AddsUp(root.aggregate)) continue;
    for (int64_t i = 0; i < nodes.rows(); ++i) {
      // Behind the index and the level of the node.
      const double* const payload = nodes.data() + i * nodes.columns() + 2;
      if (!AreFarFromOverflow(payload + (roots.size() == 1 ? 0 : root.offset), root.width))
        return Unimplemented("a sum is infinite or NaN");
    }
  }
  return nodes;
}

Status DeviceTiles::FinishRoots(const KernelCall& call, const std::vector<Matrix>& leaves,
                                std::span<Value> results) const {
  const TileProgram& program = *program_;
  if (program.roots.empty()) return OkStatus();
  const int64_t first_row = call.phase == Phase::kPartial ? call.row_begin : 0;
  if (program.fused.kind == FusionTemplate::kStitch) {
    for (size_t r = 0; r < program.roots.size(); ++r) {
      const TileRoot& root = program.roots[r];
      const Reduction reduction{.join = root.join, .width = root.width, .cancelled = call.context.cancelled};
      HEDDLE_ASSIGN_OR_RETURN(Matrix nodes,
                              NodesOf(reduction, first_row / root.height, leaves[r].rows(), leaves, {&r, 1}));
      HEDDLE_RETURN_IF_ERROR(
          CloseRoot(program, root, std::move(nodes), call, &results[static_cast<size_t>(root.result)]));
    }
    return OkStatus();
  }
  std::vector<size_t> roots(program.roots.size());
  for (size_t r = 0; r < roots.size(); ++r) roots[r] = r;
  Reduction reduction = program.reduction;
  reduction.cancelled = call.context.cancelled;
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes, NodesOf(reduction, first_row / program.panel_rows, leaves[0].rows(), leaves, roots));
  if (call.phase != Phase::kPartial) return ops::FinishRoots(program, nodes, call, results);
  if (program.fused.roots.size() == 1) {
    HEDDLE_ASSIGN_OR_RETURN(nodes, ListOfRoot(program.roots[0], std::move(nodes)));
  }
  results[0] = std::move(nodes);
  return OkStatus();
}

}  // namespace heddle::ops

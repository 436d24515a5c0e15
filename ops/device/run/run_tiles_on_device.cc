// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/run_tiles_on_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/device/compiled_kernels.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/device_commands.h"
#include "ops/device/operators/find_infinite.h"
#include "ops/device/operators/join_leaves.h"
#include "ops/device/operators/spread_entries.h"
#include "ops/device/run/run_counted_on_device.h"
#include "ops/device/run/step_queue.h"
#include "ops/device/run/task_launches.h"
#include "ops/fused/run/body_rows.h"
#include "ops/fused/run/body_scalars.h"
#include "ops/fused/run/run_long_rows.h"
#include "ops/fused/run/run_tiles.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGroupSize = 128;
// Buffers of a work-item that is alone: they stay in the first-level cache.
constexpr int64_t kBytesAlone = 32 << 10;

bool AreFarFromOverflow(const double* numbers, int64_t count) {
  return std::all_of(numbers, numbers + count, [](double x) { return std::fabs(x) < kFarFromOverflow; });
}

// So many cells of nodes are finished in less time than another thread needs to wake up.
constexpr int64_t kFewCells = 4096;

bool IsSparseThere(const Matrix& matrix) { return matrix.IsOnDevice() && CellsOf(matrix).IsSparse(); }

constexpr int32_t kNoFlags[2] = {0, 0};

// Places among the arguments of a kernel.
constexpr size_t kFirstTask = 1, kEndOfTasks = 2;

TileLimits LimitsOf(const DeviceDescription& description, int64_t group_size) {
  if (group_size == 0) group_size = description.is_host ? 1 : kGroupSize;
  if (group_size == 1)
    return {.local_bytes = std::min(description.local_bytes, kBytesAlone), .group_size = 1};
  // Two groups share the local memory of a compute unit, so that one computes while the other waits.
  return {.local_bytes = std::min<int64_t>(description.local_bytes / 2, 64 << 10),
          .group_size = std::min(group_size, description.most_group_size / 8 * 8),
          .busy_tasks = 2 * description.compute_units};
}

// What the "finish" of the root's operator makes of a payload.
FinishedCells FinishedOf(const TileProgram& program, const TileRoot& root) {
  const ValueInfo& info = program.fused.body[root.node].info;
  FinishedCells cells;
  if (info.IsMatrix()) {
    cells.rows = info.shape.rows;
    cells.columns = info.shape.columns;
    cells.type = info.element_type;
  }
  const auto rows = static_cast<double>(program.roles.rows);
  cells.count = SumsAllCells(root) ? rows * static_cast<double>(root.n) : rows;
  if (root.aggregate == AggregateKind::kMean) cells.kind = FinishedCells::Kind::kMean;
  cells.join = root.join;
  cells.column_step = 1;
  switch (root.kind) {
    case TileRoot::Kind::kFull: cells.lane_step = 1; break;
    case TileRoot::Kind::kColumns:
      if (root.n <= kFewColumns) cells.lane_step = root.n;
      break;
    case TileRoot::Kind::kMoments:
      cells.first = root.of_cells ? 2 : 1 + root.n;
      cells.kind = root.aggregate == AggregateKind::kVariance ? FinishedCells::Kind::kVariance
                                                              : FinishedCells::Kind::kDeviation;
      break;
    case TileRoot::Kind::kVectors:
      cells.kind = FinishedCells::Kind::kProduct;
      cells.row_step = 1;
      cells.column_step = root.padded;
      break;
    case TileRoot::Kind::kLanes: cells.lane_step = root.n * root.k; [[fallthrough]];
    case TileRoot::Kind::kProduct:
      cells.kind = FinishedCells::Kind::kProduct;
      cells.row_step = root.k;
      cells.is_symmetric = root.symmetric;
      break;
  }
  return cells;
}

}  // namespace

DeviceScratch DeviceScratch::Of(const TileProgram& program, const PrintedTiles& printed) {
  // Each device has 32 KiB of local memory (OpenCL 1.2, table 4.3), of which a group has half. Other buffers
  // are as low as tiles are: eight rows.
  constexpr int64_t kLeastLocalBytes = 16 << 10, kRowsOfTile = 8;
  DeviceScratch scratch;
  const int64_t doubles = SaturatingProduct(printed.buffer_columns, kRowsOfTile);
  if (doubles > (kLeastLocalBytes - kGroupSize * 8) / 8) scratch.group_doubles = doubles;
  for (const TileRoot& root : program.roots) {
    const int64_t joined = JoinedRows(program, root), height = SaturatingProduct(root.height, joined);
    scratch.payloads.push_back({height, SaturatingProduct(LeavesOf(program, root, height), root.width)});
    if (joined > 1)  // The leaves of a row.
      scratch.group_doubles =
          SaturatingSum(scratch.group_doubles, SaturatingProduct(program.chunks, root.width));
    // Chains that go on from tile to tile.
    if (AddsSingles(program, root)) scratch.group_doubles = SaturatingSum(scratch.group_doubles, root.width);
  }
  scratch.row_doubles = SaturatingProduct(program.saved_arrays, program.cut_columns);
  // Offsets of all entries, and cells of which those that are not 0 become entries.
  if (!program.united.empty()) ++scratch.row_doubles;
  for (size_t r = 0; r < program.fused.roots.size(); ++r)
    if (IsMadeDense(program, r))
      scratch.row_doubles =
          SaturatingSum(scratch.row_doubles, program.fused.body[program.fused.roots[r]].info.shape.columns);
  return scratch;
}

int64_t DeviceScratch::Bytes(int64_t rows, const DeviceDescription& device) const {
  constexpr int64_t kLeastRowsOfTask = 8;
  const int64_t groups = WorkGroupsOf(CeilDivide(rows, kLeastRowsOfTask), device);
  int64_t doubles = SaturatingProduct(groups, group_doubles);
  doubles = SaturatingSum(doubles, SaturatingProduct(rows, row_doubles));
  for (const Payloads& of_root : payloads)
    doubles = SaturatingSum(doubles, SaturatingProduct(CeilDivide(rows, of_root.height), of_root.width));
  return SaturatingSum(SaturatingProduct(doubles, 8), static_cast<int64_t>(sizeof(kNoFlags)));
}

Result<PrintedTiles> DeviceTiles::Print(const TileProgram& program, const DeviceDescription& device,
                                        int64_t group_size, std::vector<bool> scalars_in_memory) {
  TileLimits limits = LimitsOf(device, group_size);
  if (limits.group_size != 1 && limits.group_size < 8)
    return Unimplemented("a device whose work-groups have fewer than 8 work-items");
  limits.scalars_in_memory = std::move(scalars_in_memory);
  return PrintTiles(program, limits);
}

Result<std::shared_ptr<const DeviceTiles>> DeviceTiles::Make(std::shared_ptr<const TileProgram> program,
                                                             ComputeDevice& device, PrintedTiles printed) {
  std::vector<std::shared_ptr<DeviceKernel>> kernels;
  for (const PrintedPass& pass : printed.passes) {
    HEDDLE_ASSIGN_OR_RETURN(kernels.emplace_back(), KernelOf(device, pass.source, printed.name));
  }
  return std::shared_ptr<const DeviceTiles>(
      new DeviceTiles(std::move(program), device, std::move(printed), std::move(kernels)));
}

struct DeviceTiles::Readings {
  int32_t flags[2] = {0, 0};
  bool has_flags = false;
  bool keeps_scalars = false;
  std::vector<std::optional<Matrix>> nodes;           // By root; nullopt: its result stays on the device.
  std::vector<std::shared_ptr<DeviceMemory>> memory;  // What is read from, until it has been.
};

class DeviceTiles::QueuedTiles : public QueuedCall {
 public:
  QueuedTiles(std::shared_ptr<const DeviceTiles> tiles, const KernelCall& call,
              std::unique_ptr<StepQueue> queue, std::shared_ptr<Readings> readings)
      : tiles_(std::move(tiles)), call_(call), queue_(std::move(queue)), readings_(std::move(readings)) {}

  bool HasMore() const override { return queue_->HasStep(); }
  Status QueueMore() override { return queue_->TakeStep(); }
  bool HasRest() const override { return readings_->has_flags || CellsOfNodes() >= 0; }
  bool IsLong() const override { return CellsOfNodes() > kFewCells; }
  Status Finish(std::span<Value> results) override {
    if (readings_->flags[0] != 0) return Unimplemented("a sum is infinite or NaN");
    if (readings_->flags[1] != 0) return Unimplemented("cells that are not zero beside a result's entries");
    for (size_t r = 0; r < readings_->nodes.size(); ++r) {
      const std::optional<Matrix>& nodes = readings_->nodes[r];
      if (!nodes || !MayNeedWideSums(*tiles_->program_, tiles_->program_->roots[r])) continue;
      for (int64_t i = 0; i < nodes->rows(); ++i)  // Behind the index and the level of the node.
        if (!AreFarFromOverflow(nodes->data() + i * nodes->columns() + 2, nodes->columns() - 2))
          return Unimplemented("a sum is infinite or NaN");
    }
    return tiles_->FinishRoots(call_, &readings_->nodes, results);
  }

 private:
  // Of those that are read; -1: none are.
  int64_t CellsOfNodes() const {
    int64_t cells = -1;
    for (const std::optional<Matrix>& nodes : readings_->nodes)
      if (nodes) cells = std::max<int64_t>(cells, 0) + nodes->cells();
    return cells;
  }

  const std::shared_ptr<const DeviceTiles> tiles_;
  const KernelCall call_;
  const std::unique_ptr<StepQueue> queue_;
  const std::shared_ptr<Readings> readings_;
};

Result<std::unique_ptr<QueuedCall>> DeviceTiles::Queue(const KernelCall& call, DeviceQueue& queue,
                                                       std::span<Value> results,
                                                       const std::map<NodeId, Value>& scalars,
                                                       bool keeps_scalars) const {
  auto readings = std::make_shared<Readings>();
  readings->keeps_scalars = keeps_scalars;
  auto steps = std::make_unique<StepQueue>(queue);
  if (const Status status = QueueReadings(call, *steps, results, scalars, readings); !status.ok()) {
    HoldUntilDone(queue, readings);
    return status;
  }
  return std::unique_ptr<QueuedCall>(
      std::make_unique<QueuedTiles>(shared_from_this(), call, std::move(steps), std::move(readings)));
}

bool DeviceTiles::Stays(const KernelCall& call, const TileRoot& root, const Readings& readings) const {
  const ValueInfo& info = program_->fused.body[root.node].info;
  if (call.phase != Phase::kWhole) return false;
  return info.IsMatrix() ? info.format == Format::kDense : readings.keeps_scalars;
}

Status DeviceTiles::AddScalars(const KernelCall& call, const std::map<NodeId, Value>& scalars,
                               std::vector<DeviceArgument>* arguments) const {
  // What comes of those in memory is computed there; a number stands for them here.
  static const auto* const number = new Value(Scalar(1.0));
  std::vector<const Value*> inputs(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (call.input_infos[i].IsScalar() && inputs[i] != nullptr && inputs[i]->IsMatrix()) inputs[i] = number;
  KernelCall of_host = call;
  of_host.inputs = inputs;
  BodyScalars numbers(*program_);
  HEDDLE_RETURN_IF_ERROR(numbers.Evaluate(of_host));
  for (const NodeId scalar : printed_.scalars) {
    const auto found = scalars.find(scalar);
    if (found == scalars.end() || !found->second.IsMatrix()) {
      arguments->emplace_back(numbers[static_cast<size_t>(scalar)]);
      continue;
    }
    PlaceOnDevice place = PlaceOf(found->second.matrix());
    arguments->emplace_back(std::move(place.memory));
    arguments->emplace_back(place.first_cell);
  }
  return OkStatus();
}

void DeviceTiles::AddLaunches(const KernelCall& call, const std::vector<int64_t>& tasks,
                              const std::vector<DeviceArgument>& arguments, DeviceSteps* steps) const {
  const double work = WorkOf(call, program_->fused.driver) / static_cast<double>(kernels_.size());
  for (size_t p = 0; p < kernels_.size(); ++p) {
    const TaskLaunches launches = TaskLaunches::Of(tasks[p], work, device_.description());
    for (int64_t first = 0; first < launches.tasks; first += launches.at_once) {
      const int64_t end = std::min(launches.tasks, first + launches.at_once);
      auto launch = [tiles = shared_from_this(), commands = steps->commands(), p, first, end,
                     given = arguments]() mutable {
        given[kFirstTask] = first;
        given[kEndOfTasks] = end;
        return commands.queue().Launch(
            tiles->kernels_[p], given,
            {.groups = WorkGroupsOf(end - first, tiles->device_.description()),
             .group_size = tiles->printed_.group_size});
      };
      if (launches.count() > 1)
        steps->AddLong(std::move(launch));
      else
        steps->Add(std::move(launch));
    }
  }
}

Status DeviceTiles::AddInputs(const KernelCall& call, DeviceQueue& queue, Matrix* driver,
                              std::vector<std::shared_ptr<DeviceMemory>>* infinite,
                              std::vector<DeviceArgument>* arguments) const {
  for (size_t i = 0; i < printed_.inputs.size(); ++i) {
    const int input = printed_.inputs[i];
    const Matrix& given = call.inputs[static_cast<size_t>(input)]->matrix();
    if (printed_.sparse[i]) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix there, EntriesToDevice(given, device_, queue));
      if (input == program_->fused.driver) *driver = there;
      const EntriesOnDevice& entries = CellsOf(there).entries();
      arguments->insert(arguments->end(), {entries.values, entries.columns, entries.offsets});
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const Matrix there, IsSparseThere(given) ? SpreadEntries(given, device_, queue)
                                                                     : ToDevice(given, device_, queue));
    PlaceOnDevice place = PlaceOf(there);
    arguments->emplace_back(std::move(place.memory));
    arguments->emplace_back(place.first_cell);
    if (std::find(printed_.checked.begin(), printed_.checked.end(), input) == printed_.checked.end())
      continue;
    HEDDLE_ASSIGN_OR_RETURN(infinite->emplace_back(), FindInfinite(there, device_, queue));
  }
  return OkStatus();
}

Status DeviceTiles::AddResults(int64_t rows, const Matrix& driver, std::span<Value> results,
                               std::vector<DeviceArgument>* arguments) const {
  const ElementType type = program_->single ? ElementType::kFloat32 : ElementType::kFloat64;
  for (const int result : printed_.results) {
    Value& made = results[static_cast<size_t>(result)];
    if (program_->IsPatterned(result)) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix entries, SameEntriesOnDevice(driver, type));
      arguments->emplace_back(CellsOf(entries).entries().values);
      made = std::move(entries);
      continue;
    }
    const NodeId root = program_->fused.roots[static_cast<size_t>(result)];
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                            MakeOnDevice(device_, {rows, body()[root].info.shape.columns}, type));
    arguments->emplace_back(cells->memory());
    made = Matrix::OfDeviceCells(cells);
  }
  return OkStatus();
}

Status DeviceTiles::AddBuffers(int64_t groups, int64_t rows, const Matrix& driver,
                               std::vector<DeviceArgument>* arguments) const {
  const auto add = [&](int64_t doubles) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> buffer, device_.Allocate(doubles * 8));
    arguments->emplace_back(std::move(buffer));
    return OkStatus();
  };
  if (printed_.scratch_doubles > 0) HEDDLE_RETURN_IF_ERROR(add(groups * printed_.scratch_doubles));
  for (int p = 0; p < printed_.patterns; ++p)
    HEDDLE_RETURN_IF_ERROR(add(CellsOf(driver).entries().count));
  for (int i = 0; i < program_->saved_arrays; ++i)
    HEDDLE_RETURN_IF_ERROR(add(rows * program_->cut_columns));
  return OkStatus();
}

Status DeviceTiles::QueueReadings(const KernelCall& call, StepQueue& queue, std::span<Value> results,
                                  const std::map<NodeId, Value>& scalars,
                                  const std::shared_ptr<Readings>& readings) const {
  const TileProgram& program = *program_;
  const int64_t rows = call.inputs[static_cast<size_t>(program.fused.driver)]->matrix().rows();
  const int64_t kernel_rows = rows * printed_.rows_of_row;
  std::vector<int64_t> tasks;  // Of each pass.
  for (const PrintedPass& pass : printed_.passes)
    tasks.push_back(CeilDivide(kernel_rows, pass.task_rows) * pass.row_tasks);
  std::vector<DeviceArgument> arguments = {kernel_rows, int64_t{0}, tasks[0]};
  Matrix driver;                                        // A CSR one, on the device.
  std::vector<std::shared_ptr<DeviceMemory>> infinite;  // In the order of inputs, as `checked` is.
  HEDDLE_RETURN_IF_ERROR(AddInputs(call, queue, &driver, &infinite, &arguments));
  HEDDLE_RETURN_IF_ERROR(AddScalars(call, scalars, &arguments));
  HEDDLE_RETURN_IF_ERROR(AddResults(rows, driver, results, &arguments));
  std::vector<std::shared_ptr<DeviceMemory>> payloads;
  readings->has_flags = printed_.sets_flags;
  for (const TileRoot& root : program.roots) {
    // The device alone reads the payloads of row aggregates.
    const bool stays = !root.of_rows && Stays(call, root, *readings);
    if (rows == 0 && stays) return Unimplemented("on a device: reductions of no rows");
    HEDDLE_ASSIGN_OR_RETURN(payloads.emplace_back(),
                            device_.Allocate(LeavesOf(program, root, rows) * root.width * 8));
    arguments.emplace_back(payloads.back());
    readings->has_flags |= stays && MayNeedWideSums(program, root);
  }
  std::shared_ptr<DeviceMemory> flags;  // Where nobody sets them the kernel has an address of nothing.
  if (readings->has_flags) {
    HEDDLE_ASSIGN_OR_RETURN(flags, device_.Allocate(sizeof(kNoFlags)));
    readings->memory.push_back(flags);
    HEDDLE_RETURN_IF_ERROR(queue.Write(kNoFlags, sizeof(kNoFlags), *flags, 0));
  }
  arguments.emplace_back(flags);
  const int64_t most_tasks = *std::max_element(tasks.begin(), tasks.end());
  HEDDLE_RETURN_IF_ERROR(
      AddBuffers(WorkGroupsOf(most_tasks, device_.description()), rows, driver, &arguments));
  arguments.insert(arguments.end(), infinite.begin(), infinite.end());
  const auto steps = std::make_shared<DeviceSteps>(DeviceCommands(device_, queue, call.context.cancelled));
  if (kernel_rows > 0) AddLaunches(call, tasks, arguments, steps.get());
  steps->Add([tiles = shared_from_this(), later = call, commands = steps->commands(), rows, payloads, flags,
              results, readings]() mutable -> Status {
    for (size_t r = 0; r < payloads.size(); ++r)
      HEDDLE_RETURN_IF_ERROR(
          tiles->QueueRoot(later, commands, rows, r, payloads[r], flags, results, readings.get()));
    if (readings->has_flags)
      HEDDLE_RETURN_IF_ERROR(
          commands.queue().Read(*flags, 0, sizeof(readings->flags), readings->flags));
    return OkStatus();
  });
  return steps->Run();
}

// The tree of a reduction, and its result where that stays there; else its nodes are read.
Status DeviceTiles::QueueRoot(const KernelCall& call, DeviceCommands& commands, int64_t rows, size_t r,
                              const std::shared_ptr<DeviceMemory>& payloads,
                              const std::shared_ptr<DeviceMemory>& flags, std::span<Value> results,
                              Readings* readings) const {
  const TileProgram& program = *program_;
  const TileRoot& root = program.roots[r];
  std::optional<Matrix>& list = readings->nodes.emplace_back();
  if (root.of_rows) return OkStatus();
  const int64_t leaves = LeavesOf(program, root, rows), columns = root.of_cells ? root.n : 1;
  const DevicePayloads joined = {.memory = payloads,
                                 .width = root.width,
                                 .join = root.join,
                                 .of_leaf = root.height * columns,
                                 .of_all = rows * columns};
  if (Stays(call, root, *readings)) {
    const FinishedCells finished = FinishedOf(program, root);
    HEDDLE_RETURN_IF_ERROR(JoinLeaves(commands, joined, 0, leaves));
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const CellsOnDevice> cells,
                            MakeOnDevice(device_, {finished.rows, finished.columns}, finished.type));
    results[static_cast<size_t>(root.result)] = Matrix::OfDeviceCells(cells);
    return FinishCells(commands, finished, payloads, cells->memory(),
                       MayNeedWideSums(program, root) ? flags : nullptr);
  }
  readings->memory.push_back(payloads);
  const int64_t joined_rows = JoinedRows(program, root);
  const bool is_part = call.phase == Phase::kPartial;
  if (is_part && (call.row_begin % joined_rows != 0 ||
                  (call.row_end % joined_rows != 0 && call.row_end != call.total_rows)))
    return Unimplemented("on a device: rows that end within a node of their tree");
  const int64_t first_leaf = is_part ? LeavesOf(program, root, call.row_begin) : 0;
  std::vector<TreeNode> nodes;
  if (is_part)
    nodes = CoveringNodes(first_leaf, first_leaf + leaves);
  else if (leaves > 0)
    nodes = {{.index = 0, .level = CommonLevel(0, leaves - 1)}};
  HEDDLE_ASSIGN_OR_RETURN(list, Matrix::Dense(static_cast<int64_t>(nodes.size()), 2 + root.width));
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t begin = nodes[i].FirstLeaf() - first_leaf;
    HEDDLE_RETURN_IF_ERROR(
        JoinLeaves(commands, joined, begin, std::min(leaves, begin + (int64_t{1} << nodes[i].level))));
    double* const row = list->mutable_data() + static_cast<int64_t>(i) * list->columns();
    row[0] = static_cast<double>(nodes[i].index);
    row[1] = nodes[i].level + std::countr_zero(static_cast<uint64_t>(joined_rows));
    HEDDLE_RETURN_IF_ERROR(
        commands.queue().Read(*payloads, begin * root.width * 8, root.width * 8, row + 2));
  }
  return OkStatus();
}

Status DeviceTiles::FinishRoots(const KernelCall& call, std::vector<std::optional<Matrix>>* nodes,
                                std::span<Value> results) const {
  const TileProgram& program = *program_;
  const auto is_read = [](const std::optional<Matrix>& list) { return list.has_value(); };
  if (std::none_of(nodes->begin(), nodes->end(), is_read)) return OkStatus();
  if (program.fused.kind == FusionTemplate::kStitch || RunsInPhases(program)) {
    for (size_t r = 0; r < program.roots.size(); ++r) {
      const TileRoot& root = program.roots[r];
      std::optional<Matrix>& list = (*nodes)[r];
      if (list)
        HEDDLE_RETURN_IF_ERROR(
            CloseRoot(program, root, *std::move(list), call, &results[static_cast<size_t>(root.result)]));
    }
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix together, NodesTogether(*nodes));
  if (call.phase != Phase::kPartial) return ops::FinishRoots(program, together, call, results);
  if (program.fused.roots.size() == 1) {
    HEDDLE_ASSIGN_OR_RETURN(together, ListOfRoot(program.roots[0], std::move(together)));
  }
  results[0] = std::move(together);
  return OkStatus();
}

// The nodes of reductions that have one tree: their payloads, one behind the other.
Result<Matrix> DeviceTiles::NodesTogether(const std::vector<std::optional<Matrix>>& nodes) const {
  if (nodes.size() == 1) return *nodes[0];
  HEDDLE_ASSIGN_OR_RETURN(Matrix together,
                          FilledMatrix(nodes[0]->rows(), 2 + program_->reduction.width, 0.0));
  for (int64_t i = 0; i < together.rows(); ++i) {
    double* const row = together.mutable_data() + i * together.columns();
    for (size_t r = 0; r < nodes.size(); ++r) {
      const double* const from = nodes[r]->data() + i * nodes[r]->columns();
      std::copy_n(from, 2, row);
      std::copy_n(from + 2, program_->roots[r].width, row + 2 + program_->roots[r].offset);
    }
  }
  return together;
}

}  // namespace heddle::ops

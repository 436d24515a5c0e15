// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/run_on_device.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "core/programs/text_format.h"
#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/operator.h"
#include "ops/device/compiled_kernels.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/kernel_scratch.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/run/run_counted_on_device.h"
#include "ops/device/run/run_phases_on_device.h"
#include "ops/device/run/step_queue.h"
#include "ops/fused/fused.h"
#include "ops/fused/program/body_view.h"
#include "ops/product/matmul.h"

namespace heddle::ops {

// All matrices are dense, with cells of one type. Products with few columns and aggregates are tile programs,
// but for some of long rows.
bool HasKernelsOfItsOwn(const Node& node, std::span<const ValueInfo> inputs) {
  const Operator* const op = node.fused != nullptr ? nullptr : FindOperator(node.op);
  if (op == nullptr || op->run_on_device == nullptr || inputs.empty() || !inputs[0].IsMatrix()) return false;
  if (!node.info.IsMatrix() || node.info.format != Format::kDense) return false;
  const bool has_long_rows = inputs[0].shape.columns > kColumnChunk;
  if (op->kind == OperatorKind::kProduct && IsNarrow(inputs[1].shape.columns) &&
      (!has_long_rows || HasRole(node, Role::kTransposedProduct)))
    return false;
  if (op->kind == OperatorKind::kAggregate && !has_long_rows) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const ValueInfo& input) {
    const bool is_left_out = input.data_type == DataType::kUnknown;
    if (is_left_out || input.IsScalar()) return true;
    return input.IsMatrix() && input.format == Format::kDense && input.element_type == inputs[0].element_type;
  });
}

namespace {

// A call by kernels of its operator. What the host reads has its cells when the commands are done; so have
// the flags that it looks at.
class QueuedKernels : public QueuedCall {
 public:
  QueuedKernels(std::unique_ptr<StepQueue> queue, bool is_read_by_host)
      : queue_(std::move(queue)), is_read_by_host_(is_read_by_host) {}
  bool HasMore() const override { return queue_->HasStep(); }
  Status QueueMore() override { return queue_->TakeStep(); }
  bool HasRest() const override { return is_read_by_host_ || queue_->HasCheck(); }
  Status Finish(std::span<Value>) override { return queue_->Check(); }

 private:
  const std::unique_ptr<StepQueue> queue_;
  const bool is_read_by_host_;
};

// A body of the operator alone. The driver is the largest of the matrices whose rows it reads; of equal ones
// that whose entries a CSR result has.
Result<FusedOperator> BodyOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.fused != nullptr) return *node.fused;
  if (ResultsOf(node).size() != 1)
    return Unimplemented("on a device: {}, which has several results", node.op);
  FusedOperator fused{.kind = FusionTemplate::kRow};
  Node inner = node;
  inner.after.clear();
  // Where several ranks share rows, one row is a vector that all of them read; here it is rows, too.
  const bool is_one_row = FindOperator(node.op)->fusion.use == RowUse::kCells && node.info.IsMatrix() &&
                          node.info.shape.rows == 1;
  const auto reads_rows = [&](size_t i) {
    return InputUseOf(node, inputs, static_cast<int>(i)) == InputUse::kRows ||
           (is_one_row && inputs[i].shape == node.info.shape);
  };
  int64_t most_cells = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoNode) continue;
    Node variable{.op = "variable", .info = inputs[i]};
    variable.SetAttribute("name", Scalar(std::to_string(i)));
    inner.inputs[i] = fused.body.Add(std::move(variable));
    if (!inputs[i].IsMatrix() || !reads_rows(i)) continue;
    const bool has_entries = node.info.format == Format::kSparse && inputs[i].format == Format::kSparse;
    const int64_t cells = inputs[i].shape.Cells();
    const bool is_better = cells == most_cells && has_entries &&
                           inputs[static_cast<size_t>(fused.driver)].format == Format::kDense;
    if (cells <= most_cells && !is_better) continue;
    most_cells = inputs[i].shape.Cells();
    fused.driver = static_cast<int>(i);
  }
  if (most_cells < 0) return Unimplemented("on a device: {}, which reads no rows of a matrix", node.op);
  // Variances are made of whole leaves, as stitches have them.
  if (const Aggregate* const aggregate = FindAggregate(node.op);
      aggregate != nullptr && aggregate->scope != AggregateScope::kRow && IsSpread(aggregate->kind))
    fused.kind = FusionTemplate::kStitch;
  fused.roots = {fused.body.Add(std::move(inner))};
  return fused;
}

Result<TileProgram> LoweredOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.fused == nullptr) {
    const Operator* const op = FindOperator(node.op);
    if (op == nullptr || op->effect || (op->fusion.use == RowUse::kNone && op->aggregate == nullptr))
      return Unimplemented("on a device: {}", node.op);
  }
  HEDDLE_ASSIGN_OR_RETURN(FusedOperator fused, BodyOf(node, inputs));
  return LowerForDevice(std::move(fused));
}

// What its program depends on.
std::string KeyOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.fused != nullptr) return node.fused->ToText();
  if (node.phased != nullptr) return node.phased->ToText();
  std::string text = node.op;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += node.inputs[i] == kNoNode ? " none " : " ";
    AppendInfo(inputs[i], &text);
  }
  AppendInfo(node.info, &text);
  for (const auto& [name, value] : node.attributes) text += fmt::format(" {}={}", name, value.ToLiteral());
  return text;
}

// What is known of an operator without a device. All but the first are of one that is printed.
struct KnownOperator {
  Status can_run;
  DeviceScratch scratch;
  int driver = 0;           // The input whose rows it walks.
  bool counts_entries = false;
  std::vector<int> spread;  // CSR inputs whose cells it reads.
};

KnownOperator Examine(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.phased != nullptr) {
    KnownOperator known;
    for (NodeId id = 0; id < node.phased->body.size() && known.can_run.ok(); ++id)
      known.can_run = CanRunInPhases(node.phased->body, id);
    return known;
  }
  if (HasKernelsOfItsOwn(node, inputs)) return {};
  // What computes it, and so where its result is, depends on them.
  if (KindOf(node) == OperatorKind::kProduct && inputs[1].shape.columns == kUnknown)
    return {.can_run = Unimplemented("on a device: a product whose columns are not known yet")};
  const Result<TileProgram> program = LoweredOf(node, inputs);
  if (!program.ok()) return {.can_run = program.status()};
  KnownOperator known{.driver = program->fused.driver, .counts_entries = CountsEntries(*program)};
  const Result<PrintedTiles> printed = PrintTiles(*program, {});
  known.can_run = printed.status();
  if (!printed.ok()) return known;
  known.scratch = DeviceScratch::Of(*program, *printed);
  for (size_t i = 0; i < printed->inputs.size(); ++i) {
    const bool is_csr = inputs[static_cast<size_t>(printed->inputs[i])].format == Format::kSparse;
    if (is_csr && !printed->sparse[i]) known.spread.push_back(printed->inputs[i]);
  }
  return known;
}

// The answers are kept: each planning of a block asks for all of its operators.
std::shared_ptr<const KnownOperator> Known(const Node& node, std::span<const ValueInfo> inputs) {
  constexpr size_t kMostKnown = 1024;
  using Answer = std::shared_ptr<const KnownOperator>;
  static std::mutex mutex;
  static auto* const known = new RecentlyUsedMap<std::string, Answer>(kMostKnown);
  const std::string key = KeyOf(node, inputs);
  {
    const std::lock_guard lock(mutex);
    if (const Answer* found = known->Find(key); found != nullptr) return *found;
  }
  const Answer answer = std::make_shared<const KnownOperator>(Examine(node, inputs));
  const std::lock_guard lock(mutex);
  return known->Add(key, answer);
}

}  // namespace

bool StaysOnDevice(const Node& node, std::span<const ValueInfo> inputs, size_t i) {
  if (node.phased != nullptr) return node.results[i].IsMatrix();  // As of each member (CanRunInPhases).
  if (HasKernelsOfItsOwn(node, inputs)) return true;
  const Operator* const op = FindOperator(node.op);
  if (op == nullptr || op->row_rule == nullptr) return false;
  const auto is_finished = [&] {
    return ResultsOf(node)[i].IsMatrix() && ResultsOf(node)[i].format == Format::kDense;
  };
  switch (op->row_rule(node, inputs)) {
    case RowRule::kRowWise: return true;
    case RowRule::kMixed: return !op->reduces(node, i) || is_finished();
    case RowRule::kReduce: return is_finished();
    default: return false;
  }
}

namespace {

// What names the kernels of an operator's own, which take all sizes as arguments.
std::string NameOfKernels(const Node& node, std::span<const ValueInfo> inputs) {
  return fmt::format("kernels of {} of {}", node.op, Name(inputs[0].element_type));
}

}  // namespace

DeviceOperators& DeviceOperators::Of(ComputeDevice& device) {
  static std::mutex mutex;
  static auto* const made = new std::map<uint64_t, std::unique_ptr<DeviceOperators>>();  // By device.
  const std::lock_guard lock(mutex);
  std::unique_ptr<DeviceOperators>& operators = (*made)[device.id()];
  if (operators == nullptr) operators = std::make_unique<DeviceOperators>(device);
  return *operators;
}

Status DeviceOperators::CanRun(const Node& node, std::span<const ValueInfo> inputs) {
  return Known(node, inputs)->can_run;
}

bool DeviceOperators::CountsFirst(const Node& node, std::span<const ValueInfo> inputs) {
  return !HasKernelsOfItsOwn(node, inputs) && Known(node, inputs)->counts_entries;
}

int64_t DeviceOperators::ScratchBytes(const Node& node, std::span<const ValueInfo> inputs, Phase phase,
                                      int64_t rows, const DeviceDescription& device) {
  if (HasKernelsOfItsOwn(node, inputs)) return ScratchOfKernels(node, inputs, phase, rows, device);
  const std::shared_ptr<const KnownOperator> known = Known(node, inputs);
  if (!known->can_run.ok()) return 0;
  if (node.phased != nullptr) return ScratchOfPhases(node, device);
  const int64_t of_driver = inputs[static_cast<size_t>(known->driver)].shape.rows;
  int64_t bytes = known->scratch.Bytes(rows >= 0 ? rows : std::max<int64_t>(of_driver, 0), device);
  for (const int input : known->spread) {
    const ValueInfo& info = inputs[static_cast<size_t>(input)];
    if (info.shape.IsKnown())
      bytes = SaturatingSum(bytes, SaturatingProduct(info.shape.Cells(), BytesOf(info.element_type)));
  }
  return bytes;
}

std::shared_ptr<DeviceOperators::Program> DeviceOperators::ProgramOf(
    const Node& node, std::span<const ValueInfo> inputs, const std::vector<bool>& scalars_there) {
  std::string key = KeyOf(node, inputs);
  for (size_t i = 0; i < scalars_there.size(); ++i)
    if (scalars_there[i]) key += fmt::format(" there {}", i);
  const std::lock_guard lock(mutex_);
  if (const auto* found = programs_.Find(key); found != nullptr) return *found;
  return programs_.Add(key, std::make_shared<Program>());
}

const Status& DeviceOperators::Print(Program& program, const Node& node, std::span<const ValueInfo> inputs,
                                     const std::vector<bool>& scalars_there) {
  std::call_once(program.is_printed, [&] {
    program.status = [&]() -> Status {
      HEDDLE_ASSIGN_OR_RETURN(TileProgram lowered, LoweredOf(node, inputs));
      HEDDLE_ASSIGN_OR_RETURN(program.printed,
                              DeviceTiles::Print(lowered, device_.description(), group_size_, scalars_there));
      program.lowered = std::make_shared<const TileProgram>(std::move(lowered));
      return OkStatus();
    }();
  });
  return program.status;
}

Result<std::shared_ptr<const DeviceTiles>> DeviceOperators::TilesOf(const KernelCall& call) {
  std::vector<bool> scalars_there;  // By input: a scalar that is on the device.
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool is_scalar = call.input_infos[i].IsScalar();
    scalars_there.push_back(is_scalar && call.inputs[i] != nullptr && call.inputs[i]->IsMatrix());
  }
  const std::shared_ptr<Program> program = ProgramOf(call.node, call.input_infos, scalars_there);
  HEDDLE_RETURN_IF_ERROR(Print(*program, call.node, call.input_infos, scalars_there));
  const std::lock_guard making(program->mutex);
  if (program->is_made) return program->tiles;
  program->tiles = DeviceTiles::Make(program->lowered, device_, program->printed);
  program->is_made = !IsForNow(program->tiles.status());
  return program->tiles;
}

std::string DeviceOperators::KernelOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.phased != nullptr) return "";
  if (HasKernelsOfItsOwn(node, inputs)) return NameOfKernels(node, inputs);
  const std::shared_ptr<Program> program = ProgramOf(node, inputs, {});
  return Print(*program, node, inputs, {}).ok() ? program->printed.passes[0].source : std::string();
}

bool DeviceOperators::IsCompiled(const std::string& kernel) {
  {
    const std::lock_guard lock(mutex_);
    if (used_kernels_.contains(kernel)) return true;
  }
  return ops::IsCompiled(device_, kernel, PrintedTiles().name);
}

Result<std::unique_ptr<QueuedCall>> DeviceOperators::QueueKernels(const KernelCall& call, DeviceQueue& queue,
                                                                  std::span<Value> results) {
  std::vector<Value> held;
  held.reserve(call.inputs.size());
  std::vector<const Value*> inputs;
  for (const Value* const input : call.inputs) {
    inputs.push_back(input);
    if (input == nullptr || input->IsScalar()) continue;
    if (!input->IsMatrix()) return Unimplemented("on a device: {} of what is no matrix", call.node.op);
    HEDDLE_ASSIGN_OR_RETURN(Matrix there, ToDevice(input->matrix(), device_, queue));
    inputs.back() = &held.emplace_back(std::move(there));
  }
  KernelCall on_device = call;
  on_device.inputs = inputs;
  on_device.last_read = nullptr;
  auto steps = std::make_unique<StepQueue>(queue);
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Value> result,
                          FindOperator(call.node.op)->run_on_device(on_device, *steps));
  if (!result) return Unimplemented("on a device: this call of {}", call.node.op);
  const std::string kernels = NameOfKernels(call.node, call.input_infos);
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = used_kernels_.insert(kernels).second;
  }
  if (is_first) device_.Keep(kernels);
  results[0] = *std::move(result);
  return std::unique_ptr<QueuedCall>(
      std::make_unique<QueuedKernels>(std::move(steps), !results[0].matrix().IsOnDevice()));
}

Result<std::unique_ptr<QueuedCall>> DeviceOperators::QueueTiles(const KernelCall& call, DeviceQueue& queue,
                                                                std::span<Value> results,
                                                                ScalarResults scalars) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceTiles> tiles, TilesOf(call));
  const Graph& body = tiles->body();
  std::map<NodeId, Value> there;
  const auto value_of = [&](NodeId id) -> const Value* {
    if (const auto found = there.find(id); found != there.end()) return &found->second;
    if (body[id].Is("literal"))
      return &there.emplace(id, Value(*body[id].FindAttribute("value"))).first->second;
    if (body[id].Is("variable")) return call.inputs[static_cast<size_t>(BodyView::InputPosition(body[id]))];
    return nullptr;
  };
  for (const NodeId id : tiles->printed().scalars_in_memory) {
    if (body[id].Is("variable")) {
      there[id] = *value_of(id);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix cell, QueueCells(*this, body, id, value_of, call.context, queue));
    there[id] = Value(std::move(cell));
  }
  const bool keeps_scalars = scalars == ScalarResults::kOnDevice;
  if (!CountsEntries(tiles->program())) return tiles->Queue(call, queue, results, there, keeps_scalars);
  return QueueCounted(tiles, call, queue, results, std::move(there), keeps_scalars);
}

Result<std::unique_ptr<QueuedCall>> DeviceOperators::Queue(const KernelCall& call, DeviceQueue& queue,
                                                           std::span<Value> results, ScalarResults scalars) {
  if (call.node.phased != nullptr) return QueuePhases(*this, call, queue, results);
  if (call.phase != Phase::kWhole && call.phase != Phase::kPartial)
    return Unimplemented("on a device: the phase {} of {}", Name(call.phase), call.node.op);
  if (HasKernelsOfItsOwn(call.node, call.input_infos)) return QueueKernels(call, queue, results);
  return QueueTiles(call, queue, results, scalars);
}

Status DeviceOperators::Run(const KernelCall& call, DeviceQueue& queue, std::span<Value> results) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<QueuedCall> queued, Queue(call, queue, results));
  HEDDLE_RETURN_IF_ERROR(queue.Finish());
  while (queued->HasMore()) {
    const Status status = queued->QueueMore();
    const Status done = queue.Finish();
    HEDDLE_RETURN_IF_ERROR(status);
    HEDDLE_RETURN_IF_ERROR(done);
  }
  return queued->Finish(results);
}

}  // namespace heddle::ops

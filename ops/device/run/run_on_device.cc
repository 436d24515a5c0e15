// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/run_on_device.h"

#include <map>
#include <utility>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/programs/text_format.h"
#include "ops/base/operator.h"
#include "ops/device/print/print_tiles.h"
#include "ops/fused/fused.h"

namespace heddle::ops {
namespace {

// A body of the operator alone. The driver is the largest of the matrices whose rows it reads.
Result<FusedOperator> BodyOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.fused != nullptr) return *node.fused;
  if (ResultsOf(node).size() != 1)
    return Unimplemented("on a device: {}, which has several results", node.op);
  FusedOperator fused{.kind = FusionTemplate::kRow};
  Node inner = node;
  inner.after.clear();
  int64_t most_cells = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoNode) continue;
    Node variable{.op = "variable", .info = inputs[i]};
    variable.SetAttribute("name", Scalar(std::to_string(i)));
    inner.inputs[i] = fused.body.Add(std::move(variable));
    if (!inputs[i].IsMatrix() || InputUseOf(node, inputs, static_cast<int>(i)) != InputUse::kRows) continue;
    if (inputs[i].shape.Cells() <= most_cells) continue;
    most_cells = inputs[i].shape.Cells();
    fused.driver = static_cast<int>(i);
  }
  if (most_cells < 0) return Unimplemented("on a device: {}, which reads no rows of a matrix", node.op);
  fused.roots = {fused.body.Add(std::move(inner))};
  return fused;
}

Result<TileProgram> ProgramOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.fused == nullptr) {
    const Operator* const op = FindOperator(node.op);
    if (op == nullptr || op->effect || op->fusion.use == RowUse::kNone)
      return Unimplemented("on a device: {}", node.op);
  }
  HEDDLE_ASSIGN_OR_RETURN(FusedOperator fused, BodyOf(node, inputs));
  return Lower(std::move(fused));
}

// What its program depends on.
std::string KeyOf(const Node& node, std::span<const ValueInfo> inputs) {
  if (node.fused != nullptr) return node.fused->ToText();
  std::string text = node.op;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += node.inputs[i] == kNoNode ? " none " : " ";
    AppendInfo(inputs[i], &text);
  }
  AppendInfo(node.info, &text);
  for (const auto& [name, value] : node.attributes) text += fmt::format(" {}={}", name, value.ToLiteral());
  return text;
}

}  // namespace

bool StaysOnDevice(const Node& node, std::span<const ValueInfo> inputs, size_t i) {
  const Operator* const op = FindOperator(node.op);
  if (op == nullptr || op->row_rule == nullptr) return false;
  switch (op->row_rule(node, inputs)) {
    case RowRule::kRowWise: return true;
    case RowRule::kMixed: return !op->reduces(node, i);
    default: return false;
  }
}

DeviceOperators& DeviceOperators::Of(ComputeDevice& device) {
  static std::mutex mutex;
  static auto* const made = new std::map<ComputeDevice*, std::unique_ptr<DeviceOperators>>();
  const std::lock_guard lock(mutex);
  std::unique_ptr<DeviceOperators>& operators = (*made)[&device];
  if (operators == nullptr) operators = std::make_unique<DeviceOperators>(device);
  return *operators;
}

Status DeviceOperators::CanRun(const Node& node, std::span<const ValueInfo> inputs) {
  static std::mutex mutex;
  static auto* const known = new RecentlyUsedMap<std::string, Status>(kMostPrograms);
  const std::string key = KeyOf(node, inputs);
  {
    const std::lock_guard lock(mutex);
    if (const Status* found = known->Find(key); found != nullptr) return *found;
  }
  const auto print = [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const TileProgram program, ProgramOf(node, inputs));
    return PrintTiles(program, {}).status();
  };
  const Status status = print();
  const std::lock_guard lock(mutex);
  return known->Add(key, status);
}

Result<std::shared_ptr<const DeviceTiles>> DeviceOperators::TilesOf(const KernelCall& call) {
  const std::string key = KeyOf(call.node, call.input_infos);
  std::shared_ptr<Program> program;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* found = programs_.Find(key); found != nullptr) {
      program = *found;
    } else {
      program = programs_.Add(key, std::make_shared<Program>());
    }
  }
  const auto make = [&]() -> Result<std::shared_ptr<const DeviceTiles>> {
    HEDDLE_ASSIGN_OR_RETURN(TileProgram lowered, ProgramOf(call.node, call.input_infos));
    return DeviceTiles::Make(std::make_shared<const TileProgram>(std::move(lowered)), device_);
  };
  std::call_once(program->is_made, [&] { program->tiles = make(); });
  return program->tiles;
}

Result<std::unique_ptr<QueuedCall>> DeviceOperators::Queue(const KernelCall& call, DeviceQueue& queue,
                                                           std::span<Value> results) {
  if (call.phase != Phase::kWhole && call.phase != Phase::kPartial)
    return Unimplemented("on a device: the phase {} of {}", Name(call.phase), call.node.op);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceTiles> tiles, TilesOf(call));
  return tiles->Queue(call, queue, results);
}

Status DeviceOperators::Run(const KernelCall& call, DeviceQueue& queue, std::span<Value> results) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<QueuedCall> queued, Queue(call, queue, results));
  HEDDLE_RETURN_IF_ERROR(queue.Finish());
  return queued->Finish(results);
}

}  // namespace heddle::ops

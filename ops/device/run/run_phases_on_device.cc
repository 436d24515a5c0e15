// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/run_phases_on_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/programs/input_infos.h"
#include "core/programs/phased_operator.h"
#include "core/values/sizes.h"
#include "ops/base/graph_run.h"
#include "ops/base/operator.h"
#include "ops/device/device_matrix.h"
#include "ops/device/run/run_on_device.h"
#include "ops/fused/program/body_view.h"

namespace heddle::ops {
namespace {

size_t Index(NodeId id) { return static_cast<size_t>(id); }

// Numbers as cells are: what a device makes of matrices, and what it makes of such numbers.
bool IsNumber(const ValueInfo& info) {
  return info.IsScalar() &&
         (info.value_type == ValueType::kDouble || info.value_type == ValueType::kBoolean);
}

const ValueInfo& OneCell() {
  static const auto* const info = new ValueInfo(ValueInfo::OfMatrix({1, 1}));
  return *info;
}

bool TouchesMatrices(const Graph& graph, const Node& node) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  const auto is_matrix = [](const ValueInfo& info) { return !info.IsScalar(); };
  return std::any_of(results.begin(), results.end(), is_matrix) ||
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
           return input != kNoNode && is_matrix(graph[input].info);
         });
}

// An operator on scalars, as one on cells.
Status CanRunOnCells(const Graph& graph, NodeId id) {
  Node node = graph[id];
  const Operator* const op = FindOperator(node.op);
  std::vector<ValueInfo> infos = InputInfos(graph, node);
  const bool is_plain = std::all_of(infos.begin(), infos.end(), [](const ValueInfo& info) {
    return info.IsScalar() && info.value_type != ValueType::kString &&
           info.value_type != ValueType::kUnknown;
  });
  if (op == nullptr || op->fusion.use != RowUse::kCells || infos.empty() || !is_plain ||
      !IsNumber(node.info))
    return Unimplemented("on a device: {} of scalars", node.op);
  for (size_t i = 0; i < infos.size(); ++i)
    if (!graph[node.inputs[i]].Is("literal")) infos[i] = OneCell();
  node.info = OneCell();
  return DeviceOperators::CanRun(node, infos);
}

// One call.
class PhasesOnDevice {
 public:
  /// What the call names, and `results`, outlive it.
  PhasesOnDevice(DeviceOperators& operators, const KernelCall& call, DeviceQueue& queue,
                 std::span<Value> results)
      : operators_(operators),
        call_(call),
        queue_(queue),
        results_(results),
        body_(call.node.phased->body),
        layout_(body_),
        values_(body_, layout_) {
    CountReaders();
  }

  /// Queues members, in their order, up to one that has launches left for when these are done, or all.
  Status QueueMore();
  bool HasMore() const { return !is_queued_; }

  struct ScalarResult {
    size_t result;
    ValueType type;
    double number = 0;
  };
  /// What the host has to do when the commands are done, and what they need until then.
  struct Rest {
    std::vector<std::unique_ptr<QueuedCall>> members;
    std::vector<ScalarResult> scalars;
    std::vector<std::shared_ptr<DeviceMemory>> memory;  // Of `scalars`.
  };
  std::shared_ptr<Rest> rest() const { return rest_; }

 private:
  bool IsMemberOpen() const { return !rest_->members.empty() && rest_->members.back()->HasMore(); }
  Status QueueNode(NodeId id);
  Status QueueOperator(NodeId id);
  Status QueueResults();
  Status UseInput(NodeId id);
  // The operator that makes a value.
  NodeId MakerOf(NodeId id) const { return body_[id].Is("result") ? body_[id].inputs[0] : id; }
  void CountReaders();
  // Values that no later member reads.
  void Free(NodeId reader);
  bool IsThere(NodeId id) const {
    const Value* const value = values_.Of(id);
    return value != nullptr && body_[id].info.IsScalar() && value->IsMatrix();
  }

  DeviceOperators& operators_;
  const KernelCall call_;
  DeviceQueue& queue_;
  const std::span<Value> results_;
  const Graph& body_;
  const GraphLayout layout_;
  GraphValues values_;
  std::vector<int> readers_;  // By node that makes values: those left, and one for a result of all.
  NodeId next_ = 0;           // The first that is not queued.
  bool is_queued_ = false;    // All of it.
  const std::shared_ptr<Rest> rest_ = std::make_shared<Rest>();
};

void PhasesOnDevice::CountReaders() {
  readers_.assign(body_.nodes.size(), 0);
  for (NodeId id = 0; id < body_.size(); ++id) {
    if (body_[id].Is("result")) continue;
    for (const NodeId input : body_[id].inputs)
      if (input != kNoNode) ++readers_[Index(MakerOf(input))];
  }
  for (const NodeId root : call_.node.phased->roots) ++readers_[Index(MakerOf(root))];
}

void PhasesOnDevice::Free(NodeId reader) {
  for (const NodeId input : body_[reader].inputs)
    if (input != kNoNode && --readers_[Index(MakerOf(input))] == 0) values_.Reset(MakerOf(input));
}

// Matrices of the host are copied once for all members; compressed ones by those that read them.
Status PhasesOnDevice::UseInput(NodeId id) {
  const Value* const input = call_.inputs[static_cast<size_t>(BodyView::InputPosition(body_[id]))];
  if (input->IsMatrix() && input->matrix().IsDense()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix there, ToDevice(input->matrix(), operators_.device(), queue_));
    values_.Own(id)[0] = Value(std::move(there));
  } else if (input->IsMatrix() && input->matrix().IsSparse() && body_[id].info.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix there, EntriesToDevice(input->matrix(), operators_.device(), queue_));
    values_.Own(id)[0] = Value(std::move(there));
  } else {
    values_.Refer(id, input);
  }
  return OkStatus();
}

Status PhasesOnDevice::QueueOperator(NodeId id) {
  const Node& node = body_[id];
  OperatorStep step{.node = id, .op = FindOperator(node.op)};
  SetSizes(body_, &step);
  const bool reads_there =
      std::any_of(node.inputs.begin(), node.inputs.end(),
                  [&](NodeId input) { return input != kNoNode && IsThere(input); });
  if (HasRole(node, Role::kAsScalar) && values_.Of(node.inputs[0])->IsMatrix() &&
      values_.Of(node.inputs[0])->matrix().IsOnDevice()) {
    values_.Own(id)[0] = *values_.Of(node.inputs[0]);
    return OkStatus();
  }
  if (!TouchesMatrices(body_, node)) {
    if (!reads_there) return values_.Run(step, CatalogKernels(), call_.context);
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix cell, QueueCells(operators_, body_, id, [&](NodeId operand) { return values_.Of(operand); },
                                call_.context, queue_));
    values_.Own(id)[0] = Value(std::move(cell));
    return OkStatus();
  }
  std::vector<const Value*> inputs;
  for (const NodeId input : node.inputs) inputs.push_back(values_.Of(input));
  HEDDLE_ASSIGN_OR_RETURN(rest_->members.emplace_back(),
                          operators_.Queue(CallOf(body_, step, inputs, call_.context), queue_,
                                           values_.Own(id), ScalarResults::kOnDevice));
  return OkStatus();
}

Status PhasesOnDevice::QueueNode(NodeId id) {
  const Node& node = body_[id];
  if (node.Is("variable")) return UseInput(id);
  if (node.Is("literal")) {
    values_.Own(id)[0] = Value(*node.FindAttribute("value"));
    return OkStatus();
  }
  if (node.Is("result")) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(QueueOperator(id));
  if (!IsMemberOpen()) Free(id);
  return OkStatus();
}

Status PhasesOnDevice::QueueMore() {
  if (IsMemberOpen()) {
    HEDDLE_RETURN_IF_ERROR(rest_->members.back()->QueueMore());
    // One that counts entries first reads its operands after that.
    if (!IsMemberOpen()) Free(next_ - 1);
  }
  while (!IsMemberOpen() && next_ < body_.size()) HEDDLE_RETURN_IF_ERROR(QueueNode(next_++));
  return IsMemberOpen() ? OkStatus() : QueueResults();
}

Status PhasesOnDevice::QueueResults() {
  is_queued_ = true;
  const std::vector<NodeId>& roots = call_.node.phased->roots;
  for (size_t i = 0; i < roots.size(); ++i) {
    results_[i] = *values_.Of(roots[i]);
    if (!IsThere(roots[i])) continue;
    rest_->scalars.push_back({.result = i, .type = body_[roots[i]].info.value_type});
  }
  for (ScalarResult& scalar : rest_->scalars) {  // Whose places are known now.
    PlaceOnDevice place = PlaceOf(results_[scalar.result].matrix());
    rest_->memory.push_back(place.memory);
    results_[scalar.result] = Value();
    HEDDLE_RETURN_IF_ERROR(queue_.Read(*place.memory, place.first_cell * 8, 8, &scalar.number));
  }
  return OkStatus();
}

class QueuedPhases : public QueuedCall {
 public:
  explicit QueuedPhases(std::unique_ptr<PhasesOnDevice> phases)
      : rest_(phases->rest()), phases_(std::move(phases)) {}

  bool HasMore() const override { return phases_ != nullptr; }
  Status QueueMore() override {
    const Status status = phases_->QueueMore();
    if (!phases_->HasMore()) phases_ = nullptr;  // And with it values that are no results.
    return status;
  }
  bool HasRest() const override {
    return !rest_->scalars.empty() ||
           std::any_of(rest_->members.begin(), rest_->members.end(),
                       [](const std::unique_ptr<QueuedCall>& member) { return member->HasRest(); });
  }
  Status Finish(std::span<Value> results) override {
    // Members look at their flags; all that they make is on the device.
    for (const std::unique_ptr<QueuedCall>& member : rest_->members)
      if (member->HasRest()) HEDDLE_RETURN_IF_ERROR(member->Finish({}));
    for (const PhasesOnDevice::ScalarResult& scalar : rest_->scalars)
      results[scalar.result] =
          scalar.type == ValueType::kBoolean ? Scalar(scalar.number != 0) : Scalar(scalar.number);
    return OkStatus();
  }

 private:
  const std::shared_ptr<PhasesOnDevice::Rest> rest_;
  std::unique_ptr<PhasesOnDevice> phases_;  // Until all is queued.
};

}  // namespace

Status CanRunInPhases(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.Is("variable") || node.Is("literal") || node.Is("result")) return OkStatus();
  if (!TouchesMatrices(graph, node)) return CanRunOnCells(graph, id);
  const std::vector<ValueInfo> infos = InputInfos(graph, node);
  if (HasRole(node, Role::kAsScalar))
    return infos[0].IsMatrix() && infos[0].shape == Shape{1, 1} && infos[0].format == Format::kDense &&
                   infos[0].element_type == ElementType::kFloat64
               ? OkStatus()
               : Unimplemented("on a device: {}", node.op);
  HEDDLE_RETURN_IF_ERROR(DeviceOperators::CanRun(node, infos));
  for (size_t i = 0; i < ResultsOf(node).size(); ++i) {
    const ValueInfo& result = ResultsOf(node)[i];
    if (result.IsScalar() ? !IsNumber(result) : !StaysOnDevice(node, infos, i))
      return Unimplemented("on a device: results of {} that are the host's", node.op);
  }
  const bool has_kernels = HasKernelsOfItsOwn(node, infos);
  for (const NodeId input : node.inputs)
    if (has_kernels && input != kNoNode && graph[input].info.IsScalar() && !graph[input].Is("literal"))
      return Unimplemented("on a device: {} with computed sizes", node.op);
  if (node.fused == nullptr) return OkStatus();
  const Graph& body = node.fused->body;
  for (NodeId inner = 0; inner < body.size(); ++inner)
    if (body[inner].info.IsScalar() && !body[inner].Is("variable") && !body[inner].Is("literal") &&
        !TouchesMatrices(body, body[inner]))
      HEDDLE_RETURN_IF_ERROR(CanRunOnCells(body, inner));
  return OkStatus();
}

int64_t ScratchOfPhases(const Node& node, const DeviceDescription& device) {
  // A number that is computed of numbers: its cell, and flags.
  constexpr int64_t kBytesOfNumber = 16;
  const Graph& body = node.phased->body;
  const std::vector<NodeId>& roots = node.phased->roots;
  const auto is_computed = [](const Node& inner) {
    return !inner.Is("variable") && !inner.Is("literal") && !inner.Is("result");
  };
  int64_t bytes = 0;
  const auto add = [&](int64_t more) { bytes = SaturatingSum(bytes, more); };
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& member = body[id];
    const bool is_root = std::find(roots.begin(), roots.end(), id) != roots.end();
    if (member.info.IsScalar() && is_computed(member)) add(kBytesOfNumber);
    if (member.info.IsMatrix() && !is_root && (is_computed(member) || member.Is("result")))
      add(KnownBytes(member.info));
    if (!is_computed(member) || !TouchesMatrices(body, member) || HasRole(member, Role::kAsScalar)) continue;
    const std::vector<ValueInfo> infos = InputInfos(body, member);
    add(DeviceOperators::ScratchBytes(member, infos, Phase::kWhole, /*rows=*/-1, device));
    if (member.fused == nullptr) continue;
    for (const Node& inner : member.fused->body.nodes)
      if (inner.info.IsScalar() && is_computed(inner)) add(kBytesOfNumber);
  }
  return bytes;
}

Result<std::unique_ptr<QueuedCall>> QueuePhases(DeviceOperators& operators, const KernelCall& call,
                                                DeviceQueue& queue, std::span<Value> results) {
  if (call.phase != Phase::kWhole) return Unimplemented("on a device: a part of an operator of phases");
  std::unique_ptr<QueuedCall> queued =
      std::make_unique<QueuedPhases>(std::make_unique<PhasesOnDevice>(operators, call, queue, results));
  if (Status status = queued->QueueMore(); !status.ok()) {
    HoldUntilDone(queue, std::shared_ptr<QueuedCall>(std::move(queued)));
    return status;
  }
  return queued;
}

Result<Matrix> QueueCells(DeviceOperators& operators, const Graph& graph, NodeId id,
                          const std::function<const Value*(NodeId)>& value_of, KernelContext& context,
                          DeviceQueue& queue) {
  Node node = graph[id];
  node.info = OneCell();
  std::vector<ValueInfo> infos = InputInfos(graph, graph[id]);
  std::vector<const Value*> inputs;
  for (size_t i = 0; i < infos.size(); ++i) {
    inputs.push_back(value_of(node.inputs[i]));
    if (inputs.back() == nullptr) return Unimplemented("on a device: {} of what the host computes", node.op);
    if (inputs.back()->IsMatrix()) infos[i] = OneCell();
  }
  Value cell;
  HEDDLE_RETURN_IF_ERROR(operators
                             .Queue({.node = node,
                                     .phase = Phase::kWhole,
                                     .inputs = inputs,
                                     .input_infos = infos,
                                     .row_end = 1,
                                     .total_rows = 1,
                                     .context = context},
                                    queue, {&cell, 1})
                             .status());
  return cell.matrix();
}

}  // namespace heddle::ops

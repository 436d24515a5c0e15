// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/direct_program.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/environment/clock.h"
#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"
#include "engine/blocks/bytes_moved.h"
#include "ops/base/machine_constants.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"

namespace heddle::engine {
namespace {

// The sizes that only the cells tell.
ValueInfo InfoOfValue(const ValueInfo& known, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kScalar: return ValueInfo::OfScalar(value.scalar().type());
    case Value::Kind::kMatrix:
    case Value::Kind::kPanels: {
      ValueInfo info = known;
      info.shape = value.shape();
      return info;
    }
    case Value::Kind::kFrame: return ValueInfo::OfFrame(value.frame().rows(), value.frame().schema());
  }
  return known;
}

}  // namespace

double NanosecondsOf(const Node& node, std::span<const ValueInfo> inputs, bool appends) {
  static const ops::MachineConstants constants = ops::BuiltInConstants(1);
  const ops::Operator* op = ops::FindOperator(node.op);
  if (op == nullptr || op->size_of != nullptr) return 0;
  if (!appends) return ops::NanosecondsOf(ops::CostOf(node, inputs), constants);
  ops::Cost cost;
  for (const ValueInfo& input : inputs.subspan(1)) cost.bytes += 2 * static_cast<double>(KnownBytes(input));
  return ops::NanosecondsOf(cost, constants);
}

DirectProgram::DirectProgram(Graph graph, const SessionOptions& options)
    : inferred_(std::move(graph), options.element_type), is_timed_(options.times_operators) {
  for (NodeId id = 0; id < this->graph().size(); ++id) {
    const Node& node = this->graph()[id];
    Step& step = steps_.emplace_back(Step{ops::StepOf(node)});
    step.call.node = id;
    step.call.op = step.op;
    if (step.kind == Kind::kVariable) variables_.push_back(id);
    if (step.kind == Kind::kOperator && line_ == 0) line_ = LineOfStatement(node.position);
  }
  FindLastReaders();
  FindGrowths();
}

void DirectProgram::CountIn(SessionStatistics* statistics) {
  statistics_ = statistics;
  for (NodeId id = 0; id < graph().size(); ++id) At(id).counts = &statistics->operators[graph()[id].op];
}

void DirectProgram::FindLastReaders() {
  const Graph& graph = this->graph();
  // Assignments wait for the end, wherever they stand.
  const NodeId end = graph.size();
  std::vector<NodeId> last(graph.nodes.size(), kNoNode);
  for (NodeId id = 0; id < end; ++id) {
    for (const NodeId input : graph[id].inputs) {
      if (input == kNoNode) continue;
      NodeId& reader = last[static_cast<size_t>(input)];
      reader = std::max(reader, At(id).kind == Kind::kAssign ? end : id);
    }
  }
  // A tuple lives as long as the last of its results.
  for (NodeId id = graph.size(); id-- > 0;) {
    if (At(id).kind != Kind::kResult) continue;
    NodeId& of_tuple = last[static_cast<size_t>(graph[id].inputs[0])];
    of_tuple = std::max(of_tuple, last[static_cast<size_t>(id)]);
  }
  std::unordered_set<std::string_view> assigned, seen;
  for (const Step& step : steps_)
    if (step.kind == Kind::kAssign) assigned.insert(*step.name);
  for (const Step& step : steps_)
    if (step.kind == Kind::kVariable && !seen.insert(*step.name).second) assigned.erase(*step.name);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Step& step = At(id);
    if (step.kind == Kind::kVariable) step.is_replaced = assigned.contains(*step.name);
    const NodeId reader = last[static_cast<size_t>(id)];
    const bool is_own = step.kind == Kind::kOperator || step.is_replaced;
    if (!is_own) continue;
    if (reader == kNoNode || reader == end) {
      read_at_end_.push_back(id);
      continue;
    }
    At(reader).last_read.push_back(id);
    const std::vector<NodeId>& inputs = graph[reader].inputs;
    if (At(reader).kind == Kind::kOperator && inputs[0] == id &&
        std::count(inputs.begin(), inputs.end(), id) == 1)
      At(reader).call.reads_last = true;
  }
}

// A variable that is read only to be made wider, and the assignment of what comes out.
void DirectProgram::FindGrowths() {
  const Graph& graph = this->graph();
  std::vector<int> readers(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes)
    for (const NodeId input : node.inputs)
      if (input != kNoNode) ++readers[static_cast<size_t>(input)];
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (At(id).kind != Kind::kAssign) continue;
    const NodeId cbind = graph[id].inputs[0];
    if (At(cbind).kind != Kind::kOperator || At(cbind).op->fusion.use != ops::RowUse::kCbind ||
        graph[cbind].inputs.size() != 2 || readers[static_cast<size_t>(cbind)] != 1)
      continue;
    const NodeId variable = graph[cbind].inputs[0];
    if (At(variable).kind == Kind::kVariable && *At(variable).name == *At(id).name &&
        At(variable).is_replaced && readers[static_cast<size_t>(variable)] == 1)
      growths_.push_back({variable, cbind, id});
  }
}

bool DirectProgram::ReadsCellsOf(const std::string& name) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return step.kind == Kind::kVariable && *step.name == name && !step.grows;
  });
}

bool DirectProgram::Enter(const VariableTable& frame) {
  const bool needs_scalars = !is_free_of_scalars_.value_or(true);
  bool is_same = !needs_scalars && !variables_infos_.empty();
  for (size_t i = 0; i < variables_.size() && is_same; ++i) {
    const Variable* variable = frame.Find(*At(variables_[i]).name);
    is_same = variable != nullptr && variable->info == variables_infos_[i];
  }
  // Whether scalars matter is asked for when the same sizes come again: most graphs of a script run once.
  if (is_same && !is_free_of_scalars_) is_free_of_scalars_ = inferred_.IsFreeOfScalars(frame);
  if (is_same && *is_free_of_scalars_) return true;
  variables_infos_.clear();
  if (!is_same) is_free_of_scalars_ = needs_scalars ? std::optional<bool>(false) : std::nullopt;
  if (!inferred_.Infer(frame)) return false;
  for (const NodeId id : variables_) variables_infos_.push_back(graph()[id].info);
  SetSizes();
  return true;
}

// What steps know of the sizes, and what a run costs with them.
void DirectProgram::SetSizes() {
  const auto is_dense = [](const ValueInfo& info) {
    return info.IsMatrix() && info.format == Format::kDense && info.shape.IsKnown();
  };
  // Cells of a single row are appended by the kernel itself. Wide pieces are not worth keeping apart.
  for (const auto& [variable, cbind, assign] : growths_) {
    const ValueInfo& x = graph()[variable].info;
    const ValueInfo& v = graph()[graph()[cbind].inputs[1]].info;
    const bool grows = is_dense(x) && is_dense(v) && is_dense(graph()[cbind].info) && x.shape.rows > 1 &&
                       v.shape.columns * 4 <= x.shape.columns;
    for (const NodeId id : {variable, cbind, assign}) At(id).grows = grows;
    At(cbind).appends = grows || (is_dense(x) && is_dense(v) && x.shape.rows == 1);
  }
  if (!values_) {
    layout_ = ops::GraphLayout(graph());
    values_.emplace(graph(), layout_);
    for (NodeId id = 0; id < graph().size(); ++id)
      if (At(id).kind == Kind::kLiteral) values_->Own(id)[0] = Value(*At(id).literal);
  }
  nanoseconds_ = 0;
  bytes_moved_ = 0;
  matrix_operators_ = 0;
  for (NodeId id = 0; id < graph().size(); ++id) {
    Step& step = At(id);
    if (step.kind != Kind::kOperator) continue;
    ops::SetSizes(graph(), &step.call);
    const bool updates = step.op->updates && step.call.reads_last && step.call.input_infos[0].IsMatrix();
    nanoseconds_ += NanosecondsOf(graph()[id], step.call.input_infos, step.appends || updates);
    bytes_moved_ += BytesMoved(graph(), id);
    matrix_operators_ += MovesMatrices(graph(), id) ? 1 : 0;
  }
}

Status DirectProgram::Run(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
                          GrownColumns* grown, const DirectRecord& record) {
  ops::SetFloatingPointMode();
  if (record.recorder != nullptr && record.calls != calls_) FindPlaces(record);
  const Status status = RunSteps(kernels, context, frame, grown, record);
  statistics_->bytes_moved += bytes_moved_;
  statistics_->matrix_operators += matrix_operators_;
  for (const NodeId id : read_at_end_) values_->Reset(id);
  if (!status.ok())  // It did not come to the steps that read the others last.
    for (NodeId id = 0; id < graph().size(); ++id)
      if (At(id).kind != Kind::kLiteral) values_->Reset(id);
  return status;
}

Status DirectProgram::RunSteps(const ops::KernelSource& kernels, ops::KernelContext& context,
                               VariableTable* frame, GrownColumns* grown, const DirectRecord& record) {
  for (NodeId id = 0; id < graph().size(); ++id) {
    const Step& step = At(id);
    if (step.kind == Kind::kAssign)
      continue;  // All at the end: a variable may stand for the value of before.
    if (step.kind == Kind::kVariable && !step.grows) HEDDLE_RETURN_IF_ERROR(ReadVariable(id, frame));
    if (step.kind == Kind::kOperator) HEDDLE_RETURN_IF_ERROR(RunOperator(id, kernels, context, record));
    ++step.counts->acts;
    for (const NodeId own : step.last_read) values_->Reset(own);
  }
  return Assign(frame, grown);
}

Status DirectProgram::ReadVariable(NodeId id, VariableTable* frame) {
  const Step& step = At(id);
  if (step.is_replaced) {
    HEDDLE_ASSIGN_OR_RETURN(Variable taken, frame->Take(*step.name));
    values_->Own(id)[0] = std::move(taken.value);
    return OkStatus();
  }
  const Variable* variable = frame->Find(*step.name);
  if (variable == nullptr) return Internal("variable {} has no value", *step.name);
  values_->Refer(id, &variable->value);
  return OkStatus();
}

void DirectProgram::FindPlaces(const DirectRecord& record) {
  for (NodeId id = 0; id < graph().size(); ++id) {
    if (At(id).kind != Kind::kOperator) continue;
    const Node& node = graph()[id];
    At(id).place = &statistics_->PlaceOf(node.op, node.position, *record.calls);
    At(id).site = record.recorder->SiteOf({.kind = RecordedKind::kOperator,
                                           .name = node.op,
                                           .file = node.position.file,
                                           .line = node.position.line,
                                           .column = node.position.column});
  }
  calls_ = record.calls;
}

Status DirectProgram::RunOperator(NodeId id, const ops::KernelSource& kernels, ops::KernelContext& context,
                                  const DirectRecord& record) {
  const Step& step = At(id);
  if (step.grows) {  // By its assignment: here is what is added.
    values_->Own(id)[0] = *values_->Of(graph()[id].inputs[1]);
    return OkStatus();
  }
  const Status status =
      is_timed_ ? RunTimed(id, kernels, context, record) : values_->Run(step.call, kernels, context);
  step.counts->rows += values_->Of(id)->shape().rows;
  return status;
}

Status DirectProgram::RunTimed(NodeId id, const ops::KernelSource& kernels, ops::KernelContext& context,
                               const DirectRecord& record) {
  const Step& step = At(id);
  Clock& clock = record.recorder != nullptr ? record.recorder->clock() : SystemClock();
  const int64_t begin_ns = clock.MonotonicNs();
  const Status status = values_->Run(step.call, kernels, context);
  const int64_t end_ns = clock.MonotonicNs();
  step.counts->kernel_ns += end_ns - begin_ns;
  if (record.recorder == nullptr) return status;
  statistics_->operators_ns += end_ns - begin_ns;
  if (!status.ok()) return status;
  const int64_t rows = values_->Of(id)->shape().rows;
  record.recorder->Add(record.thread, step.site, begin_ns, end_ns, rows);
  ++step.place->acts;
  step.place->ns += end_ns - begin_ns;
  step.place->rows += rows;
  step.place->bytes += BytesMoved(graph(), id);
  return status;
}

// All values were read before any variable is set: one may be assigned that another one stands for.
Status DirectProgram::Assign(VariableTable* frame, GrownColumns* grown) {
  for (NodeId id = 0; id < graph().size(); ++id) {
    const Step& step = At(id);
    if (step.kind != Kind::kAssign) continue;
    const NodeId given = graph()[id].inputs[0];
    if (!step.grows) {
      assigned_.emplace_back(step.name, Assigned(graph()[id], *frame));
      continue;
    }
    const Status status = grown->Append(frame, *step.name, values_->Of(given)->matrix());
    if (!status.ok()) return status.At(graph()[given].position);
  }
  for (auto& [name, variable] : assigned_) frame->Set(*name, std::move(variable));
  assigned_.clear();
  return OkStatus();
}

Variable DirectProgram::Assigned(const Node& node, const VariableTable& frame) const {
  const Value& value = *values_->Of(node.inputs[0]);
  Variable variable;
  variable.info = InfoOfValue(node.info, value);
  variable.distribution = variable.info.IsScalar() ? Distribution::Each() : Distribution::One();
  variable.value = value;
  const Node& given = graph()[node.inputs[0]];
  if (const Variable* const same = given.Is("variable") ? frame.Find(given.Text("name")) : nullptr)
    variable.source = same->source;
  return variable;
}

}  // namespace heddle::engine

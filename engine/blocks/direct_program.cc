// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/direct_program.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/environment/clock.h"
#include "engine/blocks/bytes_moved.h"
#include "engine/variables/live_in.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"

namespace heddle::engine {
namespace {

bool IsSizedNode(const Node& node) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  return std::all_of(results.begin(), results.end(), [](const ValueInfo& info) { return info.IsSized(); });
}

// The sizes that only the cells tell.
ValueInfo InfoOfValue(const ValueInfo& known, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kScalar: return ValueInfo::OfScalar(value.scalar().type());
    case Value::Kind::kMatrix: {
      ValueInfo info = known;
      info.shape = value.shape();
      return info;
    }
    case Value::Kind::kFrame: return ValueInfo::OfFrame(value.frame().rows(), value.frame().schema());
  }
  return known;
}

}  // namespace

double WorkOf(const Node& node, std::span<const ValueInfo> inputs, bool appends) {
  const ops::Operator* op = ops::FindOperator(node.op);
  if (op == nullptr || op->size_of != nullptr) return 0;
  if (!appends) {
    const ops::Cost cost = ops::CostOf(node, inputs);
    return cost.bytes + cost.flops;
  }
  double work = 0;
  for (const ValueInfo& input : inputs.subspan(1)) work += 2 * static_cast<double>(KnownBytes(input));
  return work;
}

InferredGraph::InferredGraph(Graph graph, ElementType element_type)
    : graph_(std::move(graph)), values_(graph_.nodes.size()), inference_(nullptr, element_type) {}

bool InferredGraph::Infer(const VariableTable& frame, bool knows_values) {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    Node& node = graph_[id];
    std::optional<Scalar>& value = values_[static_cast<size_t>(id)];
    if (node.inputs.empty() && node.op == "literal" && value) continue;
    if (!node.inputs.empty() || node.op != "variable") {
      value.reset();
      if (!inference_.Infer(graph_, values_, id).ok()) return false;
      continue;
    }
    const Variable* variable = frame.Find(node.Text("name"));
    if (variable == nullptr || variable->info.data_type == DataType::kList) return false;
    compiler::LiveIn known = LiveInOf(*variable);
    node.info = std::move(known.info);
    value = knows_values ? std::move(known.value) : std::nullopt;
  }
  return true;
}

bool InferredGraph::IsComplete() const {
  return std::all_of(graph_.nodes.begin(), graph_.nodes.end(), [](const Node& node) {
    if (IsSizedNode(node)) return true;
    const ops::Operator* op = ops::FindOperator(node.op);
    return op != nullptr && op->effect;
  });
}

bool InferredGraph::IsFreeOfValues(const VariableTable& frame) const {
  InferredGraph without(graph_, ElementType::kFloat64);
  without.inference_ = inference_;
  if (!without.Infer(frame, /*knows_values=*/false)) return false;
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (!(graph_[id].info == without.graph_[id].info) || graph_[id].results != without.graph_[id].results)
      return false;
  return true;
}

DirectProgram::DirectProgram(Graph graph, const SessionOptions& options)
    : inferred_(std::move(graph), options.element_type),
      is_timed_(options.times_operators),
      steps_(inferred_.graph().nodes.size()) {
  for (NodeId id = 0; id < this->graph().size(); ++id) {
    const Node& node = this->graph()[id];
    Step& step = At(id);
    if (node.Is("literal")) {
      step.kind = StepKind::kLiteral;
      step.results.emplace_back(*node.FindAttribute("value"));
      step.value = step.results.data();
    } else if (node.Is("variable") || node.Is("assign")) {
      step.kind = node.Is("variable") ? StepKind::kVariable : StepKind::kAssign;
      step.name = &node.Text("name");
      if (step.kind == StepKind::kVariable) variables_.push_back(id);
    } else if (node.Is("result")) {
      step.kind = StepKind::kResult;
    } else {
      step.op = ops::FindOperator(node.op);
    }
  }
  FindLastReaders();
  FindGrowing();
}

void DirectProgram::CountIn(SessionStatistics* statistics) {
  for (NodeId id = 0; id < graph().size(); ++id) At(id).statistics = &statistics->operators[graph()[id].op];
  all_ = statistics;
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
      reader = std::max(reader, At(id).kind == StepKind::kAssign ? end : id);
    }
  }
  // What has a name within the step that made it lives as long as the last of its names.
  for (NodeId id = graph.size(); id-- > 0;) {
    if (At(id).kind != StepKind::kResult) continue;
    NodeId& of_tuple = last[static_cast<size_t>(graph[id].inputs[0])];
    of_tuple = std::max(of_tuple, last[static_cast<size_t>(id)]);
  }
  std::unordered_set<std::string_view> assigned, seen;
  for (const Step& step : steps_)
    if (step.kind == StepKind::kAssign) assigned.insert(*step.name);
  for (const Step& step : steps_)
    if (step.kind == StepKind::kVariable && !seen.insert(*step.name).second) assigned.erase(*step.name);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Step& step = At(id);
    if (step.kind == StepKind::kVariable) step.is_replaced = assigned.contains(*step.name);
    const NodeId reader = last[static_cast<size_t>(id)];
    if (reader == kNoNode || reader == end || step.kind == StepKind::kLiteral) continue;
    At(reader).frees.push_back(id);
    const std::vector<NodeId>& inputs = graph[reader].inputs;
    const bool is_ours = step.kind == StepKind::kKernel || step.is_replaced;
    if (is_ours && At(reader).kind == StepKind::kKernel && inputs[0] == id &&
        std::count(inputs.begin(), inputs.end(), id) == 1)
      At(reader).reads_last = true;
  }
}

// A variable that is read only to be made wider, and the assignment of what comes out.
void DirectProgram::FindGrowing() {
  const Graph& graph = this->graph();
  std::vector<int> readers(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes)
    for (const NodeId input : node.inputs)
      if (input != kNoNode) ++readers[static_cast<size_t>(input)];
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (At(id).kind != StepKind::kAssign) continue;
    const NodeId wider = graph[id].inputs[0];
    if (At(wider).kind != StepKind::kKernel || At(wider).op->fusion.use != ops::RowUse::kCbind ||
        graph[wider].inputs.size() != 2 || readers[static_cast<size_t>(wider)] != 1)
      continue;
    const NodeId variable = graph[wider].inputs[0];
    if (At(variable).kind == StepKind::kVariable && *At(variable).name == *At(id).name &&
        At(variable).is_replaced && readers[static_cast<size_t>(variable)] == 1)
      growing_.push_back({variable, wider, id});
  }
}

bool DirectProgram::ReadsCellsOf(const std::string& name) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return step.kind == StepKind::kVariable && *step.name == name && !step.grows;
  });
}

bool DirectProgram::Enter(const VariableTable& frame) {
  const bool needs_values = !is_free_of_values_.value_or(true);
  bool is_same = !needs_values && !entered_.empty();
  for (size_t i = 0; i < variables_.size() && is_same; ++i) {
    const Variable* variable = frame.Find(*At(variables_[i]).name);
    is_same = variable != nullptr && variable->info == entered_[i];
  }
  // Whether scalars matter is asked for when the same sizes come again: most graphs of a script run once.
  if (is_same && !is_free_of_values_) is_free_of_values_ = inferred_.IsFreeOfValues(frame);
  if (is_same && *is_free_of_values_) return true;
  entered_.clear();
  if (!is_same) is_free_of_values_ = needs_values ? std::optional<bool>(false) : std::nullopt;
  if (!inferred_.Infer(frame)) return false;
  // Cells of a single row are appended by the kernel itself. Wide pieces are not worth keeping apart.
  for (const auto& [variable, wider, assign] : growing_) {
    const ValueInfo& x = graph()[variable].info;
    const ValueInfo& v = graph()[graph()[wider].inputs[1]].info;
    const auto is_dense = [](const ValueInfo& info) {
      return info.IsMatrix() && info.format == Format::kDense && info.shape.IsKnown();
    };
    const bool grows = is_dense(x) && is_dense(v) && is_dense(graph()[wider].info) && x.shape.rows > 1 &&
                       v.shape.columns * 4 <= x.shape.columns;
    for (const NodeId id : {variable, wider, assign}) At(id).grows = grows;
    At(wider).appends = grows || (is_dense(x) && is_dense(v) && x.shape.rows == 1);
  }
  work_ = 0;
  bytes_moved_ = 0;
  matrix_operators_ = 0;
  for (NodeId id = 0; id < graph().size(); ++id) {
    const Node& node = graph()[id];
    Step& step = At(id);
    if (step.kind == StepKind::kVariable) entered_.push_back(node.info);
    if (step.kind != StepKind::kKernel) continue;
    step.input_infos.clear();
    for (const NodeId input : node.inputs)
      step.input_infos.push_back(input == kNoNode ? ValueInfo() : graph()[input].info);
    step.rows = ops::TotalRowsOf(*step.op, node, step.input_infos);
    const bool appends =
        step.appends || (step.op->updates && step.reads_last && step.input_infos[0].IsMatrix());
    work_ += WorkOf(node, step.input_infos, appends);
    bytes_moved_ += BytesMoved(graph(), id);
    matrix_operators_ += MovesMatrices(graph(), id) ? 1 : 0;
  }
  return true;
}

double DirectProgram::Work() const { return work_; }

Status DirectProgram::Run(const ops::KernelSource& kernels, ops::KernelContext& context, VariableTable* frame,
                          GrownColumns* grown) {
  ops::SetFloatingPointMode();
  const Status status = RunSteps(kernels, context, frame, grown);
  all_->bytes_moved += bytes_moved_;
  all_->matrix_operators += matrix_operators_;
  for (Step& step : steps_) {
    if (step.kind == StepKind::kLiteral) continue;
    step.results.clear();
    step.value = nullptr;
  }
  return status;
}

Status DirectProgram::ReadVariable(Step& step, VariableTable* frame) {
  if (step.is_replaced) {
    HEDDLE_ASSIGN_OR_RETURN(Variable own, frame->Take(*step.name));
    step.results.assign(1, std::move(own.value));
    step.value = step.results.data();
    return OkStatus();
  }
  const Variable* variable = frame->Find(*step.name);
  if (variable == nullptr) return Internal("variable {} has no value", *step.name);
  step.value = &variable->value;
  return OkStatus();
}

Status DirectProgram::RunSteps(const ops::KernelSource& kernels, ops::KernelContext& context,
                               VariableTable* frame, GrownColumns* grown) {
  for (NodeId id = 0; id < graph().size(); ++id) {
    const Node& node = graph()[id];
    Step& step = At(id);
    switch (step.kind) {
      case StepKind::kLiteral: break;
      case StepKind::kVariable:
        if (!step.grows) HEDDLE_RETURN_IF_ERROR(ReadVariable(step, frame));
        break;
      case StepKind::kAssign: continue;  // All at the end: a variable may stand for the value of before.
      case StepKind::kResult: step.value = &At(node.inputs[0]).results[node.ResultIndex()]; break;
      case StepKind::kKernel:
        if (step.grows) {  // By its assignment: here is what is added.
          step.results.assign(1, *At(node.inputs[1]).value);
          break;
        }
        HEDDLE_RETURN_IF_ERROR(RunKernel(step, node, kernels, context).At(node.position));
    }
    ++step.statistics->acts;
    for (const NodeId free : step.frees)
      if (At(free).kind == StepKind::kKernel || At(free).is_replaced) At(free).results.clear();
  }
  for (NodeId id = 0; id < graph().size(); ++id) {
    const Step& step = At(id);
    if (step.kind != StepKind::kAssign) continue;
    if (!step.grows) {
      assigned_.emplace_back(step.name, Assigned(graph()[id]));
      continue;
    }
    const Node& wider = graph()[graph()[id].inputs[0]];
    const Status status = grown->Append(frame, *step.name, At(graph()[id].inputs[0]).results[0].matrix());
    if (!status.ok()) return status.At(wider.position);
  }
  // All were read before any is written: a variable may be assigned that another one stands for.
  for (auto& [name, variable] : assigned_) frame->Set(*name, std::move(variable));
  assigned_.clear();
  return OkStatus();
}

Status DirectProgram::RunKernel(Step& step, const Node& node, const ops::KernelSource& kernels,
                                ops::KernelContext& context) {
  inputs_.clear();
  for (const NodeId input : node.inputs) inputs_.push_back(input == kNoNode ? nullptr : At(input).value);
  step.results.resize(ResultsOf(node).size());
  step.value = step.results.data();
  const int64_t begin_ns = is_timed_ ? SystemClock().MonotonicNs() : 0;
  const Status status = kernels.Run({.node = node,
                                     .phase = Phase::kWhole,
                                     .inputs = inputs_,
                                     .input_infos = step.input_infos,
                                     .row_begin = 0,
                                     .row_end = step.rows,
                                     .total_rows = step.rows,
                                     .context = context,
                                     .last_read = step.reads_last ? const_cast<Value*>(inputs_[0]) : nullptr,
                                     .op = step.op},
                                    step.results);
  if (is_timed_) step.statistics->kernel_ns += SystemClock().MonotonicNs() - begin_ns;
  step.statistics->rows += step.results[0].shape().rows;
  return status;
}

Variable DirectProgram::Assigned(const Node& node) const {
  const Value& value = *At(node.inputs[0]).value;
  Variable variable;
  variable.info = InfoOfValue(node.info, value);
  variable.distribution = variable.info.IsScalar() ? Distribution::Each() : Distribution::One();
  variable.value = value;
  return variable;
}

}  // namespace heddle::engine

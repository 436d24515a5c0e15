// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/infer.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/values/sizes.h"
#include "ops/base/operator.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::compiler {
namespace {

// One operand of & or | may settle it, whatever number the other is. The other is computed all the same where
// it acts or may fail (IsOrdered).
std::optional<Scalar> Decided(const std::string& op, std::span<const ValueInfo> infos,
                              std::span<const Scalar* const> scalars) {
  const std::optional<ops::BinaryCode> code = ops::FindBinaryCode(op);
  if (code != ops::BinaryCode::kLogicalAnd && code != ops::BinaryCode::kLogicalOr) return std::nullopt;
  const bool deciding = code == ops::BinaryCode::kLogicalOr;
  for (const ValueInfo& info : infos)
    if (info.value_type == ValueType::kUnknown) return std::nullopt;  // a string is an error of the run
  for (const Scalar* scalar : scalars)
    if (scalar != nullptr && scalar->AsBoolean() == deciding) return Scalar(deciding);
  return std::nullopt;
}

// The result of a call within an expression has a variable, of which the script knows nothing.
std::string ShownName(const std::string& variable) {
  return variable.starts_with('%') ? "the result of this call" : fmt::format("variable '{}'", variable);
}

Status InferVariable(const FindLiveIn& live_in, Node& node, std::optional<Scalar>& value) {
  const std::string& name = node.Text("name");
  const LiveIn* const known = live_in(name);
  if (known == nullptr)
    return FailedPrecondition("{} has no value here", ShownName(name))
        .WithNote("it is assigned only in branches or loops that did not run");
  if (known->info.data_type == DataType::kList)
    return FailedPrecondition("{} is a list here", ShownName(name))
        .WithNote("as.scalar(l[i]) and as.matrix(l[i]) take an element of a list");
  node.info = known->info;
  value = known->value;
  return OkStatus();
}

// Behind this check, numbers of cells are 64-bit everywhere, and so are those of bytes of a dense matrix.
Status CheckSize(const std::string& op, const ValueInfo& info) {
  const Shape& shape = info.shape;
  if (!info.IsTabular()) return OkStatus();
  const std::string_view type = Name(info.data_type);
  const bool is_empty = shape.rows == 0 || shape.columns == 0;
  const int64_t most = is_empty ? kMostLengthOfEmpty : kMostLength;
  if (shape.rows > most || shape.columns > most)
    return ResourceExhausted("{}: a {} of {} is too large: {} has at most {} rows and columns", op, type,
                             shape, is_empty ? "one without cells" : "it", most);
  const int64_t counted = info.format == Format::kSparse
                              ? shape.Cells()
                              : SaturatingProduct(shape.Cells(), BytesOf(ElementType::kFloat64));
  if (!shape.IsKnown() || counted < INT64_MAX) return OkStatus();
  return ResourceExhausted("{}: a {} of {} has more cells than can be counted", op, type, shape);
}

bool IsComplete(const Node& node) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  return std::all_of(results.begin(), results.end(), [](const ValueInfo& info) { return info.IsSized(); });
}

// What a script writes in one way for matrices and for frames: only the types of the operands, of which it
// has two at least, tell. Its operator; nullptr of all other nodes.
const ops::Operator* ChosenByTypes(const Node& node) {
  const ops::Operator* const op = node.inputs.size() < 2 ? nullptr : ops::FindOperator(node.op);
  const bool is_chosen =
      op != nullptr && (op->role == ops::Role::kCompareFrames || op->role == ops::Role::kReplace ||
                        op->role == ops::Role::kReplaceText || ops::IsComparison(*op));
  return is_chosen ? op : nullptr;
}

void ChooseForFrames(std::span<const ValueInfo> infos, Node& node) {
  const ops::Operator* const op = ChosenByTypes(node);
  if (op == nullptr) return;
  const bool frames = std::any_of(infos.begin(), infos.end(), [](const ValueInfo& x) { return x.IsFrame(); });
  if (op->role == ops::Role::kReplace || op->role == ops::Role::kReplaceText) {
    node.op = infos[0].IsFrame() ? "replaceTexts" : "replace";
  } else if (op->role == ops::Role::kCompareFrames) {  // Perhaps with other arguments of the same function.
    if (!frames) node.op = std::string(node.Text("comparison"));
  } else if (frames) {
    node.SetAttribute("comparison", Scalar(node.op));
    node.op = "compareFrames";
  }
}

Status InferResult(const Node& tuple, Node& node) {
  node.info = ValueInfo();
  if (tuple.info.data_type == DataType::kUnknown) return OkStatus();
  if (node.ResultIndex() >= tuple.results.size())
    return Internal("{} has no result {}", tuple.op, node.ResultIndex());
  node.info = tuple.results[node.ResultIndex()];
  return OkStatus();
}

}  // namespace

std::optional<Scalar> SizeOf(std::string_view op, const Shape& shape) {
  const ops::Operator* found = ops::FindOperator(op);
  const int64_t size = found == nullptr || found->size_of == nullptr ? kUnknown : found->size_of(shape);
  if (size == kUnknown) return std::nullopt;
  return Scalar(size);
}

NodesBefore::NodesBefore(const Graph& graph) {
  facts_.reserve(graph.nodes.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    facts_.push_back({graph[id].info, graph[id].results});
    if (ChosenByTypes(graph[id]) != nullptr) chosen_.emplace_back(id, graph[id]);
  }
}

void NodesBefore::RestoreOperators(Graph* graph) const {
  for (const auto& [id, node] : chosen_) {
    if ((*graph)[id].op == node.op) continue;
    (*graph)[id].op = node.op;
    (*graph)[id].attributes = node.attributes;
  }
}

void NodesBefore::Restore(Graph* graph) const {
  RestoreOperators(graph);
  for (NodeId id = 0; id < graph->size(); ++id) {
    (*graph)[id].info = (*this)[id].info;
    (*graph)[id].results = (*this)[id].results;
  }
}

bool IsLongText(const Scalar& scalar) {
  constexpr size_t kLongestKnownText = size_t{64} << 10;
  return scalar.IsString() && scalar.AsString().size() > kLongestKnownText;
}

Status NodeInference::Infer(Graph& graph, std::vector<std::optional<Scalar>>& values, NodeId id) {
  Node& node = graph[id];
  std::optional<Scalar>& value = values[static_cast<size_t>(id)];
  if (node.inputs.empty()) {
    if (node.op == "literal") {
      value = *node.FindAttribute("value");
      node.info = ValueInfo::OfScalar(value->type());
      return OkStatus();
    }
    if (node.op == "variable") return OkStatus();
  } else if (node.op == "assign") {
    node.info = graph[node.inputs[0]].info;
    value = values[static_cast<size_t>(node.inputs[0])];
    return OkStatus();
  } else if (node.op == "result") {
    return InferResult(graph[node.inputs[0]], node);
  }
  return InferOperator(graph, values, node, value);
}

namespace {
constexpr size_t kUsualInputs = 6;  // at most, of an operator
}  // namespace

Status NodeInference::InferOperator(Graph& graph, std::vector<std::optional<Scalar>>& values, Node& node,
                                    std::optional<Scalar>& value) {
  infos_.clear();
  scalars_.clear();
  infos_.reserve(std::max<size_t>(kUsualInputs, node.inputs.size()));
  scalars_.reserve(std::max<size_t>(kUsualInputs, node.inputs.size()));
  bool types_known = true;        // every input's data type
  bool value_types_known = true;  // every scalar input's value type
  bool values_known = true;       // every input is a scalar of known value
  for (NodeId input : node.inputs) {
    if (input == kNoNode) {
      infos_.emplace_back();
      scalars_.push_back(nullptr);
      continue;
    }
    const ValueInfo& info = graph[input].info;
    const std::optional<Scalar>& scalar = values[static_cast<size_t>(input)];
    infos_.push_back(info);
    scalars_.push_back(scalar ? &*scalar : nullptr);
    types_known &= info.data_type != DataType::kUnknown;
    value_types_known &= !info.IsScalar() || info.value_type != ValueType::kUnknown;
    values_known &= scalar.has_value();
  }
  node.info = ValueInfo();
  node.results.clear();
  if (!types_known) return OkStatus();
  ChooseForFrames(infos_, node);

  Result<ValueInfo> info = ops::Infer({node, infos_, scalars_, files_, element_type_}, &results_);
  if (!info.ok()) return value_types_known ? info.status() : OkStatus();
  HEDDLE_RETURN_IF_ERROR(CheckSize(node.op, *info));
  for (const ValueInfo& result : results_) HEDDLE_RETURN_IF_ERROR(CheckSize(node.op, result));
  node.info = *info;
  node.results = results_;
  if (!node.info.IsScalar()) return OkStatus();
  if (values_known) {
    const ops::Operator* op = ops::FindOperator(node.op);
    if (!op->pure || op->effect) return OkStatus();
    // A failing evaluation is not an error yet: it shows, in script order, when the operator runs.
    Result<Scalar> result = ops::EvaluateScalar(node, scalars_);
    if (result.ok() && !IsLongText(*result)) value = *std::move(result);
  } else if (node.inputs.size() == 1 && infos_[0].IsTabular()) {
    value = SizeOf(node.op, infos_[0].shape);
  } else {
    value = Decided(node.op, infos_, scalars_);
  }
  return OkStatus();
}

InferOutcome InferShapes(Graph graph, const LiveIns& live_in, ops::Files* files,
                         std::vector<std::pair<NodeId, Status>>* all_errors, ElementType element_type,
                         const std::set<NodeId>* waiting) {
  const FindLiveIn find = [&](std::string_view name) {
    const auto found = live_in.find(name);
    return found != live_in.end() ? &found->second : nullptr;
  };
  return InferShapes(std::move(graph), find, files, all_errors, element_type, waiting);
}

InferOutcome InferShapes(Graph graph, const FindLiveIn& live_in, ops::Files* files,
                         std::vector<std::pair<NodeId, Status>>* all_errors, ElementType element_type,
                         const std::set<NodeId>* waiting) {
  InferOutcome outcome;
  outcome.graph = std::move(graph);
  outcome.values.resize(outcome.graph.nodes.size());
  NodeInference inference(files, element_type);
  NodeInference without_files(nullptr, element_type);
  for (NodeId id = 0; id < outcome.graph.size(); ++id) {
    Node& node = outcome.graph[id];
    const bool waits = waiting != nullptr && waiting->contains(id);
    if (waits && outcome.waiting == kNoNode) outcome.waiting = id;
    if (waits) outcome.complete = false;
    Status status = node.inputs.empty() && node.op == "variable"
                        ? InferVariable(live_in, node, outcome.values[static_cast<size_t>(id)])
                        : (waits ? without_files : inference).Infer(outcome.graph, outcome.values, id);
    if (!status.ok()) {
      if (status.code() == StatusCode::kInvalidArgument)
        status = status.WithCode(StatusCode::kFailedPrecondition);
      status = status.At(node.position);
      node.info = ValueInfo();
      node.results.clear();
      if (outcome.error.ok()) {
        outcome.error = status;
        outcome.failed = id;
      }
      outcome.complete = false;
      if (all_errors == nullptr) return outcome;
      all_errors->emplace_back(id, std::move(status));
    } else if (!IsComplete(node)) {
      // An effect has no result to know the size of.
      const ops::Operator* op = ops::FindOperator(node.op);
      if (op == nullptr || !op->effect) outcome.complete = false;
    }
  }
  return outcome;
}

}  // namespace heddle::compiler

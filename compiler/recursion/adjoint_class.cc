// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/adjoint_class.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/gradient/activity.h"
#include "compiler/gradient/adjoint_graph.h"
#include "compiler/optimize/pass.h"
#include "compiler/recursion/adjoint_terms.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

using ops::RecursiveAdjoint;

std::string ResultName(size_t i) { return fmt::format("%result{}", i); }

// What the backward graph reads of the node itself, beside what it reads of the node's calls: a row each.
struct OwnRow {
  enum class Kind : uint8_t { kResult, kSaved, kResultAdjoint } kind = Kind::kResult;
  size_t number = 0;
};

RecursiveAdjoint::Row RowFor(const ValueInfo& info) {
  if (info.IsScalar()) return {};
  return {info.shape.rows * info.shape.columns, info.element_type};
}

class ClassDifferentiator {
 public:
  ClassDifferentiator(const ClassGraph& graph, const ClassContext& context,
                      const ClassAdjointOptions& options, std::string* why)
      : from_(graph), context_(context), options_(options), why_(*why) {}

  std::optional<RecursiveAdjoint> Run() {
    Graph backward;
    if (!WriteAdjoint(&backward) || !Infer(&backward)) return std::nullopt;
    AdjointTerms terms(std::move(backward), from_, options_.parameters);
    AdjointTerms::Outputs outputs = terms.Take(&made_);
    PassOptions passes;
    passes.infos_are_exact = true;
    passes.disabled = context_.disabled;
    Result<Graph> optimized = RunGraphPasses(std::move(outputs.graph), passes);
    if (!optimized.ok()) return No(optimized.status().message());
    ClassGraph forward = from_, of_backward;
    ReadForwardValues(*optimized, outputs.variables, &forward, &of_backward);
    std::optional<ops::RecursiveBody> body = BatchOperators(forward, context_, &why_);
    if (!body) return std::nullopt;
    made_.forward = *std::move(body);
    of_backward.inputs = InputsOfBackward();
    body = BatchOperators(of_backward, context_, &why_);
    if (!body) return std::nullopt;
    made_.backward = *std::move(body);
    return std::move(made_);
  }

 private:
  std::nullopt_t No(std::string why) {
    why_ = std::move(why);
    return std::nullopt;
  }

  // The adjoint of the body as a straight-line block: its results are variables, and so are what it reads.
  bool WriteAdjoint(Graph* backward) {
    block_.id = 1;
    block_.graph = from_.graph;
    SingleAssignment code;
    std::set<std::string> from = options_.parameters, results;
    for (const Node& node : from_.graph.nodes) {
      if (!node.Is("variable")) continue;
      const std::string& name = node.Text("name");
      code.types[name] = TypeOnly(node.info);
      known_[name] = {node.info, std::nullopt, nullptr};
      if (IsChild(name) && CanVary(node.info)) from.insert(name);
    }
    for (size_t i = 0; i < from_.results.size(); ++i) {
      const ValueInfo& info = from_.graph[from_.results[i]].info;
      AddAssign(&block_.graph, ResultName(i), from_.results[i], {});
      code.types[ResultName(i)] = TypeOnly(info);
      known_[AdjointName(ResultName(i))] = {info, std::nullopt, nullptr};
      own_rows_[AdjointName(ResultName(i))] = {OwnRow::Kind::kResultAdjoint, i};
      if (CanVary(info)) results.insert(ResultName(i));
    }
    code.function.body = {block_};
    const Activity activity(code, from, results);
    AdjointState state;
    state.activity = &activity;
    state.types = &code.types;
    for (const std::string& result : results)
      if (activity.IsActive(result)) state.present.insert(result);
    int next_name = 0;
    state.next_name = &next_name;
    Result<Graph> adjoint = AdjointGraph(&block_, &state);
    if (!adjoint.ok()) {
      why_ = adjoint.status().message();
      return false;
    }
    *backward = *std::move(adjoint);
    const InferOutcome inferred =
        InferShapes(block_.graph, FindKnown(), nullptr, nullptr, context_.element_type);
    if (!inferred.error.ok()) {
      why_ = inferred.error.message();
      return false;
    }
    for (const Node& node : inferred.graph.nodes) {
      if (!node.Is("assign")) continue;
      const NodeId value = node.inputs[0];
      forward_values_[node.Text("name")] = value;
      known_[node.Text("name")] = {inferred.graph[value].info, inferred.values[static_cast<size_t>(value)],
                                   nullptr};
    }
    return true;
  }

  FindLiveIn FindKnown() const {
    return [this](std::string_view name) -> const LiveIn* {
      const auto parameter = context_.parameters.find(name);
      if (parameter != context_.parameters.end()) return &parameter->second;
      const auto found = known_.find(name);
      return found == known_.end() ? nullptr : &found->second;
    };
  }

  bool Infer(Graph* graph) {
    InferOutcome inferred =
        InferShapes(std::move(*graph), FindKnown(), nullptr, nullptr, context_.element_type);
    if (!inferred.error.ok()) {
      why_ = inferred.error.message();
      return false;
    }
    *graph = std::move(inferred.graph);
    for (NodeId id = 0; id < graph->size(); ++id) {
      Node& node = (*graph)[id];
      const std::optional<Scalar>& value = inferred.values[static_cast<size_t>(id)];
      if (value && node.info.IsScalar() && !node.Is("assign")) {
        node.op = "literal";
        node.inputs.clear();
        node.attributes.clear();
        node.SetAttribute("value", *value);
        continue;
      }
      if (IsPlain(node)) continue;
      why_ = WhyNotPlain(node);
      return false;
    }
    return true;
  }

  // Whether the nodes of the class have a value in common, or it is only looked up: then it is not read.
  bool IsCheap(NodeId id) const {
    const Node& node = from_.graph[id];
    if (node.Is("variable") || node.Is("literal")) return true;
    bool is_same = true;
    for (const NodeId input : node.inputs)
      if (input != kNoNode) is_same &= IsShared(input);
    const bool is_lookup = ops::HasRole(node, ops::Role::kRange) && IsShared(node.inputs[0]);
    return is_same || is_lookup;
  }
  bool IsShared(NodeId id) const {
    const Node& node = from_.graph[id];
    if (node.Is("variable")) return from_.InputNamed(node.Text("name")) == nullptr;
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](NodeId input) { return input == kNoNode || IsShared(input); });
  }

  bool IsChild(std::string_view name) const {
    const ClassInput* const input = from_.InputNamed(name);
    return input != nullptr && input->kind == ClassInput::Kind::kChildResult;
  }

  // What the backward graph reads of the body's values is read, or becomes part of it.
  void ReadForwardValues(const Graph& optimized, const std::vector<std::string>& variables,
                         ClassGraph* forward, ClassGraph* backward) {
    std::map<NodeId, NodeId> recomputed;  // forward nodes in the backward graph
    std::vector<NodeId> now(static_cast<size_t>(optimized.size()), kNoNode);
    std::map<std::string, NodeId> assigned;
    for (NodeId id = 0; id < optimized.size(); ++id) {
      const Node& node = optimized[id];
      if (node.Is("assign")) {
        assigned[node.Text("name")] = now[static_cast<size_t>(node.inputs[0])];
        continue;
      }
      const auto read = node.Is("variable") ? forward_values_.find(node.Text("name")) : forward_values_.end();
      if (read != forward_values_.end()) {
        now[static_cast<size_t>(id)] = Value(read->second, forward, &recomputed, &backward->graph);
        continue;
      }
      if (node.Is("variable")) {
        now[static_cast<size_t>(id)] = Variable(node, &backward->graph);
        continue;
      }
      Node copy = node;
      copy.after.clear();
      for (NodeId& input : copy.inputs)
        if (input != kNoNode) input = now[static_cast<size_t>(input)];
      now[static_cast<size_t>(id)] = backward->graph.Add(std::move(copy));
    }
    std::vector<NodeId> outputs;
    for (const std::string& variable : variables) outputs.push_back(assigned.at(variable));
    NumberOutputs(outputs, backward);
  }

  // Values that have become one are one output.
  void NumberOutputs(const std::vector<NodeId>& values, ClassGraph* backward) {
    std::vector<NodeId>& results = backward->results;
    std::vector<int32_t> now;
    made_.outputs.clear();
    for (const NodeId value : values) {
      const auto at = std::find(results.begin(), results.end(), value);
      now.push_back(static_cast<int32_t>(at - results.begin()));
      if (at != results.end()) continue;
      results.push_back(value);
      made_.outputs.push_back(RowFor(backward->graph[value].info));
    }
    const auto number = [&](int32_t* output) { *output = now[static_cast<size_t>(*output)]; };
    for (RecursiveAdjoint::OfChild& child : made_.children) number(&child.output);
    for (RecursiveAdjoint::Term& term : made_.terms) number(&term.left), number(&term.right);
  }

  // A result of the node is there in any case.
  NodeId Value(NodeId id, ClassGraph* forward, std::map<NodeId, NodeId>* recomputed, Graph* graph) {
    if (IsCheap(id)) return Recomputed(id, recomputed, graph);
    const auto result = std::find(from_.results.begin(), from_.results.end(), id);
    if (result != from_.results.end())
      return Own({OwnRow::Kind::kResult, static_cast<size_t>(result - from_.results.begin())}, id, graph);
    return options_.saves ? SavedValue(id, forward, graph) : Recomputed(id, recomputed, graph);
  }

  // A row of the node itself that has what node `id` of the forward graph has computed.
  NodeId Own(const OwnRow& row, NodeId id, Graph* graph) {
    const char* const name = row.kind == OwnRow::Kind::kResult ? "%own" : "%saved";
    Node node = {.op = "variable", .info = from_.graph[id].info};
    node.SetAttribute("name", fmt::format("{}{}", name, row.number));
    own_rows_[node.Text("name")] = row;
    return Variable(node, graph);
  }

  NodeId SavedValue(NodeId id, ClassGraph* forward, Graph* graph) {
    size_t at = from_.results.size();
    while (at < forward->results.size() && forward->results[at] != id) ++at;
    if (at == forward->results.size()) {
      forward->results.push_back(id);
      made_.saved.push_back(RowFor(from_.graph[id].info));
    }
    return Own({OwnRow::Kind::kSaved, at - from_.results.size()}, id, graph);
  }

  // A node for each variable.
  NodeId Variable(const Node& node, Graph* graph) {
    const auto [found, is_new] = variables_.try_emplace(node.Text("name"), kNoNode);
    if (is_new) found->second = graph->Add(node);
    return found->second;
  }

  NodeId Recomputed(NodeId id, std::map<NodeId, NodeId>* recomputed, Graph* graph) {
    if (const auto found = recomputed->find(id); found != recomputed->end()) return found->second;
    Node copy = from_.graph[id];
    if (copy.Is("variable")) return (*recomputed)[id] = Variable(copy, graph);
    const auto result = std::find(from_.results.begin(), from_.results.end(), id);
    if (result != from_.results.end() && !IsCheap(id))
      return (*recomputed)[id] =
                 Own({OwnRow::Kind::kResult, static_cast<size_t>(result - from_.results.begin())}, id, graph);
    copy.after.clear();
    for (NodeId& input : copy.inputs)
      if (input != kNoNode) input = Recomputed(input, recomputed, graph);
    return (*recomputed)[id] = graph->Add(std::move(copy));
  }

  // The backward body reads rows of the children and, as of one call more, of the node itself, by their
  // numbers in RecursiveAdjoint::backward.
  std::map<std::string, ClassInput, std::less<>> InputsOfBackward() const {
    const size_t outputs = made_.outputs.size(), results = from_.results.size(), saved = made_.saved.size();
    const auto row_of = [&](int32_t call, size_t row) {
      return ClassInput{ClassInput::Kind::kChildResult, call, static_cast<int32_t>(row)};
    };
    std::map<std::string, ClassInput, std::less<>> inputs = from_.inputs;
    for (auto& [name, input] : inputs)
      if (input.kind == ClassInput::Kind::kChildResult)
        input = row_of(input.index, outputs + static_cast<size_t>(input.result));
    for (const auto& [name, own] : own_rows_) {
      size_t first = outputs;
      if (own.kind != OwnRow::Kind::kResult) first += results;
      if (own.kind == OwnRow::Kind::kResultAdjoint) first += saved;
      inputs[name] = row_of(options_.calls, first + own.number);
    }
    return inputs;
  }

  const ClassGraph& from_;
  const ClassContext& context_;
  const ClassAdjointOptions& options_;
  std::string& why_;
  Block block_;
  LiveIns known_;
  std::map<std::string, NodeId> forward_values_;  // variables that hold values of the body
  std::map<std::string, NodeId> variables_;
  std::map<std::string, OwnRow> own_rows_;  // By variable of the backward graph.
  RecursiveAdjoint made_;
};

}  // namespace

std::optional<RecursiveAdjoint> DifferentiateClass(const ClassGraph& graph, const ClassContext& context,
                                                   const ClassAdjointOptions& options, std::string* why) {
  return ClassDifferentiator(graph, context, options, why).Run();
}

}  // namespace heddle::compiler

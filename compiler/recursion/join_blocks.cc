// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "compiler/gradient/single_assignment.h"
#include "compiler/optimize/pass.h"
#include "compiler/recursion/class_body.h"

namespace heddle::compiler {
namespace {

class Joiner {
 public:
  Joiner(const Recursion& recursion, const Function& function, const std::vector<bool>& decisions,
         const ClassContext& context, std::string* why)
      : recursion_(recursion), function_(function), decisions_(decisions), context_(context), why_(*why) {}

  std::optional<ClassGraph> Run() {
    if (!Visit(function_.body)) return std::nullopt;
    for (const Parameter& result : function_.results) {
      if (result.data_type == DataType::kList) continue;  // Keeps values for a derivative.
      if (recursion_.numbers.contains(result.name)) {
        out_.results.push_back(NextNumber(&out_.graph, ValueType::kDouble, {}));
        continue;
      }
      const auto found = variables_.find(result.name);
      if (found != variables_.end()) {
        out_.results.push_back(found->second.id);
      } else if (context_.parameters.contains(result.name)) {
        out_.results.push_back(Placeholder(result.name, context_.parameters.at(result.name).info));
      } else {
        why_ = fmt::format("result '{}' is not assigned on every way", result.name);
        return std::nullopt;
      }
    }
    return std::move(out_);
  }

 private:
  // What a variable of the function has been assigned so far.
  struct AssignedValue {
    NodeId id = kNoNode;  // In the joined graph.
    LiveIn known;
  };

  bool NextDecision() { return next_decision_ < decisions_.size() && decisions_[next_decision_++]; }

  bool Visit(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      switch (block.kind) {
        case Block::Kind::kBasic:
          if (!JoinBlock(block)) return false;
          break;
        case Block::Kind::kIf:
          if (!Visit(NextDecision() ? block.body : block.otherwise)) return false;
          break;
        case Block::Kind::kWhile:
        case Block::Kind::kFor:
          while (NextDecision())
            if (!Visit(block.body)) return false;
          break;
        case Block::Kind::kCall: JoinCall(block); break;
        case Block::Kind::kList:
          if (!JoinElement(block)) return false;
          break;
        case Block::Kind::kParallelFor: return false;
      }
    }
    return true;
  }

  void JoinCall(const Block& call) {
    for (size_t i = 0; i < call.results.size(); ++i) {
      if (call.results[i].empty() || i >= context_.children.size()) continue;  // The last may be a list.
      const std::string name = fmt::format("%child{}.{}", calls_made_, i);
      out_.inputs[name] = {ClassInput::Kind::kChildResult, calls_made_, static_cast<int32_t>(i)};
      variables_[call.results[i]] = {Placeholder(name, context_.children[i]),
                                     {context_.children[i], std::nullopt, nullptr}};
    }
    ++calls_made_;
  }

  // An element of a list is a variable of its own, or a row of a matrix that has all elements. Other steps on
  // lists save values for a derivative: batches save theirs in another way.
  bool JoinElement(const Block& step) {
    const bool as_matrix = step.operation == ListOperation::kAsMatrix;
    if (!as_matrix && step.operation != ListOperation::kAsScalar) return true;
    const std::string &list = ArgumentOf(step, "list"), &index = ArgumentOf(step, "from");
    Recursion::Element element{list, std::nullopt};
    const bool is_looked_up = recursion_.numbers.contains(index);
    if (!is_looked_up) {
      const auto found_value = variables_.find(index);
      if (found_value == variables_.end() || !found_value->second.known.value) return Refuse(step);
      element.key = found_value->second.known.value;
    }
    const auto given = context_.parameters.find(element.name());
    if (given == context_.parameters.end()) return Refuse(step);
    LiveIn known = given->second;
    if (!known.info.IsScalar() && !(known.info.IsMatrix() && known.info.format == Format::kDense))
      return Refuse(step);
    NodeId id = Placeholder(element.name(), known.info);
    if (is_looked_up) {
      const auto rows = context_.parameters.find(element.rows());
      if (rows == context_.parameters.end() || !rows->second.value) return Refuse(step);
      const int64_t height = std::max<int64_t>(rows->second.value->AsInteger(), 1);
      known.info.shape = {height, known.info.shape.columns / height};
      const NodeId number = NextNumber(&out_.graph, ValueType::kInteger, step.position);
      id = Add("index", {id, number, number, kNoNode, kNoNode}, known.info, step);
    }
    if (known.info.IsScalar() != !as_matrix) {
      if (!as_matrix && known.info.shape != Shape{1, 1}) return Refuse(step);
      ValueInfo info = ValueInfo::OfScalar(ValueType::kDouble);
      if (as_matrix) {
        info = ValueInfo::OfMatrix({1, 1});
        info.element_type = context_.element_type;
      }
      id = Add(as_matrix ? "as.matrix" : "as.scalar", {id}, info, step);
      known = {info, std::nullopt, nullptr};
    }
    if (!step.results[0].empty()) variables_[step.results[0]] = {id, std::move(known)};
    return true;
  }

  bool Refuse(const Block& step) {
    why_ = fmt::format("line {}: the element of the list is known only when it runs", step.position.line);
    return false;
  }

  NodeId Add(std::string_view op, std::vector<NodeId> inputs, const ValueInfo& info, const Block& step) {
    return out_.graph.Add(
        {.op = std::string(op), .inputs = std::move(inputs), .info = info, .position = step.position});
  }

  // The node of a variable of the joined graph, of which there is one.
  NodeId Placeholder(const std::string& name, const ValueInfo& info) {
    const auto [found, is_new] = placeholders_.try_emplace(name, kNoNode);
    if (is_new) {
      Node node = {.op = "variable", .info = info};
      node.SetAttribute("name", name);
      found->second = out_.graph.Add(std::move(node));
    }
    return found->second;
  }

  const LiveIn* Find(std::string_view name) const {
    if (const auto number = numbers_known_.find(name); number != numbers_known_.end()) return &number->second;
    if (const auto found_value = variables_.find(std::string(name)); found_value != variables_.end())
      return &found_value->second.known;
    const auto parameter = context_.parameters.find(name);
    return parameter == context_.parameters.end() ? nullptr : &parameter->second;
  }

  // The nodes of a block that are not part of the structure program. Numbers that they read of it are inputs.
  Graph OperatorsOf(const Block& block) {
    const Graph& graph = block.graph;
    const auto found = recursion_.given.find(block.id);
    static const std::vector<NodeId>* const kNone = new std::vector<NodeId>;
    const std::vector<NodeId>& given = found == recursion_.given.end() ? *kNone : found->second;
    const auto is_given = [&](NodeId id) { return std::find(given.begin(), given.end(), id) != given.end(); };
    std::vector<bool> is_read(graph.nodes.size(), false);
    for (NodeId id = graph.size(); id-- > 0;) {
      const Node& node = graph[id];
      if (node.Is("assign"))
        is_read[static_cast<size_t>(id)] = !recursion_.numbers.contains(node.Text("name"));
      if (!is_read[static_cast<size_t>(id)] || is_given(id)) continue;
      for (const NodeId input : node.inputs)
        if (input != kNoNode) is_read[static_cast<size_t>(input)] = true;
    }
    Graph operators;
    std::vector<NodeId> new_id(graph.nodes.size(), kNoNode);
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (is_given(id)) {
        new_id[static_cast<size_t>(id)] =
            NextNumber(&operators, graph[id].info.value_type, graph[id].position);
        continue;
      }
      if (!is_read[static_cast<size_t>(id)]) continue;
      Node node = graph[id];
      for (NodeId& input : node.inputs)
        if (input != kNoNode) input = new_id[static_cast<size_t>(input)];
      node.after.clear();
      new_id[static_cast<size_t>(id)] = operators.Add(std::move(node));
    }
    return operators;
  }

  // The next of the numbers that the structure program gives.
  NodeId NextNumber(Graph* graph, ValueType type, const SourcePosition& position) {
    const std::string name = fmt::format("%number{}", numbers_given_);
    out_.inputs[name] = {ClassInput::Kind::kNumber, numbers_given_++};
    const ValueInfo info =
        ValueInfo::OfScalar(type == ValueType::kInteger ? ValueType::kInteger : ValueType::kDouble);
    Node number = {.op = "variable", .info = info, .position = position};
    number.SetAttribute("name", name);
    numbers_known_[name] = {info, std::nullopt, nullptr};
    return graph->Add(std::move(number));
  }

  bool JoinBlock(const Block& block) {
    Graph operators = OperatorsOf(block);
    if (operators.nodes.empty()) return true;
    InferOutcome inferred = InferShapes(
        std::move(operators), [this](std::string_view name) { return Find(name); }, nullptr, nullptr,
        context_.element_type);
    if (!inferred.error.ok()) {
      why_ = inferred.error.message();
      return false;
    }
    for (const Node& node : inferred.graph.nodes)
      if (!IsPlain(node)) {
        why_ = WhyNotPlain(node);
        return false;
      }
    std::map<std::string, LiveIn> known;
    for (const Node& node : inferred.graph.nodes)
      if (node.Is("assign"))
        known[node.Text("name")] = {inferred.graph[node.inputs[0]].info,
                                    inferred.values[static_cast<size_t>(node.inputs[0])], nullptr};
    PassOptions passes;
    passes.infos_are_exact = true;
    passes.disabled = context_.disabled;
    Result<Graph> optimized = RunGraphPasses(std::move(inferred.graph), passes);
    if (!optimized.ok()) {
      why_ = optimized.status().message();
      return false;
    }
    Append(*optimized, std::move(known));
    return true;
  }

  void Append(const Graph& graph, std::map<std::string, LiveIn> known) {
    std::vector<NodeId> new_id(graph.nodes.size(), kNoNode);
    std::vector<std::pair<std::string, NodeId>> assigned;
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      if (node.Is("assign")) {
        assigned.emplace_back(node.Text("name"), new_id[static_cast<size_t>(node.inputs[0])]);
      } else if (node.Is("variable")) {
        const auto found_value = variables_.find(node.Text("name"));
        new_id[static_cast<size_t>(id)] = found_value != variables_.end()
                                              ? found_value->second.id
                                              : Placeholder(node.Text("name"), node.info);
      } else {
        Node copy = node;
        for (NodeId& input : copy.inputs)
          if (input != kNoNode) input = new_id[static_cast<size_t>(input)];
        copy.after.clear();
        new_id[static_cast<size_t>(id)] = out_.graph.Add(std::move(copy));
      }
    }
    for (const auto& [name, id] : assigned) variables_[name] = {id, std::move(known[name])};
  }

  const Recursion& recursion_;
  const Function& function_;
  const std::vector<bool>& decisions_;
  const ClassContext& context_;
  std::string& why_;
  size_t next_decision_ = 0;
  int32_t calls_made_ = 0, numbers_given_ = 0;
  std::map<std::string, AssignedValue> variables_;
  std::map<std::string, NodeId> placeholders_;
  std::map<std::string, LiveIn, std::less<>> numbers_known_;
  ClassGraph out_;
};

}  // namespace

bool IsPlain(const Node& node) {
  const ValueInfo& info = node.info;
  if (node.Is("literal") || node.Is("assign")) return true;
  if (info.IsScalar()) return info.value_type != ValueType::kString && info.value_type != ValueType::kUnknown;
  return info.IsMatrix() && info.shape.IsKnown() && info.format == Format::kDense;
}

std::string WhyNotPlain(const Node& node) {
  std::string what = node.op + "()";
  if (node.Is("variable")) {
    const std::string& name = node.Text("name");
    what = name.starts_with('%') ? "a value" : fmt::format("'{}'", NameInFunction(name));
  }
  const bool is_sparse = node.info.IsMatrix() && node.info.shape.IsKnown();
  return fmt::format("line {}: {} {}", node.position.line, what,
                     is_sparse ? "is sparse" : "has a size or a type that is known only when it runs");
}

std::optional<ClassGraph> JoinBlocks(const Recursion& recursion, const Function& function,
                                     const std::vector<bool>& decisions, const ClassContext& context,
                                     std::string* why) {
  return Joiner(recursion, function, decisions, context, why).Run();
}

}  // namespace heddle::compiler

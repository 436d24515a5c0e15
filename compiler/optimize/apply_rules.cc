// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <string_view>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "compiler/rules/rules.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Rounds over a graph until nothing changes; rules shrink what they match, so few are needed.
constexpr int kMostRounds = 20;

struct CompiledRule {
  const Rule* rule;
  Graph before;
  Graph after;
};

// By the operator of the root of `before`.
using RuleTable = std::map<std::string, std::vector<CompiledRule>, std::less<>>;

RuleTable Compile(std::span<const Rule> rules) {
  RuleTable table;
  for (const Rule& rule : rules) {
    CompiledRule compiled{&rule, CompilePattern(rule.before), CompilePattern(rule.after)};
    const std::string op = compiled.before[RootOf(compiled.before)].op;
    table[op].push_back(std::move(compiled));
  }
  return table;
}

// One round: rebuilds the graph node by node and tries the rules on each.
class Round {
 public:
  Round(const RuleTable& rules, const PassOptions& options)
      : rules_(rules), options_(options), inference_(nullptr) {}

  /// True if a rule was applied.
  bool Run(Graph* graph) {
    std::vector<int> readers(graph->nodes.size(), 0);
    for (const Node& node : graph->nodes)
      for (const NodeId input : node.inputs)
        if (input != kNoNode) ++readers[static_cast<size_t>(input)];
    std::vector<NodeId> new_ids(graph->nodes.size(), kNoNode), ordered_ids(new_ids);
    subject_.graph.nodes.reserve(graph->nodes.size());
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      Node& node = graph->nodes[i];
      for (NodeId& input : node.inputs)
        if (input != kNoNode) input = new_ids[static_cast<size_t>(input)];
      for (NodeId& earlier : node.after) earlier = ordered_ids[static_cast<size_t>(earlier)];
      NodeId id = Append(std::move(node), readers[i]);
      ordered_ids[i] = id;
      while (const std::optional<NodeId> other = TryRules(id)) {
        subject_.readers[static_cast<size_t>(*other)] += readers[i];
        if (IsOrdered(subject_.graph[id])) Forget(id);
        id = *other;
        changed_ = true;
        if (++applied_ > kMostApplied * graph->nodes.size()) break;
      }
      new_ids[i] = id;
    }
    *graph = std::move(subject_.graph);
    return changed_;
  }

 private:
  static constexpr size_t kMostApplied = 8;

  NodeId Append(Node node, int readers) {
    bool known = options_.infos_are_exact || (!node.Is("variable") && !ops::HasRole(node, ops::Role::kRead));
    for (const NodeId input : node.inputs)
      known = known && (input == kNoNode || subject_.format_is_known[static_cast<size_t>(input)]);
    subject_.format_is_known.push_back(known || node.info.IsScalar());
    subject_.readers.push_back(readers);
    values_.emplace_back();
    if (node.Is("literal")) values_.back() = *node.FindAttribute("value");
    return subject_.graph.Add(std::move(node));
  }

  // What may fail stays without readers, too (RemoveDeadNodes); a rule that replaces it knows that it does
  // not fail. What comes before it still comes before what comes after it.
  void Forget(NodeId id) {
    Node& node = subject_.graph[id];
    for (const NodeId input : node.inputs)
      if (input != kNoNode) --subject_.readers[static_cast<size_t>(input)];
    const SourcePosition position = node.position;
    std::vector<NodeId> after = std::move(node.after);
    node = Node();
    node.op = "literal";
    node.info = ValueInfo::OfScalar(ValueType::kBoolean);
    node.position = position;
    node.after = std::move(after);
    node.SetAttribute("value", Scalar(false));
  }

  std::optional<NodeId> TryRules(NodeId id) {
    const auto found = rules_.find(subject_.graph[id].op);
    if (found == rules_.end()) return std::nullopt;
    for (const CompiledRule& rule : found->second) {
      if (options_.disabled.contains(rule.rule->name)) continue;
      Match match(subject_);
      if (!match.Fit(rule.before, id, rule.rule->shared)) continue;
      if (rule.rule->condition != nullptr) {
        if (options_.sizes_matter != nullptr) *options_.sizes_matter = true;
        if (!rule.rule->condition(match)) continue;
      }
      if (const std::optional<NodeId> other = Build(rule.after, match)) return other;
    }
    return std::nullopt;
  }

  // An operator that the root has read and the right side has again is still what its place in the script
  // says, in an error above all; others stand for the root.
  const SourcePosition& PlaceOf(const Node& made, NodeId root) const {
    for (const NodeId input : subject_.graph[root].inputs)
      if (input != kNoNode && subject_.graph[input].op == made.op) return subject_.graph[input].position;
    return subject_.graph[root].position;
  }

  // Appends the right side. nullopt, and nothing appended, where it would be of another type, size or format.
  std::optional<NodeId> Build(const Graph& after, const Match& match) {
    const size_t before = subject_.graph.nodes.size();
    std::vector<NodeId> ids(after.nodes.size(), kNoNode);
    bool ok = true;
    for (NodeId i = 0; i + 1 < after.size() && ok; ++i) {
      const Node& node = after[i];
      NodeId& id = ids[static_cast<size_t>(i)];
      if (node.Is("variable")) {
        id = match.NodeOf(node.Text("name"));
      } else if (node.op == kContext) {
        id = BuildChain(match.Chain(node.Text("name")), ids[static_cast<size_t>(node.inputs[0])], &ok);
      } else {
        Node copy = node;
        copy.position = PlaceOf(copy, match.root());
        for (NodeId& input : copy.inputs)
          if (input != kNoNode) input = ids[static_cast<size_t>(input)];
        id = BuildNode(std::move(copy), &ok);
      }
    }
    const NodeId root = ids[static_cast<size_t>(RootOf(after))];
    if (ok && root != match.root() && IsSameValue(match, root)) return root;
    while (subject_.graph.nodes.size() > before) RemoveLast();
    return std::nullopt;
  }

  void RemoveLast() {
    for (const NodeId input : subject_.graph.nodes.back().inputs)
      if (input != kNoNode) --subject_.readers[static_cast<size_t>(input)];
    subject_.graph.nodes.pop_back();
    subject_.readers.pop_back();
    subject_.format_is_known.pop_back();
    values_.pop_back();
  }

  // The operators of a chain again, around another node inside.
  NodeId BuildChain(const std::vector<Match::Link>& chain, NodeId inside, bool* ok) {
    for (size_t i = chain.size(); i-- > 0 && *ok;) {
      Node copy = subject_.graph[chain[i].node];
      copy.inputs[chain[i].input] = inside;
      inside = BuildNode(std::move(copy), ok);
    }
    return inside;
  }

  // The readers of a new node are counted by those that follow; its inputs get one more.
  NodeId BuildNode(Node node, bool* ok) {
    for (const NodeId input : node.inputs)
      if (input != kNoNode) ++subject_.readers[static_cast<size_t>(input)];
    const NodeId id = Append(std::move(node), 0);
    if (!inference_.Infer(subject_.graph, values_, id).ok()) *ok = false;
    return id;
  }

  bool IsSameValue(const Match& match, NodeId other) const {
    const ValueInfo& a = subject_.graph[match.root()].info;
    const ValueInfo& b = subject_.graph[other].info;
    if (a.data_type != b.data_type || a.value_type != b.value_type || !(a.shape == b.shape)) return false;
    switch (a.data_type) {
      case DataType::kScalar: return true;
      case DataType::kMatrix: return a.format == b.format && match.KnowsFormats();
      case DataType::kUnknown:
      case DataType::kFrame:
      case DataType::kList:
      case DataType::kTuple: return false;  // No rule speaks of them.
    }
    HEDDLE_CHECK(false, "values of every type are the same or not");
  }

  const RuleTable& rules_;
  const PassOptions& options_;
  NodeInference inference_;
  RuleSubject subject_;
  std::vector<std::optional<Scalar>> values_;
  size_t applied_ = 0;
  bool changed_ = false;
};

Result<Graph> Apply(const RuleTable& rules, Graph graph, const PassOptions& options) {
  for (int round = 0; round < kMostRounds; ++round) {
    // Equal nodes are one, and nobody reads for nothing: both count in what a rule may match.
    HEDDLE_ASSIGN_OR_RETURN(graph, ShareCommonSubexpressions(std::move(graph), options));
    HEDDLE_ASSIGN_OR_RETURN(graph, RemoveDeadNodes(std::move(graph), options));
    if (!Round(rules, options).Run(&graph)) break;
  }
  return graph;
}

}  // namespace

Result<Graph> ApplyExactRules(Graph graph, const PassOptions& options) {
  static const RuleTable* const rules = new RuleTable(Compile(ExactRules()));
  return Apply(*rules, std::move(graph), options);
}

Result<Graph> ApplyOrderRules(Graph graph, const PassOptions& options) {
  static const RuleTable* const rules = new RuleTable(Compile(OrderRules()));
  return Apply(*rules, std::move(graph), options);
}

}  // namespace heddle::compiler

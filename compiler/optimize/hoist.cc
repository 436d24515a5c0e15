// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "ops/elementwise_codes.h"
#include "ops/operator.h"

// What moves: aggregates and matrix products all of whose inputs are the same in every round, with everything
// that only they read. What stays: cell-wise results and transposes, which cost no more to compute in passing
// than to read, generators, and products that a cell-wise operator reads, unless they are known to be small:
// a later rule may sample them (rules_order.cc).
//
// When: from the loop's predicate; from the body's straight-line code before its first effect, if the body is
// certain to run once. So nothing is computed that the script would not compute, and an error of a shape
// shows before the same output as without the pass.
namespace heddle::compiler {
namespace {

using Names = std::set<std::string, std::less<>>;
using Values = std::map<std::string, Scalar, std::less<>>;

void AddAssigned(const Block& block, Names* names) {
  if (block.kind == Block::Kind::kBasic)
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign")) names->insert(node.Text("name"));
  for (const std::string& result : block.results) names->insert(result);
  if (!block.variable.empty()) names->insert(block.variable);
  for (const std::vector<Block>* blocks : {&block.body, &block.otherwise})
    for (const Block& inner : *blocks) AddAssigned(inner, names);
}

bool IsLoop(const Block& block) {
  return block.kind == Block::Kind::kWhile || block.kind == Block::Kind::kFor ||
         block.kind == Block::Kind::kParallelFor;
}

bool IsEffect(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->effect;
}

bool IsProduct(const Node& node) { return node.op == "%*%" || node.op == "t%*%"; }

bool IsAggregate(const Node& node) {
  static const std::set<std::string_view> kFull = {"sum", "mean", "min", "max", "prod", "var", "sd", "trace"};
  const std::string_view op = node.op;
  return kFull.contains(op) || op.starts_with("rowIndex") ||
         ((op.starts_with("row") || op.starts_with("col")) && op.ends_with('s'));
}

bool IsCellWise(const Node& node) {
  return node.op == "ifelse" || ops::FindBinaryCode(node.op) || ops::FindUnaryCode(node.op);
}

// Moves what it can out of one graph of a loop into `hoisted`.
class GraphHoister {
 public:
  GraphHoister(Graph* graph, const Names& assigned, int32_t block_id)
      : graph_(*graph), assigned_(assigned), prefix_(fmt::format("%hoist{}_", block_id)) {}

  void Run(Graph* hoisted) {
    FindInvariant();
    while (ChooseRoots()) {
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (is_root_[static_cast<size_t>(id)]) Move(id, hoisted);
  }

 private:
  void FindInvariant() {
    is_invariant_.assign(graph_.nodes.size(), false);
    refused_.assign(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (IsEffect(node)) break;  // what follows might not be reached
      is_invariant_[static_cast<size_t>(id)] = IsInvariant(node);
    }
  }

  bool IsInvariant(const Node& node) const {
    if (node.Is("literal")) return true;
    if (node.Is("variable")) return !assigned_.contains(node.Text("name"));
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr || !op->pure || op->may_fail || node.Is("rand")) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
      return input == kNoNode || is_invariant_[static_cast<size_t>(input)];
    });
  }

  // A root is worth moving and read in the loop. True if a root had to be given up: what it needs stays in
  // the loop.
  bool ChooseRoots() {
    const size_t count = graph_.nodes.size();
    is_root_.assign(count, false);
    std::vector<bool> is_read(count, false), by_cells(count, false), stays(count, false);
    for (size_t i = count; i-- > 0;) {
      const Node& node = graph_.nodes[i];
      is_root_[i] = is_invariant_[i] && is_read[i] && !refused_[i] && IsWorthMoving(node, by_cells[i]);
      stays[i] = !is_root_[i] && (!is_invariant_[i] || is_read[i]);
      if (!stays[i]) continue;
      for (const NodeId input : node.inputs) {
        if (input == kNoNode) continue;
        is_read[static_cast<size_t>(input)] = true;
        if (IsCellWise(node)) by_cells[static_cast<size_t>(input)] = true;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (!is_root_[i] || !NeedsWhatStays(static_cast<NodeId>(i), stays)) continue;
      refused_[i] = true;
      return true;
    }
    return false;
  }

  bool NeedsWhatStays(NodeId root, const std::vector<bool>& stays) const {
    std::vector<NodeId> open = {root};
    std::vector<bool> seen(graph_.nodes.size(), false);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      for (const NodeId input : graph_[id].inputs) {
        if (input == kNoNode || seen[static_cast<size_t>(input)] || graph_[input].inputs.empty()) continue;
        if (stays[static_cast<size_t>(input)]) return true;
        seen[static_cast<size_t>(input)] = true;
        open.push_back(input);
      }
    }
    return false;
  }

  bool IsWorthMoving(const Node& node, bool is_read_by_cells) const {
    if (IsAggregate(node)) return graph_[node.inputs[0]].info.IsMatrix();
    if (!IsProduct(node)) return false;
    if (!is_read_by_cells) return true;
    const Shape& result = node.info.shape;
    const Shape &a = graph_[node.inputs[0]].info.shape, &b = graph_[node.inputs[1]].info.shape;
    return result.IsKnown() && a.IsKnown() && b.IsKnown() && result.Cells() <= std::max(a.Cells(), b.Cells());
  }

  void Move(NodeId root, Graph* hoisted) {
    const std::string name = fmt::format("{}{}", prefix_, root);
    Node assign;
    assign.op = "assign";
    assign.inputs = {Copy(root, hoisted)};
    assign.position = graph_[root].position;
    assign.info = graph_[root].info;
    assign.SetAttribute("name", name);
    hoisted->Add(std::move(assign));
    Node& node = graph_[root];
    node.op = "variable";
    node.inputs.clear();
    node.attributes.clear();
    node.SetAttribute("name", name);
  }

  // Roots are moved in their order, so a root inside another is a variable by then, which `hoisted` has as a
  // node.
  NodeId Copy(NodeId id, Graph* hoisted) {
    if (const auto known = copies_.find(id); known != copies_.end()) return known->second;
    Node node = graph_[id];
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = Copy(input, hoisted);
    return copies_[id] = hoisted->Add(std::move(node));
  }

  Graph& graph_;
  const Names& assigned_;
  const std::string prefix_;
  std::map<NodeId, NodeId> copies_;
  std::vector<bool> is_invariant_, is_root_, refused_;
};

class Hoister {
 public:
  explicit Hoister(Program* program) {
    ForEachBlock(program, [&](Block& block) { next_id_ = std::max(next_id_, block.id + 1); });
  }

  void Visit(std::vector<Block>& blocks) {
    Values values;  // of variables that straight-line code before has given one
    std::vector<Block> result;
    for (Block& block : blocks) {
      if (IsLoop(block)) {
        Graph hoisted = HoistFrom(block, values);
        if (!hoisted.nodes.empty()) {
          Block before;
          before.id = next_id_++;
          before.position = block.position;
          before.graph = std::move(hoisted);
          result.push_back(std::move(before));
        }
      }
      Follow(block, &values);
      result.push_back(std::move(block));
    }
    blocks = std::move(result);
  }

 private:
  static void Follow(const Block& block, Values* values) {
    Names assigned;
    AddAssigned(block, &assigned);
    for (const std::string& name : assigned) values->erase(name);
    if (block.kind != Block::Kind::kBasic) return;
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign") && block.graph[node.inputs[0]].Is("literal"))
        values->insert_or_assign(node.Text("name"), *block.graph[node.inputs[0]].FindAttribute("value"));
  }

  Graph HoistFrom(Block& loop, const Values& values) {
    Graph hoisted;
    Names assigned;
    AddAssigned(loop, &assigned);
    const bool runs = RunsOnce(loop, values);  // before its predicate changes
    const bool acts = std::any_of(loop.graph.nodes.begin(), loop.graph.nodes.end(), IsEffect);
    if (loop.kind == Block::Kind::kWhile) GraphHoister(&loop.graph, assigned, loop.id).Run(&hoisted);
    if (!runs || acts) return hoisted;
    for (Block& block : loop.body) {
      if (block.kind != Block::Kind::kBasic) break;
      GraphHoister(&block.graph, assigned, block.id).Run(&hoisted);
      if (std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(), IsEffect)) break;
    }
    return hoisted;
  }

  // True if the body is certain to run at least once.
  static bool RunsOnce(const Block& loop, const Values& values) {
    if (loop.kind != Block::Kind::kWhile)
      return !loop.has_increment;  // from:to counts down if it cannot count up
    LiveIns live_in;
    for (const Node& node : loop.graph.nodes) {
      if (!node.Is("variable")) continue;
      LiveIn& known = live_in[node.Text("name")];
      known.info = node.info;
      if (const auto value = values.find(node.Text("name")); value != values.end()) {
        known.info = ValueInfo::OfScalar(value->second.type());
        known.value = value->second;
      }
    }
    const InferOutcome outcome = InferShapes(loop.graph, live_in, nullptr);
    for (NodeId id = 0; outcome.error.ok() && id < outcome.graph.size(); ++id) {
      if (!outcome.graph[id].Is("assign")) continue;
      const std::optional<Scalar>& value = outcome.values[static_cast<size_t>(id)];
      return value && !value->IsString() && value->AsBoolean();
    }
    return false;
  }

  int32_t next_id_ = 0;
};

}  // namespace

Status HoistLoopInvariants(Program* program) {
  Hoister hoister(program);
  ForEachSequence(program, [&](std::vector<Block>& blocks) { hoister.Visit(blocks); });
  return OkStatus();
}

}  // namespace heddle::compiler

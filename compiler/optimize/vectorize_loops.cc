// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/vectorize_graph.h"

// A loop whose variable only picks rows (or only columns) of matrices is one pass over all of them: what it writes to row i depends
// on nothing that another round has written. Where the bounds are not known, the run decides: from:to counts down if it cannot count
// up, and such a loop stays as it is.
namespace heddle::compiler {
namespace {

bool IsFor(const Block& block) { return block.kind == Block::Kind::kFor || block.kind == Block::Kind::kParallelFor; }

// Variables that hold a number on every way to a place. A number that a loop adds to has no known type (0, then 0.5), but it is none
// of the strings that + would join.
class Numbers {
 public:
  const Names& names() const { return names_; }
  void Add(const std::string& name) { names_.insert(name); }
  void Follow(const Block& block) {
    if (block.kind == Block::Kind::kBasic) return FollowGraph(block.graph);
    for (const std::string& result : block.results) names_.erase(result);
    if (!block.variable.empty()) names_.insert(block.variable);
    if (block.kind == Block::Kind::kCall) return;
    // Whatever way is taken, however often: names that some way takes out are out until nothing changes.
    while (true) {
      const Names before = names_;
      for (const std::vector<Block>* blocks : {&block.body, &block.otherwise}) {
        Numbers inside = *this;
        for (const Block& inner : *blocks) inside.Follow(inner);
        std::erase_if(names_, [&](const std::string& name) { return !inside.names_.contains(name); });
      }
      if (names_ == before) return;
    }
  }

 private:
  void FollowGraph(const Graph& graph) {
    const Names before = names_;
    for (const Node& node : graph.nodes) {
      if (!node.Is("assign")) continue;
      if (IsNumber(graph, node.inputs[0], before))
        names_.insert(node.Text("name"));
      else
        names_.erase(node.Text("name"));
    }
  }

  Names names_;
};

class LoopVectorizer {
 public:
  explicit LoopVectorizer(Program* program) {
    ForEachBlock(program, [&](Block& block) { next_id_ = std::max(next_id_, block.id + 1); });
  }

  // Inner loops first: what becomes of them may be a row of the outer one.
  void Visit(std::vector<Block>& blocks, Numbers numbers) {
    if (blocks.empty()) return;
    std::vector<Block> result;
    for (Block& block : blocks) {
      numbers.Follow(block);  // What holds behind it holds in every round, too.
      Visit(block.body, numbers);
      Visit(block.otherwise, numbers);
      if (!IsFor(block) || !Replace(block, numbers, &result)) result.push_back(std::move(block));
    }
    blocks = std::move(result);
  }

 private:
  // Appends what the loop becomes; false if it stays.
  bool Replace(Block& loop, const Numbers& numbers, std::vector<Block>* blocks) {
    if (loop.body.size() != 1 || loop.body[0].kind != Block::Kind::kBasic) return false;
    if (loop.has_increment) {
      const Scalar* const increment = AssignedNumber(loop.graph, Block::kIncrement);
      if (increment == nullptr || increment->AsDouble() != 1) return false;
    }
    std::array<Node, 2> bounds;
    const std::array<const char*, 2> names = {Block::kFrom, Block::kTo};
    const Scalar* const from = AssignedNumber(loop.graph, Block::kFrom);
    const Scalar* const to = AssignedNumber(loop.graph, Block::kTo);
    const bool known = from != nullptr && to != nullptr;
    for (size_t k = 0; k < bounds.size(); ++k) {
      const Node* const assign = AssignOf(loop.graph, names[k]);
      if (assign == nullptr) return false;
      const Node& value = loop.graph[assign->inputs[0]];
      if (!value.info.IsScalar() || value.info.value_type != ValueType::kInteger) return false;
      bounds[k].position = value.position;
      bounds[k].info = value.info;
      if (known) {
        bounds[k].op = "literal";
        bounds[k].SetAttribute("value", k == 0 ? *from : *to);
      } else {
        bounds[k].op = "variable";
        bounds[k].SetAttribute("name", fmt::format("%vector{}_{}", loop.id, k == 0 ? "from" : "to"));
      }
    }
    if (known && from->AsInteger() > to->AsInteger()) return false;
    std::optional<Graph> graph = VectorizeBody(loop.body[0].graph, loop.variable, bounds[0], bounds[1], numbers.names());
    if (!graph) return false;
    Block whole = NewBlock(Block::Kind::kBasic, loop.body[0].position);
    whole.graph = *std::move(graph);
    if (known) {
      blocks->push_back(std::move(whole));
      return true;
    }
    Block before = NewBlock(Block::Kind::kBasic, loop.position);
    before.graph = std::move(loop.graph);
    for (Node& node : before.graph.nodes)
      for (size_t k = 0; k < bounds.size(); ++k)
        if (node.Is("assign") && node.Text("name") == names[k]) node.SetAttribute("name", bounds[k].Text("name"));
    std::erase_if(before.graph.nodes, [](const Node& node) { return node.Is("assign") && node.Text("name") == Block::kIncrement; });
    Block guard = NewBlock(Block::Kind::kIf, loop.position);
    guard.graph.nodes = {bounds[0], bounds[1]};
    Node up = {.op = "<=", .inputs = {0, 1}, .position = loop.position};
    up.info = ValueInfo::OfScalar(ValueType::kBoolean);
    guard.graph.Add(std::move(up));
    Node predicate = {.op = "assign", .inputs = {2}, .position = loop.position};
    predicate.info = guard.graph[2].info;
    predicate.SetAttribute("name", std::string(Block::kPredicate));
    guard.graph.Add(std::move(predicate));
    guard.body.push_back(std::move(whole));
    if (!loop.has_increment) {  // from:to counts down then; seq(from, to, 1) is empty.
      loop.graph.nodes = {bounds[0], bounds[1]};
      for (size_t k = 0; k < bounds.size(); ++k) {
        Node assign = {.op = "assign", .inputs = {static_cast<NodeId>(k)}, .position = loop.position};
        assign.info = bounds[k].info;
        assign.SetAttribute("name", std::string(names[k]));
        loop.graph.Add(std::move(assign));
      }
      guard.otherwise.push_back(std::move(loop));
    }
    blocks->push_back(std::move(before));
    blocks->push_back(std::move(guard));
    return true;
  }

  static const Node* AssignOf(const Graph& graph, std::string_view name) {
    for (const Node& node : graph.nodes)
      if (node.Is("assign") && node.Text("name") == name) return &node;
    return nullptr;
  }

  Block NewBlock(Block::Kind kind, const SourcePosition& position) {
    Block block;
    block.kind = kind;
    block.id = next_id_++;
    block.position = position;
    return block;
  }

  int32_t next_id_ = 0;
};

}  // namespace

Status VectorizeLoops(Program* program) {
  LoopVectorizer vectorizer(program);
  vectorizer.Visit(program->main, {});
  for (auto& [name, function] : program->functions) {
    Numbers numbers;
    for (const Parameter& parameter : function.parameters)
      if (parameter.data_type == DataType::kScalar && IsNumeric(parameter.value_type)) numbers.Add(parameter.name);
    vectorizer.Visit(function.body, std::move(numbers));
  }
  return OkStatus();
}

}  // namespace heddle::compiler

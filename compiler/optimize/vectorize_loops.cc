// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/vectorize_graph.h"

// A loop whose variable only picks rows (or only columns) of matrices is one pass over all of them: what it
// writes to row i depends on nothing that another round has written. Where the bounds are not known, the run
// decides: from:to counts down if it cannot count up, and such a loop stays as it is.
namespace heddle::compiler {
namespace {

bool IsFor(const Block& block) {
  return block.kind == Block::Kind::kFor || block.kind == Block::Kind::kParallelFor;
}

// Variables that hold a number on every way to a place. A number that a loop adds to has no known type (0,
// then 0.5), but it is none of the strings that + would join.
class Numbers {
 public:
  const SharedNames& names() const { return names_; }
  void Add(const std::string& name) { names_.insert(name); }
  void Follow(const Block& block) {
    if (block.kind == Block::Kind::kBasic) return FollowGraph(block.graph);
    for (const std::string& result : block.results) names_.erase(result);
    if (!block.variable.empty() && !block.has_increment)
      names_.insert(block.variable);  // seq() may be empty.
    if (block.kind == Block::Kind::kCall) return;
    // Whatever way is taken, however often: names that some way takes out are out until nothing changes.
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::vector<Block>* blocks : {&block.body, &block.otherwise}) {
        Numbers inside = *this;
        for (const Block& inner : *blocks) inside.Follow(inner);
        changed |= names_.KeepThoseOf(inside.names_);
      }
    }
  }

 private:
  void FollowGraph(const Graph& graph) {
    const SharedNames before = names_;
    for (const Node& node : graph.nodes) {
      if (!node.Is("assign")) continue;
      if (IsNumber(graph, node.inputs[0], before))
        names_.insert(node.Text("name"));
      else
        names_.erase(node.Text("name"));
    }
  }

  SharedNames names_;
};

class LoopVectorizer {
 public:
  explicit LoopVectorizer(Program* program) : new_blocks_(program) {}

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
    const std::optional<LoopRange> range = RangeOf(loop);
    if (range ? range->is_empty || range->step != 1 : !CountsUpByOne(loop)) return false;
    const std::array<const char*, 2> names = {Block::kFrom, Block::kTo};
    std::array<Node, 2> bounds;
    for (size_t k = 0; k < bounds.size(); ++k) {
      bounds[k] = {.op = range ? "literal" : "variable",
                   .info = ValueInfo::OfScalar(ValueType::kInteger),
                   .position = loop.position};
      if (range)
        bounds[k].SetAttribute("value", Scalar(k == 0 ? range->first : range->last));
      else
        bounds[k].SetAttribute("name", fmt::format("%vector{}_{}", loop.id, k == 0 ? "from" : "to"));
    }
    std::optional<Graph> graph =
        VectorizeBody(loop.body[0].graph, loop.variable, bounds[0], bounds[1], numbers.names());
    if (!graph) return false;
    Block whole = new_blocks_.Make(Block::Kind::kBasic, loop.body[0].position);
    whole.graph = *std::move(graph);
    if (range) {
      blocks->push_back(std::move(whole));
      return true;
    }
    Block before = new_blocks_.Make(Block::Kind::kBasic, loop.position);
    before.graph = std::move(loop.graph);
    std::erase_if(before.graph.nodes, [](const Node& node) {
      return node.Is("assign") && node.Text("name") == Block::kIncrement;
    });
    for (Node& node : before.graph.nodes)
      for (size_t k = 0; k < bounds.size(); ++k)
        if (node.Is("assign") && node.Text("name") == names[k])
          node.SetAttribute("name", bounds[k].Text("name"));
    Block guard = new_blocks_.Make(Block::Kind::kIf, loop.position);
    guard.graph.nodes = {bounds[0], bounds[1]};
    guard.graph.Add({.op = "<=",
                     .inputs = {0, 1},
                     .info = ValueInfo::OfScalar(ValueType::kBoolean),
                     .position = loop.position});
    Assign(Block::kPredicate, 2, &guard.graph);
    guard.body.push_back(std::move(whole));
    if (!loop.has_increment) {  // from:to counts down then; seq(from, to, 1) is empty.
      loop.graph.nodes = {bounds[0], bounds[1]};
      for (size_t k = 0; k < bounds.size(); ++k) Assign(names[k], static_cast<NodeId>(k), &loop.graph);
      guard.otherwise.push_back(std::move(loop));
    }
    blocks->push_back(std::move(before));
    blocks->push_back(std::move(guard));
    return true;
  }

  // Bounds are whole numbers that the run knows; the step is 1 where it is upwards.
  static bool CountsUpByOne(const Block& loop) {
    const auto is_whole = [&](const Node& node) {
      const ValueInfo& info = loop.graph[node.inputs[0]].info;
      return info.IsScalar() && info.value_type == ValueType::kInteger;
    };
    for (const Node& node : loop.graph.nodes)
      if (node.Is("assign") && node.Text("name") != Block::kIncrement && !is_whole(node)) return false;
    if (!loop.has_increment) return true;
    const Scalar* const increment = AssignedNumber(loop.graph, Block::kIncrement);
    return increment != nullptr && increment->AsDouble() == 1;
  }

  static void Assign(const char* name, NodeId value, Graph* graph) {
    Node assign = {.op = "assign",
                   .inputs = {value},
                   .info = (*graph)[value].info,
                   .position = (*graph)[value].position};
    assign.SetAttribute("name", std::string(name));
    graph->Add(std::move(assign));
  }

  NewBlocks new_blocks_;
};

}  // namespace

Status VectorizeLoops(Program* program) {
  LoopVectorizer vectorizer(program);
  Numbers before;
  for (const GivenVariable& given : program->given)
    if (given.info.IsScalar() && IsNumeric(given.info.value_type)) before.Add(given.name);
  vectorizer.Visit(program->main, std::move(before));
  for (auto& [name, function] : program->functions) {
    Numbers numbers;
    for (const Parameter& parameter : function.parameters)
      if (parameter.data_type == DataType::kScalar && IsNumeric(parameter.value_type))
        numbers.Add(parameter.name);
    vectorizer.Visit(function.body, std::move(numbers));
  }
  return OkStatus();
}

}  // namespace heddle::compiler

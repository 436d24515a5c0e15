// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "compiler/optimize/defined.h"
#include "compiler/optimize/hoist_graph.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/shared_map.h"
#include "compiler/optimize/storage.h"
#include "core/programs/for_each_block.h"

// What moves: aggregates, matrix products and cell-wise functions (exp, log, ...) all of whose inputs are the
// same in every round, with everything that only they read. What stays: other cell-wise results and
// transposes, which cost no more to compute in passing than to read; generators; functions that are
// multiplied by a matrix, which may be sparse and need few of their cells; and products that a cell-wise
// operator reads, unless they are known to be small: a later rule may sample them (rules_order.cc).
//
// When: from the loop's predicate, and from the straight-line code of the body. Nothing is computed that the
// script would not compute: where a while loop is not certain to run, what was in its body goes behind the
// loop's predicate, computed once more for that. An error shows behind the same output as without the pass:
// what stood behind an effect, or behind a block that may hold one, moves only if it cannot fail.
namespace heddle::compiler {
namespace {

void AddAssigned(const Block& block, Names* names) {
  ForEachBlock(block, [&](const Block& inner) {
    ForEachAssigned(inner, [&](const std::string& name) { names->insert(name); });
  });
}

// What holds at a place in the program.
struct Known {
  SharedMap<Scalar> values;  // that straight-line code before gave to variables
  SharedNames defined;       // variables that have a value on every way here
};

class Hoister {
 public:
  explicit Hoister(Program* program) : new_blocks_(program) {}

  // Inner loops first: what leaves them may leave the outer one, too.
  void Visit(std::vector<Block>& blocks, Known known) {
    std::vector<Block> result;
    for (Block& block : blocks) {
      VisitInside(block, known);
      if (IsLoop(block)) HoistFrom(block, known, &result);
      Follow(block, &known);
      result.push_back(std::move(block));
    }
    blocks = std::move(result);
  }

 private:
  void VisitInside(Block& block, const Known& known) {
    if (block.body.empty() && block.otherwise.empty()) return;
    Known inside = known;
    if (IsLoop(block)) Forget(block, &inside);
    if (!block.variable.empty()) inside.defined.insert(block.variable);
    Visit(block.body, inside);
    Visit(block.otherwise, std::move(inside));
  }

  static void Forget(const Block& block, Known* known) {
    Names assigned;
    AddAssigned(block, &assigned);
    for (const std::string& name : assigned) known->values.erase(name);
  }

  static void Follow(const Block& block, Known* known) {
    Forget(block, known);
    FollowDefined(block, &known->defined);
    if (block.kind != Block::Kind::kBasic) return;
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign") && block.graph[node.inputs[0]].Is("literal"))
        known->values[node.Text("name")] = *block.graph[node.inputs[0]].FindAttribute("value");
  }

  // Appends what goes before the loop.
  void HoistFrom(Block& loop, const Known& known, std::vector<Block>* before) {
    Names changing;
    AddAssigned(loop, &changing);
    HoistContext context{changing, known.defined};
    const bool runs = RunsOnce(loop, known);  // before its predicate changes
    Graph hoisted;
    if (loop.kind == Block::Kind::kWhile) HoistFromBlock(&loop, &context, &hoisted);
    if (runs) {
      HoistFromBody(&loop, &context, &hoisted);
      AppendBlock(std::move(hoisted), loop, before);
      return;
    }
    AppendBlock(std::move(hoisted), loop, before);
    if (loop.kind != Block::Kind::kWhile || !CanRepeat(loop.graph)) return;
    Graph guarded;
    HoistFromBody(&loop, &context, &guarded);
    if (guarded.nodes.empty()) return;
    Block guard = new_blocks_.Make(Block::Kind::kIf, loop.position);
    guard.graph = loop.graph;
    AppendBlock(std::move(guarded), loop, &guard.body);
    before->push_back(std::move(guard));
  }

  static void HoistFromBlock(Block* block, HoistContext* context, Graph* hoisted) {
    HoistFromGraph(&block->graph, context, fmt::format("%hoist{}_", block->id), hoisted);
  }

  static void HoistFromBody(Block* loop, HoistContext* context, Graph* hoisted) {
    for (Block& block : loop->body) {
      if (block.kind == Block::Kind::kBasic) {
        HoistFromBlock(&block, context, hoisted);
      } else {
        context->certain = false;
      }
    }
  }

  void AppendBlock(Graph graph, const Block& loop, std::vector<Block>* blocks) {
    if (graph.nodes.empty()) return;
    blocks->push_back(new_blocks_.Make(Block::Kind::kBasic, loop.position));
    blocks->back().graph = std::move(graph);
  }

  // True if the body is certain to run at least once.
  static bool RunsOnce(const Block& loop, const Known& before) {
    if (loop.kind != Block::Kind::kWhile) {
      const std::optional<LoopRange> range = RangeOf(loop);
      return !loop.has_increment || (range && !range->is_empty);
    }
    LiveIns live_in;
    for (const Node& node : loop.graph.nodes) {
      if (!node.Is("variable")) continue;
      LiveIn& known = live_in[node.Text("name")];
      known.info = node.info;
      if (const Scalar* const value = before.values.Find(node.Text("name")); value != nullptr) {
        known.info = ValueInfo::OfScalar(value->type());
        known.value = *value;
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

  NewBlocks new_blocks_;
};

}  // namespace

Status HoistLoopInvariants(Program* program) {
  Hoister hoister(program);
  Known before;
  for (const GivenVariable& given : program->given) before.defined.insert(given.name);
  hoister.Visit(program->main, std::move(before));
  for (auto& [name, function] : program->functions) {
    Known known;
    for (const Parameter& parameter : function.parameters) known.defined.insert(parameter.name);
    hoister.Visit(function.body, std::move(known));
  }
  return OkStatus();
}

}  // namespace heddle::compiler

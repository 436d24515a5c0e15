// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/liveness.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "core/programs/for_each_block.h"

namespace heddle::compiler {
namespace {

// What a visit does besides following the variables.
enum class Action { kFollow, kMark, kRemove };

void AddReads(const Graph& graph, SharedNames* names) {
  for (const Node& node : graph.nodes)
    if (node.Is("variable")) names->insert(node.Text("name"));
}

class Liveness {
 public:
  explicit Liveness(Action action, Graph (*sweep)(Graph) = nullptr) : action_(action), sweep_(sweep) {}

  void Visit(std::vector<Block>& blocks, SharedNames& live) {
    for (size_t i = blocks.size(); i-- > 0;) VisitBlock(blocks[i], live);
  }
  bool changed() const { return changed_; }

 private:
  void VisitBlock(Block& block, SharedNames& live) {
    Names made;  // by this block; control blocks: by the blocks inside
    const SharedNames after = action_ == Action::kMark ? live : SharedNames();
    switch (block.kind) {
      case Block::Kind::kBasic: VisitBasic(block, live, made); break;
      case Block::Kind::kCall:
      case Block::Kind::kList:
        for (std::string& result : block.results) {
          if (result.empty()) continue;
          if (action_ == Action::kRemove && !live.contains(result)) {
            result.clear();
            changed_ = true;
            continue;
          }
          made.insert(result);
        }
        // A list that nothing reads is not made: its step becomes an empty block. Files are read and written
        // all the same.
        if (block.kind == Block::Kind::kList && block.operation != ListOperation::kRead &&
            block.operation != ListOperation::kWrite && action_ == Action::kRemove && made.empty()) {
          Block empty{.id = block.id, .position = std::move(block.position)};
          block = std::move(empty);
          break;
        }
        for (const std::string& result : made) live.erase(result);
        ForEachArguments(block, [&](const auto& arguments) {
          for (const auto& [parameter, variable] : arguments) live.insert(variable);
        });
        for (const std::string& name : {block.selector, block.first_argument})
          if (!name.empty()) live.insert(name);
        break;
      case Block::Kind::kIf: {
        SharedNames otherwise = live;
        Visit(block.body, live);
        Visit(block.otherwise, otherwise);
        live.AddAllOf(otherwise);
        AddReads(block.graph, &live);
        break;
      }
      case Block::Kind::kWhile:
        AddReads(block.graph, &live);
        VisitLoop(block, live);
        break;
      case Block::Kind::kFor:
      case Block::Kind::kParallelFor:
        VisitLoop(block, live);
        for (const std::string& name : block.natural)
          if (name != block.variable) live.insert(name);
        made.insert(block.variable);
        AddReads(block.graph, &live);
        break;
    }
    if (action_ != Action::kMark) return;
    for (const std::string& name : live.Beside(after)) made.insert(name);
    block.dead_after.clear();
    for (const std::string& name : made)
      if (!after.contains(name)) block.dead_after.push_back(name);
    for (const std::string& name : block.locals)
      if (after.contains(name)) block.dead_after.push_back(name);
  }

  void VisitBasic(Block& block, SharedNames& live, Names& made) {
    if (action_ == Action::kRemove) {
      RemoveUnread(block.graph, live);
      Sweep(block.graph);
    }
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign")) made.insert(node.Text("name"));
    for (const std::string& name : made) live.erase(name);
    AddReads(block.graph, &live);
  }

  void RemoveUnread(Graph& graph, const SharedNames& live) {
    std::vector<NodeId> itself(graph.nodes.size());
    std::iota(itself.begin(), itself.end(), 0);
    std::vector<bool> keep(graph.nodes.size(), true);
    for (NodeId id = 0; id < graph.size(); ++id)
      keep[static_cast<size_t>(id)] = !graph[id].Is("assign") || live.contains(graph[id].Text("name"));
    if (std::find(keep.begin(), keep.end(), false) == keep.end()) return;
    graph = Compact(std::move(graph), itself, keep);
    changed_ = true;
  }

  void Sweep(Graph& graph) {
    if (sweep_ == nullptr) return;
    const size_t before = graph.nodes.size();
    graph = sweep_(std::move(graph));
    changed_ |= graph.nodes.size() < before;
  }

  // `live`: on entry what is live behind the loop (or read by its predicate), on return what is live at its
  // head. f(x) = exposed + (x - killed) is the effect of the body, so the least solution of head = behind +
  // f(head) is behind + exposed: no iteration is needed.
  void VisitLoop(Block& block, SharedNames& live) {
    live.AddAllOf(ExposedReads(block));
    if (action_ == Action::kFollow) return;
    SharedNames end_of_body = live;
    Visit(block.body, end_of_body);
  }

  // Variables that a round of the loop reads before it assigns them. Remembered: loops may be nested deeply.
  const SharedNames& ExposedReads(Block& block) {
    auto found = exposed_.find(block.id);
    if (found != exposed_.end()) return found->second;
    const Action action = std::exchange(action_, Action::kFollow);
    SharedNames exposed;
    Visit(block.body, exposed);
    if (block.kind != Block::Kind::kWhile) exposed.erase(block.variable);
    action_ = action;
    return exposed_.emplace(block.id, std::move(exposed)).first->second;
  }

  Action action_;
  Graph (*sweep_)(Graph);
  std::map<int32_t, SharedNames> exposed_;  // by the id of the loop
  bool changed_ = false;
};

// A bound that the run accepts, whatever its value.
bool IsWhole(const ValueInfo& info) { return info.IsScalar() && info.value_type == ValueType::kInteger; }

// What a for loop without a body leaves: the last value of its variable. nullopt where it might fail instead.
// A while loop without a body ends at once or never; it stays.
std::optional<Graph> WithoutRounds(const Block& loop) {
  if (loop.kind != Block::Kind::kFor && loop.kind != Block::Kind::kParallelFor) return std::nullopt;
  Graph graph;
  if (const std::optional<LoopRange> range = RangeOf(loop)) {
    if (range->is_empty) return graph;
    Node last;
    last.op = "literal";
    last.SetAttribute("value", Scalar(range->last));
    last.info = ValueInfo::OfScalar(ValueType::kInteger);
    last.position = loop.position;
    Node assign = last;
    assign.op = "assign";
    assign.inputs = {graph.Add(std::move(last))};
    assign.attributes.clear();
    assign.SetAttribute("name", loop.variable);
    graph.Add(std::move(assign));
    return graph;
  }
  if (loop.has_increment) return std::nullopt;
  graph = loop.graph;  // from:to ends at `to`
  std::vector<NodeId> itself(graph.nodes.size());
  std::iota(itself.begin(), itself.end(), 0);
  std::vector<bool> keep(graph.nodes.size(), true);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!graph[id].Is("assign")) continue;
    if (!IsWhole(graph[id].info)) return std::nullopt;
    keep[static_cast<size_t>(id)] = graph[id].Text("name") == Block::kTo;
    graph[id].SetAttribute("name", loop.variable);
  }
  return Compact(std::move(graph), itself, keep);
}

// True if a loop went: its variable may be unread.
bool RemoveEmptyBlocks(std::vector<Block>* blocks) {
  bool changed = false;
  for (Block& block : *blocks) {
    changed |= RemoveEmptyBlocks(&block.body);
    changed |= RemoveEmptyBlocks(&block.otherwise);
    if (!block.body.empty()) continue;
    std::optional<Graph> graph = WithoutRounds(block);
    if (!graph) continue;
    Block last;
    last.id = block.id;
    last.position = block.position;
    last.graph = *std::move(graph);
    block = std::move(last);
    changed = true;
  }
  std::erase_if(*blocks, [](const Block& block) {
    return block.kind == Block::Kind::kBasic && block.graph.nodes.empty();
  });
  return changed;
}

SharedNames ResultsOf(const Function& function) {
  SharedNames results;
  for (const Parameter& result : function.results) results.insert(result.name);
  return results;
}

// The bodies of a program with what is live behind them.
template <typename Visit>
void ForEachBody(Program* program, const Visit& visit) {
  SharedNames kept;
  for (const std::string& name : program->kept) kept.insert(name);
  visit(&program->main, kept);
  for (auto& [name, function] : program->functions) visit(&function.body, ResultsOf(function));
}

}  // namespace

bool VisitLiveness(std::vector<Block>* blocks, SharedNames* live, bool mark, Graph (*sweep)(Graph)) {
  Liveness liveness(mark ? Action::kMark : Action::kRemove, sweep);
  liveness.Visit(*blocks, *live);
  return liveness.changed();
}

Status RemoveUnreadAssignments(Program* program) {
  Status status;
  for (bool changed = true; changed && status.ok();) {
    changed = false;
    ForEachBody(program, [&](std::vector<Block>* blocks, SharedNames live) {
      changed |= VisitLiveness(blocks, &live, false);
    });
    ForEachBlock(*program, [&](Block& block) {
      Result<Graph> graph = RemoveDeadNodes(std::move(block.graph), PassOptions());
      if (graph.ok()) {
        block.graph = *std::move(graph);
      } else {
        status = graph.status();
      }
    });
    ForEachBody(program, [&](std::vector<Block>* blocks, const SharedNames&) {
      changed |= RemoveEmptyBlocks(blocks);
    });
  }
  return status;
}

Status MarkDeadVariables(Program* program) {
  ForEachBody(program,
              [](std::vector<Block>* blocks, SharedNames live) { VisitLiveness(blocks, &live, true); });
  return OkStatus();
}

}  // namespace heddle::compiler

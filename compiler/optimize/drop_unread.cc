// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/infer.h"
#include "compiler/optimize/liveness.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"

// A value that no later statement names is not computed, so it cannot fail (language reference 2.8). This is
// what the script means, not how fast it runs: it is decided on the program as it is written, before a
// rewrite removes or adds readers, and whatever passes run. What acts (print, write, stop, assert) stays with
// all it needs; so does what looks at the world outside (a missing file is told even if nobody reads it).
// nrow, ncol and length of a matrix whose size is known do not read it.
namespace heddle::compiler {
namespace {

// Functions get a copy for each choice of results that some call reads, up to so many; further calls compute
// all.
constexpr int kMostCopies = 16;

bool Acts(const Node& node) {
  const ops::Operator* op = ops::FindOperator(node.op);
  return op != nullptr && op->effect;
}

Graph WithoutUnread(Graph graph) {
  std::vector<NodeId> itself(graph.nodes.size());
  std::iota(itself.begin(), itself.end(), 0);
  std::vector<bool> keep(graph.nodes.size(), false);
  for (NodeId id = graph.size(); id-- > 0;) {
    Node& node = graph[id];
    if (!keep[static_cast<size_t>(id)] && !node.Is("assign") && !Acts(node) && !LooksOutside(node)) continue;
    keep[static_cast<size_t>(id)] = true;
    if (node.inputs.size() == 1 && graph[node.inputs[0]].info.IsMatrix()) {
      if (const std::optional<Scalar> size = SizeOf(node.op, graph[node.inputs[0]].info.shape)) {
        node.op = "literal";
        node.inputs.clear();
        node.SetAttribute("value", *size);
      }
    }
    for (NodeId input : node.inputs)
      if (input != kNoNode) keep[static_cast<size_t>(input)] = true;
  }
  return Compact(std::move(graph), itself, keep);
}

class UnreadDropper {
 public:
  explicit UnreadDropper(Program* program)
      : program_(*program), new_blocks_(program), originals_(std::move(program->functions)) {
    program_.functions.clear();
  }

  // From the main program on: what its calls read is what the functions have to compute.
  void Run() {
    FindActing();
    Drop(&program_.main, Names(program_.kept.begin(), program_.kept.end()));
    while (!open_.empty()) {
      const Copy copy = std::move(open_.back());
      open_.pop_back();
      Function function = originals_.at(copy.original);
      if (copy.name != copy.original)
        ForEachBlock(function.body, [&](Block& block) { block.id = new_blocks_.NextId(); });
      std::erase_if(function.results,
                    [&](const Parameter& result) { return !copy.read.contains(result.name); });
      Drop(&function.body, copy.read);
      program_.functions.emplace(copy.name, std::move(function));
    }
    for (auto& [name, function] : originals_) program_.functions.try_emplace(name, std::move(function));
  }

 private:
  struct Copy {
    std::string name;
    std::string original;
    Names read;  // Results.
  };

  // Functions that act, and those that call them.
  void FindActing() {
    std::map<std::string, std::vector<std::string>> callers;
    std::vector<std::string> found;
    for (auto& [name, function] : originals_) {
      bool acts = false;
      ForEachBlock(function.body, [&](Block& block) {
        acts |= std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(), Acts);
        ForEachCallee(block, [&](const std::string& callee, const auto&) {
          acts |= !originals_.contains(callee);
          if (callee == name) recursive_.insert(name);
          callers[callee].push_back(name);
        });
      });
      if (acts) found.push_back(name);
    }
    while (!found.empty()) {
      const std::string name = std::move(found.back());
      found.pop_back();
      if (!acting_.insert(name).second) continue;
      for (const std::string& caller : callers[name]) found.push_back(caller);
    }
  }

  // `results`: what is read behind the blocks.
  void Drop(std::vector<Block>* blocks, const Names& results) {
    SharedNames at_end;
    for (const std::string& result : results) at_end.insert(result);
    for (bool changed = true; changed;) {
      SharedNames live = at_end;
      changed = VisitLiveness(blocks, &live, false, WithoutUnread);
      ForEachBlock(*blocks, [&](Block& block) {
        if (block.kind == Block::Kind::kCall) changed |= DropCall(&block);
        if (block.kind == Block::Kind::kBasic) return;
        const size_t before = block.graph.nodes.size();
        block.graph = WithoutUnread(std::move(block.graph));
        changed |= block.graph.nodes.size() < before;
      });
    }
    EraseEmpty(blocks);
    ForEachBlock(*blocks, [&](Block& block) {
      if (block.kind == Block::Kind::kCall) CallCopy(&block);
    });
  }

  // A call none of whose results is read becomes an empty block.
  bool DropCall(Block* call) const {
    const bool is_read = std::any_of(call->results.begin(), call->results.end(),
                                     [](const std::string& result) { return !result.empty(); });
    if (is_read) return false;
    bool acts = false;
    ForEachCallee(*call, [&](const std::string& function, const auto&) {
      acts |= !originals_.contains(function) || acting_.contains(function);
    });
    if (acts) return false;
    Block empty;
    empty.id = call->id;
    empty.position = call->position;
    *call = std::move(empty);
    return true;
  }

  static void EraseEmpty(std::vector<Block>* blocks) {
    for (Block& block : *blocks) {
      EraseEmpty(&block.body);
      EraseEmpty(&block.otherwise);
    }
    std::erase_if(*blocks, [](const Block& block) {
      return block.kind == Block::Kind::kBasic && block.graph.nodes.empty();
    });
  }

  // Lets the call have the copy of its function that computes what it reads. Candidates differ in what they
  // return: of those it takes copies with all results. So it does of a function that calls itself: a copy of
  // its outermost call alone would no longer be one (docs/recursion.md).
  void CallCopy(Block* call) {
    const bool reads_all = !call->candidates.empty() || call->gives_list;
    ForEachCallee(*call, [&](std::string& function, const auto&) {
      const auto original = originals_.find(function);
      if (original == originals_.end()) return;
      const std::vector<Parameter>& results = original->second.results;
      const bool reads_all_of_it = reads_all || recursive_.contains(function) ||
                                   static_cast<int>(copies_[function].size()) >= kMostCopies;
      Names read;
      for (size_t i = 0; i < results.size(); ++i)
        if (reads_all_of_it || (i < call->results.size() && !call->results[i].empty()))
          read.insert(results[i].name);
      if (!reads_all_of_it) std::erase(call->results, std::string());
      function = CopyOf(function, std::move(read));
    });
  }

  std::string CopyOf(const std::string& function, Names read) {
    std::vector<Copy>& copies = copies_[function];
    auto copy =
        std::find_if(copies.begin(), copies.end(), [&](const Copy& made) { return made.read == read; });
    if (copy == copies.end()) {
      const std::string name = copies.empty() ? function : fmt::format("{}%{}", function, copies.size());
      copy = copies.insert(copies.end(), {name, function, std::move(read)});
      open_.push_back(*copy);
    }
    return copy->name;
  }

  Program& program_;
  NewBlocks new_blocks_;
  std::map<std::string, Function> originals_;
  std::set<std::string> acting_, recursive_;
  std::map<std::string, std::vector<Copy>> copies_;  // By original.
  std::vector<Copy> open_;                           // Not made yet.
};

}  // namespace

Status DropUnreadValues(Program* program) {
  UnreadDropper(program).Run();
  return OkStatus();
}

}  // namespace heddle::compiler

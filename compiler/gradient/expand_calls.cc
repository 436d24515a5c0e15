// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/expand_calls.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/pass.h"
#include "compiler/optimize/rewrite.h"
#include "core/programs/for_each_block.h"

namespace heddle::compiler {
namespace {

// Bodies that stand for calls, at most: more are left calls.
constexpr int kMostExpanded = 200;

void AddCallees(const std::vector<Block>& blocks, std::set<std::string>* callees) {
  ForEachBlock(blocks, [&](const Block& block) {
    ForEachCallee(block, [&](const std::string& function, const auto&) { callees->insert(function); });
  });
}

std::set<std::string> Reached(const Program& program, const std::string& from) {
  std::vector<std::string> open = {from};
  std::set<std::string> reached;
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto function = program.functions.find(name);
    if (function == program.functions.end()) continue;
    std::set<std::string> callees;
    AddCallees(function->second.body, &callees);
    for (const std::string& callee : callees)
      if (reached.insert(callee).second) open.push_back(callee);
  }
  return reached;
}

// Arguments of bodies that stand for calls are copies. Where neither a copy nor what it is of ever changes,
// the copy is read as that: loops then pass on what they do not change.
class CopyReader {
 public:
  explicit CopyReader(Function* function) : function_(*function) {
    for (const Parameter& parameter : function_.parameters) ++assignments_[parameter.name];
    ForEachBlock(function_.body, [&](Block& block) {
      if (!block.variable.empty()) ++assignments_[block.variable];
      for (const std::string& result : block.results)
        if (!result.empty()) ++assignments_[result];
      if (block.kind != Block::Kind::kBasic) return;
      for (const Node& node : block.graph.nodes) {
        if (!node.Is("assign")) continue;
        ++assignments_[node.Text("name")];
        if (const Node& value = block.graph[node.inputs[0]]; value.Is("variable"))
          copies_[node.Text("name")] = value.Text("name");
      }
    });
  }

  void Run() {
    ForEachBlock(function_.body, [&](Block& block) {
      ReadOriginals(&block.graph);
      ForEachArguments(block, [&](auto& arguments) {
        for (auto& [parameter, variable] : arguments) variable = Original(variable);
      });
      for (std::string* name : {&block.selector, &block.first_argument}) *name = Original(*name);
    });
  }

 private:
  // Of two copies of one variable there is one node, as of any variable: its adjoint is one sum.
  void ReadOriginals(Graph* graph) const {
    std::map<std::string, NodeId> nodes;
    std::vector<NodeId> stands_for(graph->nodes.size());
    std::vector<bool> keep(graph->nodes.size(), true);
    bool has_copies = false;
    for (NodeId id = 0; id < graph->size(); ++id) {
      Node& node = (*graph)[id];
      stands_for[static_cast<size_t>(id)] = id;
      if (!node.Is("variable")) continue;
      node.SetAttribute("name", Original(node.Text("name")));
      const auto [first, is_new] = nodes.try_emplace(node.Text("name"), id);
      stands_for[static_cast<size_t>(id)] = first->second;
      keep[static_cast<size_t>(id)] = is_new;
      has_copies |= !is_new;
    }
    if (has_copies) *graph = Compact(std::move(*graph), stands_for, keep);
  }

  std::string Original(std::string name) const {
    for (;;) {
      const auto copy = copies_.find(name);
      if (copy == copies_.end() || !name.starts_with("%in") || assignments_.at(name) != 1) return name;
      const auto times = assignments_.find(copy->second);
      if (times == assignments_.end() || times->second != 1) return name;
      name = copy->second;
    }
  }

  Function& function_;
  std::map<std::string, int> assignments_;
  std::map<std::string, std::string> copies_;
};

// The program of one function, in which each call that is to go is the only one of its function.
class Expander {
 public:
  Expander(const Program& program, const std::string& name)
      : program_(program), name_(name), is_recursive_(IsRecursive(program, name)) {}

  Function Run() {
    Function function = program_.functions.at(name_);
    Separate(&function.body);
    if (made_ == 0) return function;
    Block call;
    call.kind = Block::Kind::kCall;
    call.function = kWhole;
    scratch_.main = {call, call};  // Two, so that it stays a function.
    scratch_.functions[kWhole] = std::move(function);
    if (!InlineFunctions(&scratch_).ok()) return program_.functions.at(name_);
    function = std::move(scratch_.functions.at(kWhole));
    ForEachBlock(function.body, [&](Block& block) {
      if (const auto original = originals_.find(block.function); original != originals_.end())
        block.function = original->second;
    });
    CopyReader(&function).Run();
    return function;
  }

 private:
  static constexpr const char* kWhole = "%whole";

  bool Goes(const std::string& callee) {
    if (made_ >= kMostExpanded || !program_.functions.contains(callee) || IsRecursive(program_, callee))
      return false;
    if (is_recursive_) return true;
    for (const std::string& reached : Reached(program_, callee))
      if (IsRecursive(program_, reached)) return true;
    return false;
  }

  void Separate(std::vector<Block>* blocks) {
    ForEachBlock(*blocks, [&](Block& block) {
      if (block.kind != Block::Kind::kCall || !block.candidates.empty() || block.gives_list) return;
      const std::string callee = block.function;
      if (!Goes(callee)) {
        // What it returns is asked for; it stays a call, since there is another.
        const auto function = program_.functions.find(callee);
        if (function == program_.functions.end()) return;
        scratch_.functions[callee] = function->second;
        Block call;
        call.kind = Block::Kind::kCall;
        call.function = callee;
        scratch_.functions[callee].body = {call, call};
        return;
      }
      block.function = fmt::format("%call{}", ++made_);
      originals_[block.function] = callee;
      Function copy = program_.functions.at(callee);
      const std::string key = block.function;
      Separate(&copy.body);
      scratch_.functions[key] = std::move(copy);
    });
  }

  const Program& program_;
  const std::string& name_;
  const bool is_recursive_;
  Program scratch_;
  int made_ = 0;
  std::map<std::string, std::string> originals_;
};

}  // namespace

bool Reaches(const Program& program, const std::string& from, const std::string& to) {
  return Reached(program, from).contains(to);
}

bool IsRecursive(const Program& program, const std::string& name) { return Reaches(program, name, name); }

Function ExpandCalls(const Program& program, const std::string& name) {
  return Expander(program, name).Run();
}

}  // namespace heddle::compiler

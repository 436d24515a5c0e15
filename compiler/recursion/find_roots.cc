// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/find_roots.h"

#include <algorithm>
#include <utility>

#include "compiler/optimize/names.h"
#include "compiler/recursion/compile_structure.h"
#include "compiler/recursion/number_facts.h"

namespace heddle::compiler {
namespace {

void CollectAssigned(const Block& block, Names* names) {
  if (block.kind == Block::Kind::kBasic)
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign")) names->insert(node.Text("name"));
  if (!block.variable.empty()) names->insert(block.variable);
  for (const std::string& result : block.results)
    if (!result.empty()) names->insert(result);
  for (const std::vector<Block>* inside : {&block.body, &block.otherwise})
    for (const Block& inner : *inside) CollectAssigned(inner, names);
}

// What nobody can tell of before the loop runs.
Block Unknown(const Names& names) {
  Block block;
  block.kind = Block::Kind::kCall;
  block.results.assign(names.begin(), names.end());
  return block;
}

class RootFinder {
 public:
  RootFinder(const Block& loop, const std::function<std::string(const std::string& function)>& node_of)
      : loop_(loop), node_of_(node_of) {
    for (const Block& block : loop.body) CollectAssigned(block, &assigned_);
  }

  std::optional<LoopRoots> Run() {
    if (assigned_.contains(loop_.variable)) return std::nullopt;
    for (size_t at = 0; at < loop_.body.size(); ++at)
      if (std::optional<LoopRoots> roots = RootsAt(at)) return roots;
    return std::nullopt;
  }

 private:
  // The body up to a call as a function of the counter.
  std::optional<LoopRoots> RootsAt(size_t at) const {
    const Block& call = loop_.body[at];
    if (call.kind != Block::Kind::kCall || !call.candidates.empty() || call.gives_list) return std::nullopt;
    const std::string node = node_of_(call.function);
    if (node.empty()) return std::nullopt;
    std::string root;
    for (const auto& [parameter, variable] : call.arguments) {
      if (parameter == node)
        root = variable;
      else if (assigned_.contains(variable) || variable == loop_.variable)
        return std::nullopt;
    }
    Function body;
    body.parameters = {{loop_.variable, DataType::kScalar, ValueType::kInteger, std::nullopt}};
    AddParameters(&body);
    body.body.push_back(Unknown(ReadBefore(at)));
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      const Block& block = loop_.body[i];
      if (i == at) {
        Block counted = call;
        counted.arguments = {{loop_.variable, root}};
        body.body.push_back(std::move(counted));
      } else if (i < at && block.kind == Block::Kind::kBasic) {
        body.body.push_back(block);
      } else {
        Names names;
        CollectAssigned(block, &names);
        body.body.push_back(Unknown(names));
      }
    }
    const NumberFacts facts(body, 0);
    if (!facts.OfVariable(root).is_structural) return std::nullopt;
    Recursion recursion;
    CompileStructure(body, facts, &recursion);
    return LoopRoots{call.function, &call, std::move(recursion.structure)};
  }

  // Variables that the loop finds, as far as graphs of its body read them.
  void AddParameters(Function* body) const {
    Names added;
    for (const Block& block : loop_.body)
      for (const Node& node : block.graph.nodes) {
        if (!node.Is("variable") || node.Text("name") == loop_.variable ||
            assigned_.contains(node.Text("name")))
          continue;
        if (added.insert(node.Text("name")).second)
          body->parameters.push_back(
              {node.Text("name"), node.info.data_type, node.info.value_type, std::nullopt});
      }
  }

  // What a round reads of the round before.
  Names ReadBefore(size_t at) const {
    Names read, written;
    for (size_t i = 0; i < at; ++i) {
      for (const Node& node : loop_.body[i].graph.nodes)
        if (node.Is("variable") && assigned_.contains(node.Text("name")) &&
            !written.contains(node.Text("name")))
          read.insert(node.Text("name"));
      CollectAssigned(loop_.body[i], &written);
    }
    return read;
  }

  const Block& loop_;
  const std::function<std::string(const std::string& function)>& node_of_;
  Names assigned_;
};

}  // namespace

std::optional<LoopRoots> FindRoots(const Block& loop,
                                   const std::function<std::string(const std::string& function)>& node_of) {
  return RootFinder(loop, node_of).Run();
}

}  // namespace heddle::compiler

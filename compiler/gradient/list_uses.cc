// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/list_uses.h"

#include <algorithm>
#include <set>

#include "compiler/gradient/single_assignment.h"

namespace heddle::compiler {
namespace {

const std::string& ArgumentOf(const Block& step, std::string_view argument) {
  static const std::string* const kNone = new std::string;
  for (const auto& [name, variable] : step.arguments)
    if (name == argument) return variable;
  return *kNone;
}

bool IsOneCall(const Block& block) { return block.kind == Block::Kind::kCall && block.candidates.empty(); }

// The variables of a function that may differ between the calls of a recursion: parameters for which it
// passes itself something else, and all that depends on them.
class Differing {
 public:
  Differing(const std::string& key, const Function& function) : key_(key) {
    do {
      grown_ = false;
      Follow(function.body, false);
    } while (grown_);
  }

  bool IsDecision(const Block& block) const { return AnyDiffers(block.graph); }

 private:
  void Follow(const std::vector<Block>& blocks, bool by_decision) {
    for (const Block& block : blocks) {
      const bool differs = by_decision || (block.kind != Block::Kind::kBasic && IsDecision(block));
      if (block.kind == Block::Kind::kBasic) FollowGraph(block.graph, by_decision);
      if (differs && !block.variable.empty()) Add(block.variable);
      if (IsOneCall(block) && block.function == key_)
        for (const auto& [parameter, variable] : block.arguments)
          if (parameter != variable) Add(parameter);
      bool reads = differs || (IsOneCall(block) && block.function == key_);
      ForEachArguments(block, [&](const auto& arguments) {
        for (const auto& argument : arguments) reads |= names_.contains(argument.second);
      });
      for (const std::string& result : block.results)
        if (reads && !result.empty()) Add(result);
      Follow(block.body, differs);
      Follow(block.otherwise, differs);
    }
  }

  std::vector<bool> NodesThatDiffer(const Graph& graph) const {
    std::vector<bool> differ(graph.nodes.size(), false);
    for (size_t i = 0; i < differ.size(); ++i) {
      const Node& node = graph.nodes[i];
      differ[i] = node.Is("variable") && names_.contains(node.Text("name"));
      for (const NodeId input : node.inputs)
        if (input != kNoNode && differ[static_cast<size_t>(input)]) differ[i] = true;
    }
    return differ;
  }

  void FollowGraph(const Graph& graph, bool by_decision) {
    const std::vector<bool> differ = NodesThatDiffer(graph);
    for (size_t i = 0; i < differ.size(); ++i)
      if (graph.nodes[i].Is("assign") && (by_decision || differ[i])) Add(graph.nodes[i].Text("name"));
  }

  bool AnyDiffers(const Graph& graph) const {
    const std::vector<bool> differ = NodesThatDiffer(graph);
    return std::find(differ.begin(), differ.end(), true) != differ.end();
  }

  void Add(const std::string& name) { grown_ |= names_.insert(name).second; }

  const std::string& key_;
  std::set<std::string> names_;
  bool grown_ = false;
};

void AddReached(const Program& program, const std::string& name, std::set<std::string>* reached) {
  if (!program.functions.contains(name) || !reached->insert(name).second) return;
  const auto visit = [&](const auto& self, const std::vector<Block>& blocks) -> void {
    for (const Block& block : blocks) {
      ForEachCallee(block,
                    [&](const std::string& callee, const auto&) { AddReached(program, callee, reached); });
      self(self, block.body);
      self(self, block.otherwise);
    }
  };
  visit(visit, program.functions.at(name).body);
}

}  // namespace

// Finds what one function does with its lists.
class ListUses::Reader {
 public:
  Reader(const std::string& key, const Function& function, std::map<Key, Use>* uses)
      : key_(key), differing_(key, function), literals_(LiteralsOf(function)) {
    for (const Parameter& parameter : function.parameters)
      if (parameter.data_type == DataType::kList) lists_[parameter.name] = &uses->at({key, parameter.name});
    for (const Parameter& result : function.results) Keep(result.name);
    Read(function.body, false);
  }

 private:
  void Keep(const std::string& variable) {
    if (const auto list = lists_.find(variable); list != lists_.end()) list->second->is_elements = false;
  }

  void Read(const std::vector<Block>& blocks, bool perhaps) {
    for (const Block& block : blocks) {
      for (const std::string* name : {&block.variable, &block.selector, &block.first_argument}) Keep(*name);
      for (const std::string& result : block.results) Keep(result);
      if (IsOneCall(block) && !block.gives_list) {
        for (const auto& [parameter, variable] : block.arguments) {
          const auto list = lists_.find(variable);
          if (list == lists_.end() || (block.function == key_ && parameter == variable)) continue;
          list->second->passed_for.emplace_back(block.function, parameter);
          if (perhaps) Keep(variable);
        }
      } else if (const auto element = ElementReadBy(block, literals_); element && !perhaps) {
        if (const auto list = lists_.find(ArgumentOf(block, "list")); list != lists_.end())
          list->second->elements.try_emplace(element->NameIn(""), *element);
      } else {
        ForEachArguments(block, [&](const auto& arguments) {
          for (const auto& argument : arguments) Keep(argument.second);
        });
      }
      const bool is_flag = block.kind == Block::Kind::kIf && !differing_.IsDecision(block);
      Read(block.body, perhaps || is_flag);
      Read(block.otherwise, perhaps || is_flag);
    }
  }

  const std::string& key_;
  const Differing differing_;
  const std::map<std::string, Scalar> literals_;
  std::map<std::string, Use*> lists_;
};

std::string ListElement::NameIn(const std::string& list) const {
  return fmt::format("{}({}[{}])", operation == ListOperation::kAsMatrix ? "as.matrix" : "as.scalar", list,
                     key.ToLiteral());
}

std::map<std::string, Scalar> LiteralsOf(const Function& function) {
  std::map<std::string, Scalar> literals;
  std::map<std::string, int> assignments;
  const auto visit = [&](const auto& self, const std::vector<Block>& blocks) -> void {
    for (const Block& block : blocks) {
      if (!block.variable.empty()) ++assignments[block.variable];
      for (const std::string& result : block.results) ++assignments[result];
      if (block.kind == Block::Kind::kBasic)
        for (const Node& node : block.graph.nodes) {
          if (!node.Is("assign")) continue;
          ++assignments[node.Text("name")];
          const Node& value = block.graph[node.inputs[0]];
          if (value.Is("literal"))
            literals.insert_or_assign(node.Text("name"), *value.FindAttribute("value"));
        }
      self(self, block.body);
      self(self, block.otherwise);
    }
  };
  visit(visit, function.body);
  for (const Parameter& parameter : function.parameters) ++assignments[parameter.name];
  std::erase_if(literals, [&](const auto& literal) { return assignments[literal.first] != 1; });
  return literals;
}

std::optional<ListElement> ElementReadBy(const Block& step, const std::map<std::string, Scalar>& literals) {
  if (step.kind != Block::Kind::kList ||
      (step.operation != ListOperation::kAsMatrix && step.operation != ListOperation::kAsScalar))
    return std::nullopt;
  const std::string& from = ArgumentOf(step, "from");
  const auto literal = literals.find(from);
  if (literal == literals.end() || from != ArgumentOf(step, "to")) return std::nullopt;
  return ListElement{literal->second, step.operation, step.position};
}

ListUses::ListUses(const Program& program, const std::string& function) {
  std::set<std::string> reached;
  AddReached(program, function, &reached);
  for (const std::string& name : reached) {
    const Function& reader = program.functions.at(name);
    for (const Parameter& parameter : reader.parameters)
      if (parameter.data_type == DataType::kList) uses_[{name, parameter.name}] = {};
    if (HasAny(name)) Reader(name, reader, &uses_);
  }
  // A list that is passed for one that is needed as a list is needed itself; elements go the same way.
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (auto& [key, use] : uses_) {
      if (!use.is_elements) continue;
      const size_t before = use.elements.size();
      for (const Key& passed : use.passed_for) {
        const auto callee = uses_.find(passed);
        use.is_elements &= callee != uses_.end() && callee->second.is_elements;
        if (use.is_elements)
          use.elements.insert(callee->second.elements.begin(), callee->second.elements.end());
      }
      is_changed |= !use.is_elements || use.elements.size() != before;
    }
  }
}

const std::map<std::string, ListElement>* ListUses::ElementsOf(const std::string& function,
                                                               const std::string& parameter) const {
  const auto use = uses_.find({function, parameter});
  return use == uses_.end() || !use->second.is_elements ? nullptr : &use->second.elements;
}

bool ListUses::HasAny(const std::string& function) const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [&](const auto& use) { return use.first.first == function && use.second.is_elements; });
}

}  // namespace heddle::compiler

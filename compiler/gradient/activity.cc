// SPDX-License-Identifier: Apache-2.0
#include "compiler/gradient/activity.h"

#include <deque>

#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Values and which of them depend on which, whatever the order in which blocks run: each name is one value.
class Dependences {
 public:
  explicit Dependences(const SingleAssignment& code) : code_(code) { Add(code.function.body); }

  int Variable(const std::string& name) {
    const auto [found, is_new] = variables_.try_emplace(name, static_cast<int>(next_.size()));
    if (is_new) {
      const auto type = code_.types.find(name);
      NewValue(type == code_.types.end() || CanVary(type->second));
    }
    return found->second;
  }

  // What can be reached from these values, along dependences or against them.
  std::vector<bool> Reached(const std::set<std::string>& from, bool forward) {
    std::deque<int> open;
    std::vector<bool> reached(next_.size() + from.size(), false);
    for (const std::string& name : from) open.push_back(Variable(name));
    reached.resize(next_.size(), false);
    while (!open.empty()) {
      const int value = open.front();
      open.pop_front();
      const auto i = static_cast<size_t>(value);
      if (reached[i] || !varies_[i]) continue;
      reached[i] = true;
      for (const int other : (forward ? next_ : previous_)[i]) open.push_back(other);
    }
    return reached;
  }

  const std::map<std::string, int>& variables() const { return variables_; }
  const std::map<std::pair<int32_t, NodeId>, int>& nodes() const { return nodes_; }

 private:
  void NewValue(bool varies) {
    next_.emplace_back();
    previous_.emplace_back();
    varies_.push_back(varies);
  }

  void Depends(int value, int on) {
    next_[static_cast<size_t>(on)].push_back(value);
    previous_[static_cast<size_t>(value)].push_back(on);
  }

  void Add(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      if (block.kind == Block::Kind::kBasic) AddGraph(block);
      if (block.kind == Block::Kind::kCall || block.kind == Block::Kind::kList) {
        for (const std::string& result : block.results)
          for (const std::string& value : ValuesOf(block))
            if (!result.empty()) Depends(Variable(result), Variable(value));
      }
      Add(block.body);
      Add(block.otherwise);
    }
  }

  void AddGraph(const Block& block) {
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      const Node& node = block.graph[id];
      const int value = nodes_[{block.id, id}] = static_cast<int>(next_.size());
      NewValue(node.info.IsTuple() || CanVary(node.info));
      if (node.Is("variable")) Depends(value, Variable(node.Text("name")));
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != kNoNode && AdjointOf(node, i) != "0")
          Depends(value, nodes_.at({block.id, node.inputs[i]}));
      if (node.Is("assign")) Depends(Variable(node.Text("name")), value);
    }
  }

  const SingleAssignment& code_;
  std::map<std::string, int> variables_;
  std::map<std::pair<int32_t, NodeId>, int> nodes_;
  std::vector<std::vector<int>> next_, previous_;
  std::vector<bool> varies_;
};

}  // namespace

bool CanVary(const ValueInfo& type) {
  switch (type.data_type) {
    case DataType::kScalar:
      return type.value_type == ValueType::kDouble || type.value_type == ValueType::kUnknown;
    case DataType::kFrame: return false;
    default: return true;
  }
}

std::string_view AdjointOf(const Node& node, size_t input) {
  if (node.Is("assign") || node.Is("result")) return "dy";
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr) return "";
  if (!op->derivative.empty()) return "dy * (f'(x))";
  std::string_view rest = op->adjoints;
  for (;; --input) {
    const size_t end = rest.find(';');
    const std::string_view formula = rest.substr(0, end);
    if (input == 0 || end == std::string_view::npos) {
      const size_t begin = formula.find_first_not_of(' ');
      return begin == std::string_view::npos ? "" : formula.substr(begin);
    }
    rest.remove_prefix(end + 1);
  }
}

std::vector<std::string> ValuesOf(const Block& step) {
  std::vector<std::string> values;
  if (step.kind == Block::Kind::kList) {
    switch (step.operation) {
      case ListOperation::kLength:
      case ListOperation::kToString:
      case ListOperation::kExists:
      case ListOperation::kRead:
      case ListOperation::kWrite: return values;
      default: break;
    }
  }
  const bool makes = step.kind == Block::Kind::kList && step.operation == ListOperation::kMake;
  ForEachArguments(step, [&](const auto& arguments) {
    for (const auto& [parameter, variable] : arguments) {
      const bool is_index =
          step.kind == Block::Kind::kList && !makes && (parameter == "from" || parameter == "to");
      if (!is_index) values.push_back(variable);
    }
  });
  return values;
}

Activity::Activity(const SingleAssignment& code, const std::set<std::string>& parameters,
                   const std::set<std::string>& results) {
  Dependences dependences(code);
  for (const std::set<std::string>* names : {&parameters, &results})
    for (const std::string& name : *names) dependences.Variable(name);
  const std::vector<bool> varies = dependences.Reached(parameters, /*forward=*/true);
  const std::vector<bool> matters = dependences.Reached(results, /*forward=*/false);
  const auto is_active = [&](int value) {
    return varies[static_cast<size_t>(value)] && matters[static_cast<size_t>(value)];
  };
  for (const auto& [name, value] : dependences.variables())
    if (is_active(value)) variables_.insert(name);
  for (const auto& [node, value] : dependences.nodes())
    if (is_active(value)) nodes_.insert(node);
}

}  // namespace heddle::compiler

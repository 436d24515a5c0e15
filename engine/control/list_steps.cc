// SPDX-License-Identifier: Apache-2.0
#include "engine/control/list_steps.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/optimize/list_steps.h"
#include "core/memory/counted_heap.h"
#include "engine/variables/on_every_rank.h"

namespace heddle::engine {
namespace {

constexpr const char* kResult = "%list.result";

std::string InputName(size_t i) { return fmt::format("%list.{}", i); }

const std::string* VariableOf(const Block& step, std::string_view argument) {
  for (const auto& [name, variable] : step.arguments)
    if (name == argument) return &variable;
  return nullptr;
}

Result<const Variable*> Find(const VariableTable& frame, const std::string& name) {
  const Variable* variable = frame.Find(name);
  if (variable != nullptr) return variable;
  return FailedPrecondition("variable '{}' has no value here", name)
      .OnEveryRank()
      .WithNote("it is assigned only in branches or loops that did not run");
}

Result<const Variable*> Operand(const Block& step, const VariableTable& frame, std::string_view argument) {
  const std::string* name = VariableOf(step, argument);
  if (name == nullptr) return Internal("a step '{}' without {}", Name(step.operation), argument);
  return Find(frame, *name);
}

Result<std::shared_ptr<ListOf<Variable>>> ListOperand(const Block& step, const VariableTable& frame) {
  HEDDLE_ASSIGN_OR_RETURN(const Variable* variable, Operand(step, frame, "list"));
  if (variable->list != nullptr) return variable->list;
  return FailedPrecondition("'{}' is a {}, not a list", *VariableOf(step, "list"),
                            Name(variable->info.data_type))
      .OnEveryRank();
}

Result<ListRange> Range(const Block& step, const VariableTable& frame, const ListOf<Variable>& list) {
  HEDDLE_ASSIGN_OR_RETURN(const Variable* from, Operand(step, frame, "from"));
  HEDDLE_ASSIGN_OR_RETURN(const Variable* to, Operand(step, frame, "to"));
  for (const Variable* bound : {from, to})
    if (!bound->info.IsScalar())
      return FailedPrecondition("the index of a list is a {}, not a scalar", Name(bound->info.data_type))
          .OnEveryRank();
  return OnEveryRank(FindInList(list.names, list.size(), from->value.scalar(), to->value.scalar()));
}

std::vector<DataType> TypesOf(const ListOf<Variable>& list, const ListRange& range) {
  std::vector<DataType> types;
  for (size_t i = range.begin; i < range.end; ++i) types.push_back(list.elements[i].info.data_type);
  return types;
}

DataType WantedBy(ListOperation operation) {
  switch (operation) {
    case ListOperation::kAsScalar: return DataType::kScalar;
    case ListOperation::kAsMatrix: return DataType::kMatrix;
    case ListOperation::kAsFrame: return DataType::kFrame;
    default: return DataType::kList;
  }
}

// The list to change: the step's own if its variable gets the result and nobody else has it, else a copy.
std::shared_ptr<ListOf<Variable>> Own(const Block& step, std::shared_ptr<ListOf<Variable>> list,
                                      VariableTable* frame) {
  if (*VariableOf(step, "list") == step.results[0]) frame->Erase(step.results[0]);
  if (list.use_count() == 1) {
    // Counts are read without order. Taking part in the counting puts what others did with the list, as who
    // writes a checkpoint, before what follows.
    const std::shared_ptr<ListOf<Variable>> counted = list;
    return list;
  }
  return std::make_shared<ListOf<Variable>>(*list);
}

}  // namespace

Status ListSteps::Run(const Block& step, VariableTable* frame) {
  return RunStep(step, frame).At(step.position);
}

Status ListSteps::RunStep(const Block& step, VariableTable* frame) {
  if (step.operation == ListOperation::kRemove) return Remove(step, frame);
  if (step.operation == ListOperation::kWrite) return Write(step, frame);
  HEDDLE_ASSIGN_OR_RETURN(Variable result, Evaluate(step, frame));
  if (!step.results[0].empty()) frame->Set(step.results[0], std::move(result));
  return OkStatus();
}

Result<Variable> ListSteps::Evaluate(const Block& step, VariableTable* frame) {
  switch (step.operation) {
    case ListOperation::kMake: return Make(step, *frame);
    case ListOperation::kCopy: {
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<List> list, ListOperand(step, *frame));
      return Variable::OfList(std::move(list));
    }
    case ListOperation::kSlice: {
      HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, *frame));
      HEDDLE_ASSIGN_OR_RETURN(const ListRange range, Range(step, *frame, *list));
      return WithinMemory("variables", [&]() -> Result<Variable> {
        return Variable::OfList(std::make_shared<List>(list->Slice(range)));
      });
    }
    case ListOperation::kAssign:
    case ListOperation::kAppend: {
      HEDDLE_ASSIGN_OR_RETURN(const Variable* given, Operand(step, *frame, "value"));
      Variable value = *given;
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<List> list, ListOperand(step, *frame));
      ListRange range;
      if (step.operation == ListOperation::kAssign) {
        HEDDLE_ASSIGN_OR_RETURN(range, Range(step, *frame, *list));
      }
      return WithinMemory("variables", [&]() -> Result<Variable> {
        list = Own(step, std::move(list), frame);
        const Status changed = step.operation == ListOperation::kAssign
                                   ? list->Replace(range, std::move(value))
                                   : list->Append(std::move(value));
        HEDDLE_RETURN_IF_ERROR(changed.OnEveryRank());
        return Variable::OfList(std::move(list));
      });
    }
    case ListOperation::kLength: {
      HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, *frame));
      return Variable::OfScalar(static_cast<int64_t>(list->size()));
    }
    case ListOperation::kAsScalar:
    case ListOperation::kAsMatrix:
    case ListOperation::kAsFrame:
    case ListOperation::kAsList: return As(step, frame);
    case ListOperation::kCbind:
    case ListOperation::kRbind: return Bind(step, frame);
    case ListOperation::kToString: {
      HEDDLE_ASSIGN_OR_RETURN(const Variable* found, Operand(step, *frame, "x"));
      const Variable value = *found;
      std::string text;
      HEDDLE_RETURN_IF_ERROR(AppendText(step, value, frame, &text));
      return Variable::OfScalar(std::move(text));
    }
    case ListOperation::kExists: return Variable::OfScalar(frame->Find(*VariableOf(step, "x")) != nullptr);
    case ListOperation::kRead: {
      HEDDLE_ASSIGN_OR_RETURN(const Variable* path, Operand(step, *frame, "path"));
      return ReadList(step, path->value.scalar().ToText(), /*depth=*/1, frame);
    }
    case ListOperation::kSum: {
      HEDDLE_ASSIGN_OR_RETURN(const Variable* list, Operand(step, *frame, "list"));
      HEDDLE_ASSIGN_OR_RETURN(const Variable* other, Operand(step, *frame, "other"));
      return SumOf(step, Variable(*list), Variable(*other), frame);
    }
    case ListOperation::kZeros: {
      HEDDLE_ASSIGN_OR_RETURN(const Variable* list, Operand(step, *frame, "list"));
      return ZerosOf(step, Variable(*list), frame);
    }
    case ListOperation::kAppended: return Appended(step, *frame);
    case ListOperation::kInserted: return Inserted(step, frame);
    case ListOperation::kRowsOf:
    case ListOperation::kColumnsOf: return PartsOf(step, frame);
    case ListOperation::kRemove:
    case ListOperation::kWrite: break;
  }
  return Internal("a step '{}' cannot be evaluated", Name(step.operation));
}

Status ListSteps::Remove(const Block& step, VariableTable* frame) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, *frame));
  HEDDLE_ASSIGN_OR_RETURN(const ListRange range, Range(step, *frame, *list));
  return WithinMemory("variables", [&] {
    auto removed = std::make_shared<List>(list->Slice(range));
    removed->names.clear();
    auto rest = std::make_shared<List>(*list);
    rest->Erase(range);
    if (!step.results[0].empty()) frame->Set(step.results[0], Variable::OfList(std::move(rest)));
    if (!step.results[1].empty()) frame->Set(step.results[1], Variable::OfList(std::move(removed)));
    return OkStatus();
  });
}

Result<Variable> ListSteps::Make(const Block& step, const VariableTable& frame) {
  return WithinMemory("variables", [&]() -> Result<Variable> {
    auto list = std::make_shared<List>();
    for (const auto& [name, variable] : step.arguments) {
      HEDDLE_ASSIGN_OR_RETURN(const Variable* element, Find(frame, variable));
      HEDDLE_RETURN_IF_ERROR(list->Add(name, *element).OnEveryRank());
    }
    return Variable::OfList(std::move(list));
  });
}

// An element as what the script says it is: itself, or what an operator makes of it. Of several elements
// as.matrix makes a column.
Result<Variable> ListSteps::As(const Block& step, VariableTable* frame) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, *frame));
  ListRange range{0, list->size()};
  if (VariableOf(step, "from") != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(range, Range(step, *frame, *list));
  }
  HEDDLE_RETURN_IF_ERROR(compiler::CheckElements(step.operation, TypesOf(*list, range)).OnEveryRank());
  if (step.operation == ListOperation::kAsMatrix && range.size() > 1)
    return Apply(step, GraphFor(step, Name(ListOperation::kRbind), range.size(), true),
                 list->Slice(range).elements, frame);
  const Variable& element = list->elements[range.begin];
  if (element.info.data_type == WantedBy(step.operation)) return element;
  return Apply(step, GraphFor(step, Name(step.operation), 1, false), {element}, frame);
}

// All elements in one matrix or frame.
Result<Variable> ListSteps::Bind(const Block& step, VariableTable* frame) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, *frame));
  HEDDLE_RETURN_IF_ERROR(
      compiler::CheckElements(step.operation, TypesOf(*list, {0, list->size()})).OnEveryRank());
  return Apply(step, GraphFor(step, Name(step.operation), list->size(), false), list->elements, frame);
}

// Of two lists of one structure, element by element; of two elements as matrices.
Result<Variable> ListSteps::SumOf(const Block& step, const Variable& a, const Variable& b,
                                  VariableTable* frame) {
  if (a.list == nullptr || b.list == nullptr) return Apply(step, GraphFor(step, "+", 2, true), {a, b}, frame);
  if (a.list->size() != b.list->size()) return Internal("adjoints of a list have one structure");
  auto sum = std::make_shared<List>(*a.list);
  for (size_t i = 0; i < sum->size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(sum->elements[i], SumOf(step, a.list->elements[i], b.list->elements[i], frame));
  }
  return Variable::OfList(std::move(sum));
}

Result<Variable> ListSteps::ZerosOf(const Block& step, const Variable& value, VariableTable* frame) {
  if (value.list == nullptr) {
    // What is no number has no derivative. A single zero keeps its place.
    const bool are_numbers =
        value.info.IsMatrix() || (value.info.IsScalar() && !value.value.scalar().IsString());
    const Variable like = are_numbers ? value : Variable::OfScalar(0.0);
    return Apply(step, GraphFor(step, "matrix", 1, true), {like}, frame);
  }
  auto zeros = std::make_shared<List>(*value.list);
  for (Variable& element : zeros->elements) {
    HEDDLE_ASSIGN_OR_RETURN(element, ZerosOf(step, Variable(element), frame));
  }
  return Variable::OfList(std::move(zeros));
}

// A list of one element gave that element, another is one.
Result<Variable> ListSteps::Appended(const Block& step, const VariableTable& frame) const {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, frame));
  HEDDLE_ASSIGN_OR_RETURN(const Variable* value, Operand(step, frame, "value"));
  if (value->list == nullptr || list->size() == 0)
    return Internal("a step '{}' without a list that was appended", Name(step.operation));
  if (value->list->size() != 1) return list->elements.back();
  auto appended = std::make_shared<List>(*value->list);
  appended->elements[0] = list->elements.back();
  return Variable::OfList(std::move(appended));
}

Result<Variable> ListSteps::Inserted(const Block& step, VariableTable* frame) {
  HEDDLE_ASSIGN_OR_RETURN(const Variable* const found, Operand(step, *frame, "list"));
  const Variable like = *found;
  if (like.list == nullptr) return Internal("a step '{}' without a list", Name(step.operation));
  HEDDLE_ASSIGN_OR_RETURN(const ListRange range, Range(step, *frame, *like.list));
  const auto given = [&](std::string_view argument) -> Result<std::shared_ptr<List>> {
    if (VariableOf(step, argument) == nullptr) return std::shared_ptr<List>();
    HEDDLE_ASSIGN_OR_RETURN(const Variable* const variable, Operand(step, *frame, argument));
    return variable->list;
  };
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> rest, given("rest"));
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> removed, given("removed"));
  HEDDLE_ASSIGN_OR_RETURN(const Variable zeros, ZerosOf(step, like, frame));
  auto whole = std::make_shared<List>(*zeros.list);
  size_t next_of_rest = 0;
  for (size_t i = 0; i < whole->size(); ++i) {
    const bool is_removed = i >= range.begin && i < range.end;
    const size_t place = is_removed ? i - range.begin : next_of_rest++;
    const std::shared_ptr<List>& from = is_removed ? removed : rest;
    if (from != nullptr) whole->elements[i] = from->elements[place];
  }
  return Variable::OfList(std::move(whole));
}

Result<Variable> ListSteps::PartsOf(const Block& step, VariableTable* frame) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<List> list, ListOperand(step, *frame));
  HEDDLE_ASSIGN_OR_RETURN(const Variable* const found, Operand(step, *frame, "value"));
  const Variable value = *found;
  auto parts = std::make_shared<List>(*list);
  int64_t end = 0;
  for (Variable& element : parts->elements) {
    const Shape shape = element.info.IsScalar() ? Shape{1, 1} : element.info.shape;
    const int64_t begin = end + 1;
    end += step.operation == ListOperation::kRowsOf ? shape.rows : shape.columns;
    if (end < begin) {
      HEDDLE_ASSIGN_OR_RETURN(element, ZerosOf(step, Variable(element), frame));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(
          element,
          Apply(step, PartGraph(step), {value, Variable::OfScalar(begin), Variable::OfScalar(end)}, frame));
    }
  }
  return Variable::OfList(std::move(parts));
}

// The text of an element (language reference 2.9). The options of toString() are those of its matrices.
Status ListSteps::AppendText(const Block& step, const Variable& value, VariableTable* frame,
                             std::string* text) {
  if (value.info.IsScalar()) {
    return WithinMemory("toString", [&] {
      text->append(value.value.scalar().ToText());
      return OkStatus();
    });
  }
  if (value.list != nullptr) {
    text->append("List containing:");
    if (value.list->size() > 0) text->append("\n[");
    for (size_t i = 0; i < value.list->size(); ++i) {
      if (i > 0) text->append(", ");
      HEDDLE_RETURN_IF_ERROR(AppendText(step, value.list->elements[i], frame, text));
    }
    text->append("]");
    return OkStatus();
  }
  text->append(value.info.IsMatrix() ? "\nMatrix:\n" : "\n");
  std::vector<Variable> inputs = {value};
  for (const auto& [name, variable] : step.arguments) {
    if (name == "x") continue;
    HEDDLE_ASSIGN_OR_RETURN(const Variable* option, Find(*frame, variable));
    inputs.push_back(*option);
  }
  HEDDLE_ASSIGN_OR_RETURN(const Variable element,
                          Apply(step, GraphFor(step, "toString", inputs.size(), false), inputs, frame));
  return WithinMemory("toString", [&] {
    text->append(element.value.scalar().ToText());
    return OkStatus();
  });
}

Result<Variable> ListSteps::Apply(const Block& step, const Graph& graph, const std::vector<Variable>& inputs,
                                  VariableTable* frame) {
  for (size_t i = 0; i < inputs.size(); ++i) frame->Set(InputName(i), inputs[i]);
  const Status status = blocks_.Run(step.id, graph, frame);
  for (size_t i = 0; i < inputs.size(); ++i) frame->Erase(InputName(i));
  HEDDLE_RETURN_IF_ERROR(status);
  return frame->Take(kResult);
}

// Of the first input the rows or columns from the second to the third, numbers.
const Graph& ListSteps::PartGraph(const Block& step) {
  constexpr size_t kInputs = 3;
  auto [found, is_new] = graphs_.try_emplace({step.id, kInputs});
  Graph& graph = found->second;
  if (!is_new) return graph;
  std::vector<NodeId> nodes;
  const auto add = [&](std::string_view op, std::string_view name) -> Node& {
    Node node;
    node.op = op;
    node.position = step.position;
    if (!name.empty()) node.SetAttribute("name", std::string(name));
    nodes.push_back(graph.Add(std::move(node)));
    return graph[nodes.back()];
  };
  for (size_t i = 0; i < kInputs; ++i) add("variable", InputName(i));
  if (step.operation == ListOperation::kRowsOf)
    add("index", "").inputs = {nodes[0], nodes[1], nodes[2], kNoNode, kNoNode};
  else
    add("index", "").inputs = {nodes[0], kNoNode, kNoNode, nodes[1], nodes[2]};
  const NodeId part = nodes.back();
  add("assign", kResult).inputs = {part};
  return graph;
}

// op of the inputs, each of which is made a matrix first if `as_matrices`. Those of toString() after the
// first are the options that the step has.
const Graph& ListSteps::GraphFor(const Block& step, std::string_view op, size_t inputs, bool as_matrices) {
  auto [found, is_new] = graphs_.try_emplace({step.id, inputs});
  Graph& graph = found->second;
  if (!is_new) return graph;
  const auto add = [&](std::string_view name, std::vector<NodeId> nodes) {
    Node node;
    node.op = name;
    node.inputs = std::move(nodes);
    node.position = step.position;
    return graph.Add(std::move(node));
  };
  std::vector<NodeId> nodes;
  for (size_t i = 0; i < inputs; ++i) {
    NodeId id = add("variable", {});
    graph[id].SetAttribute("name", InputName(i));
    if (as_matrices) id = add("as.matrix", {id});
    nodes.push_back(id);
  }
  if (op == "toString") {
    constexpr std::array<std::string_view, 6> kOptions = {"rows",   "cols", "decimal",
                                                          "sparse", "sep",  "linesep"};
    std::vector<NodeId> all(1 + kOptions.size(), kNoNode);
    all[0] = nodes[0];
    size_t next = 1;
    for (const auto& [name, variable] : step.arguments) {
      const auto option = std::find(kOptions.begin(), kOptions.end(), name);
      if (option != kOptions.end()) all[static_cast<size_t>(option - kOptions.begin()) + 1] = nodes[next++];
    }
    nodes = std::move(all);
  }
  if (op == "matrix") {  // of zeros, as large as the input
    const NodeId rows = add("nrow", {nodes[0]}), columns = add("ncol", {nodes[0]}), zero = add("literal", {});
    graph[zero].SetAttribute("value", Scalar(0.0));
    graph[zero].info = ValueInfo::OfScalar(ValueType::kDouble);
    nodes = {zero, rows, columns};
  }
  const NodeId result = add("assign", {add(op, std::move(nodes))});
  graph[result].SetAttribute("name", std::string(kResult));
  return graph;
}

}  // namespace heddle::engine

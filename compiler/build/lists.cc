// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "compiler/build/body_builder.h"
#include "ops/base/operator.h"
#include "ops/text/java_hash_map.h"

// Lists are variables of the control program: what a statement does with them becomes steps before the block
// of the statement's expression, as the calls of DML functions do.
namespace heddle::compiler {
namespace {

constexpr std::array<std::string_view, 7> kToStringArguments = {"x",      "rows", "cols",   "decimal",
                                                                "sparse", "sep",  "linesep"};

LiveIn OfType(DataType data_type, ValueType value_type) {
  LiveIn known;
  known.info = ValueInfo::OfDeclared(data_type, value_type);
  return known;
}

// What the text tells of a step's result.
LiveIn ResultOf(ListOperation operation) {
  switch (operation) {
    case ListOperation::kMake:
    case ListOperation::kCopy:
    case ListOperation::kSlice:
    case ListOperation::kAssign:
    case ListOperation::kAppend:
    case ListOperation::kRemove:
    case ListOperation::kSum:
    case ListOperation::kZeros:
    case ListOperation::kAppended:
    case ListOperation::kInserted:
    case ListOperation::kRowsOf:
    case ListOperation::kColumnsOf:
    case ListOperation::kAsList: return OfType(DataType::kList, ValueType::kUnknown);
    case ListOperation::kLength: return OfType(DataType::kScalar, ValueType::kInteger);
    case ListOperation::kAsScalar: return OfType(DataType::kScalar, ValueType::kUnknown);
    case ListOperation::kAsMatrix: return OfType(DataType::kMatrix, ValueType::kDouble);
    case ListOperation::kAsFrame: return OfType(DataType::kFrame, ValueType::kUnknown);
    case ListOperation::kCbind:
    case ListOperation::kRbind: return LiveIn();  // of matrices or of frames
    case ListOperation::kToString: return OfType(DataType::kScalar, ValueType::kString);
    case ListOperation::kExists: return OfType(DataType::kScalar, ValueType::kBoolean);
    case ListOperation::kRead: return OfType(DataType::kList, ValueType::kUnknown);
    case ListOperation::kWrite: break;
  }
  return LiveIn();
}

// What a builtin does when its first argument is a list.
std::optional<ListOperation> OperationOnList(const Expression& call) {
  const std::string& name = call.name;
  if (name == "as.scalar" || name == "castAsScalar") return ListOperation::kAsScalar;
  if (name == "as.matrix") return ListOperation::kAsMatrix;
  if (name == "as.frame") return ListOperation::kAsFrame;
  if (name == "length" || name == "nrow") return ListOperation::kLength;
  if (name == "toString") return ListOperation::kToString;
  if (name != "append" && name != "cbind" && name != "rbind") return std::nullopt;
  if (call.arguments.size() != 1) return ListOperation::kAppend;
  return name == "rbind" ? ListOperation::kRbind : ListOperation::kCbind;
}

// as.scalar(l[i]) and its like.
bool TakesElement(ListOperation operation) {
  return operation == ListOperation::kAsScalar || operation == ListOperation::kAsMatrix ||
         operation == ListOperation::kAsFrame || operation == ListOperation::kAsList;
}

bool IsIndexed(const Expression& expression) {
  return expression.kind == Expression::Kind::kIndexed || expression.kind == Expression::Kind::kIndexedValue;
}

// list(b=1, a=2): existing scripts count on the order of a java.util.HashMap of the names, in which of equal
// names the last value counts. It is a copy, which has room for one more. A list without names, or with names
// for some, keeps the order of the text.
void OrderByNames(std::vector<std::pair<std::string, std::string>>* elements) {
  std::vector<std::pair<std::string, std::string>> ordered;
  for (const auto& [name, variable] : *elements) {
    if (name.empty()) return;
    const auto same = std::find_if(ordered.begin(), ordered.end(),
                                   [&name = name](const auto& element) { return element.first == name; });
    if (same == ordered.end())
      ordered.emplace_back(name, variable);
    else
      same->second = variable;
  }
  const size_t room = ordered.size() + 1;
  std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
    return ops::JavaBucketOf(a.first, room) < ops::JavaBucketOf(b.first, room);
  });
  *elements = std::move(ordered);
}

}  // namespace

bool BodyBuilder::IsListVariable(const std::string& name) const {
  const auto found = scope_.find(VariableFor(name));
  return found != scope_.end() && found->second.known.info.data_type == DataType::kList;
}

bool BodyBuilder::IsList(const Expression& expression) const {
  if (const auto hoisted = hoisted_.find(&expression); hoisted != hoisted_.end()) {
    const auto found = scope_.find(hoisted->second);
    return found != scope_.end() && found->second.known.info.data_type == DataType::kList;
  }
  switch (expression.kind) {
    case Expression::Kind::kIdentifier:
    case Expression::Kind::kIndexed: return IsListVariable(expression.name);
    case Expression::Kind::kIndexedValue: return IsList(*expression.operands[0]);
    case Expression::Kind::kCall: break;
    default: return false;
  }
  if (const Callee* callee = program_.FindCallee(file_, expression)) {
    if (callee->is_paramserv) return true;
    if (callee->functions.empty()) return false;
    const std::vector<ParameterDefinition>& results = callee->functions.begin()->second->definition->results;
    return !results.empty() && results[0].data_type == DataType::kList;
  }
  if (expression.name == "autoDiff") return true;
  const std::optional<ListOperation> operation = ListOperationOf(expression);
  return operation && ResultOf(*operation).info.data_type == DataType::kList;
}

// The step that the value of an expression is; nullopt where it is a value of a graph or a call.
std::optional<ListOperation> BodyBuilder::ListOperationOf(const Expression& expression) const {
  if (expression.kind == Expression::Kind::kIdentifier && IsList(expression)) return ListOperation::kCopy;
  if (IsIndexed(expression) && IsList(expression)) return ListOperation::kSlice;
  if (expression.kind != Expression::Kind::kCall || !expression.name_space.empty() ||
      program_.FindCallee(file_, expression) != nullptr)
    return std::nullopt;
  if (expression.name == "list") return ListOperation::kMake;
  if (expression.name == "as.list") return ListOperation::kAsList;
  if (expression.name == "exists") return ListOperation::kExists;
  if (expression.name == "read")
    return ReadsList(expression) ? std::optional(ListOperation::kRead) : std::nullopt;
  if (expression.arguments.empty() || !IsList(*expression.arguments[0].value)) return std::nullopt;
  return OperationOnList(expression);
}

// True for the l[i] of as.scalar(l[i]) and its like: one step takes the element out.
bool BodyBuilder::IsPick(const Expression& call, const Expression& argument) const {
  if (!IsIndexed(argument) || call.kind != Expression::Kind::kCall) return false;
  const std::optional<ListOperation> operation = ListOperationOf(call);
  return operation && TakesElement(*operation) && IsList(argument);
}

// The variable that holds an operand of a step. What stands in it is hoisted.
std::string BodyBuilder::PassOperand(const Expression& expression) {
  if (const auto hoisted = hoisted_.find(&expression); hoisted != hoisted_.end()) return hoisted->second;
  if (expression.kind == Expression::Kind::kIdentifier && scope_.contains(VariableFor(expression.name)) &&
      !IsTensor(expression))
    return VariableFor(expression.name);
  const auto built = built_arguments_.find(&expression);
  return PassNode(built != built_arguments_.end() ? built->second : BuildExpression(expression),
                  expression.range);
}

// The variable that holds the list of l[i] or f(X)[i].
std::string BodyBuilder::PassIndexedList(const Expression& indexed) {
  return indexed.kind == Expression::Kind::kIndexed ? VariableFor(indexed.name)
                                                    : PassOperand(*indexed.operands[0]);
}

// Adds from and to, which are one variable for a single element. False after an error. A list is a column:
// its second index may be left out, or 1.
bool BodyBuilder::PassListIndex(const Index& index, Block* step) {
  const IndexRange& columns = index.columns;
  const bool is_column =
      columns.kind == IndexRange::Kind::kAll ||
      (columns.kind == IndexRange::Kind::kSingle && columns.from->kind == Expression::Kind::kLiteral &&
       columns.from->literal == Scalar(1));
  if (!is_column || index.rows.kind == IndexRange::Kind::kAll) {
    Error(index.range, "the elements of a list have one index: l[i], l[i:j] or l[\"name\"]");
    return false;
  }
  const std::string from = PassNode(BuildIndexBound(*index.rows.from), index.rows.from->range);
  const bool is_range = index.rows.kind == IndexRange::Kind::kRange;
  const std::string to = is_range ? PassNode(BuildIndexBound(*index.rows.to), index.rows.to->range) : from;
  step->arguments.emplace_back("from", from);
  step->arguments.emplace_back("to", to);
  return true;
}

void BodyBuilder::EmitStep(Block step, std::vector<std::string> results, const SourceRange& range) {
  Flush();
  for (const std::string& result : results)
    if (!result.empty()) scope_[result] = {ResultOf(step.operation), range};
  step.results = std::move(results);
  blocks_.push_back(std::move(step));
}

// What stands inside the expression is hoisted.
void BodyBuilder::EmitListStep(const Expression& expression, ListOperation operation,
                               const std::string& result) {
  Block step = NewBlock(Block::Kind::kList, expression.range);
  step.operation = operation;
  bool ok = true;
  switch (operation) {
    case ListOperation::kMake:
      for (const Argument& argument : expression.arguments)
        step.arguments.emplace_back(argument.name, PassOperand(*argument.value));
      OrderByNames(&step.arguments);
      break;
    case ListOperation::kCopy: step.arguments.emplace_back("list", VariableFor(expression.name)); break;
    case ListOperation::kSlice:
      step.arguments.emplace_back("list", PassIndexedList(expression));
      ok = PassListIndex(*expression.index, &step);
      break;
    case ListOperation::kExists: ok = PassExists(expression, &step); break;
    case ListOperation::kRead: ok = PassListRead(expression, &step); break;
    case ListOperation::kToString: ok = PassToString(expression, &step); break;
    default: ok = PassListCall(expression, &step);
  }
  if (ok) return EmitStep(std::move(step), {result}, expression.range);
  block_.Assign(result, ErrorNode(expression.range), At(expression.range));
  scope_[result] = {ResultOf(operation), expression.range};
}

// Makes the value of an expression that asks a list a temporary; what stands inside is hoisted.
void BodyBuilder::HoistListStep(const Expression& expression) {
  if (expression.kind == Expression::Kind::kIdentifier) return;
  if (expression.kind == Expression::Kind::kCall && expression.name == "ncol" &&
      expression.arguments.size() == 1 && IsList(*expression.arguments[0].value)) {
    hoisted_[&expression] = NewTemporary();
    return Define(hoisted_[&expression], block_.Literal(Scalar(1), At(expression.range)), expression.range);
  }
  const std::optional<ListOperation> operation = ListOperationOf(expression);
  if (!operation) return;
  const std::string result = NewTemporary();
  EmitListStep(expression, *operation, result);
  hoisted_[&expression] = result;
}

// False after an error, which is not told again where another one has made the operand.
bool BodyBuilder::RequireList(const Expression& operand, std::string_view message) {
  if (IsList(operand)) return true;
  const bool is_known = InfoOf(BuildExpression(operand)).data_type != DataType::kUnknown;
  if (is_known || !program_.diagnostics.HasErrors()) Error(operand.range, std::string(message));
  return false;
}

// Calls whose first argument is a list, with another one for append(). False after an error.
bool BodyBuilder::PassListCall(const Expression& call, Block* step) {
  const size_t count = step->operation == ListOperation::kAppend ? 2 : 1;
  if (!CheckCount(call, count, count)) return false;
  if (!RequireList(*call.arguments[0].value, fmt::format("the argument of {}() must be a list", call.name)))
    return false;  // only as.list() comes here without one
  if (step->operation == ListOperation::kAsFrame && ops::FindOperator("as.frame") == nullptr) {
    program_.ReportUnimplemented(*path_, call.name_range, fmt::format("{}() is", call.name));
    return false;
  }
  if (const Expression& list = *call.arguments[0].value; IsPick(call, list)) {
    step->arguments.emplace_back("list", PassIndexedList(list));
    step->position = At(list.range);
    return PassListIndex(*list.index, step);
  }
  step->arguments.emplace_back("list", PassOperand(*call.arguments[0].value));
  if (count == 2) step->arguments.emplace_back("value", PassOperand(*call.arguments[1].value));
  return true;
}

bool BodyBuilder::PassToString(const Expression& call, Block* step) {
  std::array<const Argument*, kToStringArguments.size()> bound{};
  size_t next = 0;
  for (const Argument& argument : call.arguments) {
    size_t at = next;
    if (argument.name.empty()) {
      ++next;
    } else {
      at = 0;
      while (at < bound.size() && kToStringArguments[at] != argument.name) ++at;
      if (argument.name == "target") at = 0;
    }
    if (at >= bound.size()) {
      if (argument.name.empty()) return CheckCount(call, 1, bound.size());
      Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name));
      return false;
    }
    if (bound[at] != nullptr) {
      Error(argument.value->range,
            fmt::format("the argument '{}' of {}() is given twice", kToStringArguments[at], call.name));
      return false;
    }
    bound[at] = &argument;
  }
  for (size_t i = 0; i < bound.size(); ++i)
    if (bound[i] != nullptr)
      step->arguments.emplace_back(std::string(kToStringArguments[i]), PassOperand(*bound[i]->value));
  return true;
}

// exists(x) and exists("x"): the name may be one that no statement before this assigns.
bool BodyBuilder::PassExists(const Expression& call, Block* step) {
  if (!CheckCount(call, 1, 1)) return false;
  const Expression& name = *call.arguments[0].value;
  const bool is_text = name.kind == Expression::Kind::kLiteral && name.literal.IsString();
  if (!is_text && name.kind != Expression::Kind::kIdentifier) {
    Error(name.range, "the argument of exists() must be a variable, or its name in quotes");
    return false;
  }
  step->arguments.emplace_back("x", VariableFor(is_text ? name.literal.AsString() : name.name));
  return true;
}

// target[...] = the variable `value`.
void BodyBuilder::EmitListAssign(const Target& target, const std::string& value) {
  Block step = NewBlock(Block::Kind::kList, target.range);
  step.operation = ListOperation::kAssign;
  const std::string& list = VariableFor(target.name);
  step.arguments.emplace_back("list", list);
  if (!PassListIndex(*target.index, &step)) return;
  step.arguments.emplace_back("value", value);
  EmitStep(std::move(step), {list}, target.range);
}

void BodyBuilder::BuildRemove(const Statement& statement) {
  const Expression& call = *statement.value;
  HoistInside(call);
  bool ok = CheckCount(call, 2, 2) &&
            RequireList(*call.arguments[0].value, "the first argument of remove() must be a list");
  if (ok && statement.targets.size() > 2) {
    Error(call.name_range,
          fmt::format("remove() returns 2 results, {} variables are assigned", statement.targets.size()));
    ok = false;
  }
  if (!ok) {
    for (const Target& target : statement.targets)
      if (target.index == nullptr) Define(target.name, ErrorNode(target.range), target.range);
    return;
  }
  Block step = NewBlock(Block::Kind::kList, call.range);
  step.operation = ListOperation::kRemove;
  step.arguments.emplace_back("list", PassOperand(*call.arguments[0].value));
  const std::string index =
      PassNode(BuildIndexBound(*call.arguments[1].value), call.arguments[1].value->range);
  step.arguments.emplace_back("from", index);
  step.arguments.emplace_back("to", index);
  std::vector<std::string> results;
  for (const Target& target : statement.targets)
    results.push_back(target.index ? NewTemporary() : VariableFor(target.name));
  results.resize(2);
  const std::vector<std::string> given = results;
  EmitStep(std::move(step), std::move(results), call.range);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    const Target& target = statement.targets[i];
    scope_[given[i]].assigned_at = target.range;
    if (!target.index) continue;
    if (IsListVariable(target.name)) {
      EmitListAssign(target, given[i]);
    } else {
      Error(target.range, fmt::format("a list cannot be assigned to cells of '{}'", target.name));
    }
  }
}

// True if the statement is one on lists, which is then built.
bool BodyBuilder::BuildListStatement(const Statement& statement) {
  const Expression* const value = statement.value.get();
  switch (statement.kind) {
    case Statement::Kind::kIfdef:
      if (FindScriptArgument(statement.name)) return false;
      [[fallthrough]];
    case Statement::Kind::kAssign: {
      const Target& target = statement.targets[0];
      if (target.index != nullptr) {
        if (!IsListVariable(target.name)) return false;
        HoistCalls(*value);
        HoistIndex(*target.index);
        EmitListAssign(target, PassOperand(*value));
        return true;
      }
      const std::optional<ListOperation> operation = ListOperationOf(*value);
      if (!operation) return false;
      HoistInside(*value);
      EmitListStep(*value, *operation, VariableFor(target.name));
      scope_[VariableFor(target.name)].assigned_at = target.range;
      return true;
    }
    case Statement::Kind::kMultiAssign:
      if (value->name != "remove" || program_.FindCallee(file_, *value) != nullptr) return false;
      BuildRemove(statement);
      return true;
    case Statement::Kind::kCall: {
      const bool takes_list = value->name_space.empty() && !value->arguments.empty() &&
                              program_.FindCallee(file_, *value) == nullptr &&
                              IsList(*value->arguments[0].value);
      if (takes_list && value->name == "write") {
        BuildListWrite(*value);
        return true;
      }
      if (!takes_list || value->name != "print" || value->arguments.size() > 1) return false;
      HoistCalls(*value->arguments[0].value);
      Block step = NewBlock(Block::Kind::kList, value->range);
      step.operation = ListOperation::kToString;
      step.arguments.emplace_back("x", PassOperand(*value->arguments[0].value));
      const std::string text = NewTemporary();
      EmitStep(std::move(step), {text}, value->range);
      block_.Add("print", {block_.Read(text, scope_[text].known, At(value->range))}, At(value->name_range));
      return true;
    }
    default: return false;
  }
}

}  // namespace heddle::compiler

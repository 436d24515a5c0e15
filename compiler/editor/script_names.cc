// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/script_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/parse/statement_parser.h"

namespace heddle::compiler {
namespace {

// Definitions beyond these are left out of NameUse::from.
constexpr size_t kMostDefinitions = 32;

using Definitions = std::vector<int32_t>;                             // sorted
using Environment = std::map<std::string, Definitions, std::less<>>;  // by variable: whose value it may have

void Add(int32_t definition, Definitions* definitions) {
  const auto at = std::lower_bound(definitions->begin(), definitions->end(), definition);
  if (at != definitions->end() && *at == definition) return;
  if (definitions->size() < kMostDefinitions) definitions->insert(at, definition);
}

void AddAll(const Environment& other, Environment* environment) {
  for (const auto& [name, definitions] : other)
    for (const int32_t definition : definitions) Add(definition, &(*environment)[name]);
}

SourceRange NameRange(const Place& begin, const std::string& name) {
  return {begin, {begin.line, begin.column + static_cast<int32_t>(name.size())}};
}

// The name behind the namespace of ns::name.
SourceRange NameAtEnd(const SourceRange& range, const std::string& name) {
  return {{range.end.line, range.end.column - static_cast<int32_t>(name.size())}, range.end};
}

// Numbers what a body defines first, so that a loop knows what its body will have assigned.
class NameWalk {
 public:
  explicit NameWalk(const ScriptFile& file) : file_(file) {}

  std::vector<NameUse> Run() {
    environment_.clear();
    CountDefinitions(file_.statements);
    Walk(file_.statements);
    for (size_t i = 0; i < file_.functions.size(); ++i)
      WalkFunction(file_.functions[i], static_cast<int32_t>(i) + 1);
    return Sorted();
  }

 private:
  void WalkFunction(const FunctionDefinition& function, int32_t scope) {
    scope_ = scope;
    environment_.clear();
    NameUse& name = AddUse(NameUse::Kind::kFunction, function.name, function.name_range);
    name.is_definition = true;
    for (const ParameterDefinition& parameter : function.parameters) {
      if (parameter.default_value) Visit(*parameter.default_value);
      NameUse& use = Define(parameter.name, parameter.name_range, nullptr);
      use.parameter = &parameter;
    }
    CountDefinitions(function.body);
    Walk(function.body);
    for (const ParameterDefinition& result : function.results) {
      Read(result.name, result.name_range);
      uses_.back().parameter = &result;
    }
  }

  // --- Definitions of a body in the order of their statements: the names alone, for loops.
  void CountDefinitions(std::span<const Statement> statements) {
    names_ahead_.clear();
    next_ahead_ = 0;
    first_definition_ = static_cast<int32_t>(definitions_.size());
    Count(statements);
  }

  void Count(std::span<const Statement> statements) {
    for (const Statement& statement : statements) {
      for (const Target& target : statement.targets) names_ahead_.push_back(target.name);
      if (IsLoop(statement)) names_ahead_.push_back(statement.name);
      Count(statement.body);
      Count(statement.otherwise);
    }
  }

  static bool IsLoop(const Statement& statement) {
    return statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor;
  }

  static size_t DefinitionsIn(std::span<const Statement> statements) {
    size_t count = 0;
    for (const Statement& statement : statements)
      count += statement.targets.size() + (IsLoop(statement) ? 1 : 0) + DefinitionsIn(statement.body) +
               DefinitionsIn(statement.otherwise);
    return count;
  }

  // --- The walk.
  void Walk(std::span<const Statement> statements) {
    for (const Statement& statement : statements) Walk(statement);
  }

  void Walk(const Statement& statement) {
    using enum Statement::Kind;
    switch (statement.kind) {
      case kAssign:
      case kMultiAssign:
      case kCall:
      case kIfdef:
        if (statement.kind == kIfdef)
          AddUse(NameUse::Kind::kScriptArgument, statement.name, statement.name_range);
        Visit(*statement.value);
        for (const Target& target : statement.targets) Assign(target, statement);
        break;
      case kAccumulate:
        Visit(*statement.value);
        Assign(statement.targets[0], statement);
        break;
      case kSource: {
        NameUse& use = AddUse(NameUse::Kind::kNameSpace, statement.name, statement.name_range);
        use.is_definition = true;
        break;
      }
      case kSetDirectory: break;
      case kIf: {
        Visit(*statement.value);
        const Environment before = Ahead(DefinitionsIn(statement.body));
        Walk(statement.body);
        Environment after;
        for (const auto& [name, definitions] : before) after[name] = environment_[name];
        for (const auto& [name, definitions] : before) environment_[name] = definitions;
        Walk(statement.otherwise);
        AddAll(after, &environment_);
        break;
      }
      case kWhile:
        BeginLoop(statement);
        Visit(*statement.value);
        EndLoop(statement);
        break;
      case kFor:
      case kParallelFor:
        Visit(*statement.from);
        Visit(*statement.to);
        if (statement.increment) Visit(*statement.increment);
        BeginLoop(statement);
        EndLoop(statement);
        break;
    }
  }

  // What the variables hold that the next `count` definitions of the body assign.
  Environment Ahead(size_t count) const {
    Environment values;
    for (size_t i = next_ahead_; i < std::min(next_ahead_ + count, names_ahead_.size()); ++i) {
      const auto found = environment_.find(names_ahead_[i]);
      values[names_ahead_[i]] = found != environment_.end() ? found->second : Definitions();
    }
    return values;
  }

  // What a body assigns may be what its next round reads.
  void BeginLoop(const Statement& statement) {
    const size_t count = DefinitionsIn(statement.body);
    before_loops_.push_back(Ahead(count + (IsLoop(statement) ? 1 : 0)));
    if (IsLoop(statement)) Define(statement.name, statement.name_range, &statement);
    for (size_t i = next_ahead_; i < std::min(next_ahead_ + count, names_ahead_.size()); ++i)
      Add(first_definition_ + static_cast<int32_t>(i), &environment_[names_ahead_[i]]);
  }

  void EndLoop(const Statement& statement) {
    Walk(statement.body);
    AddAll(before_loops_.back(), &environment_);
    before_loops_.pop_back();
  }

  void Assign(const Target& target, const Statement& statement) {
    if (target.index) Visit(*target.index);
    Define(target.name, NameRange(target.range.begin, target.name), &statement);
  }

  NameUse& Define(const std::string& name, const SourceRange& range, const Statement* statement) {
    if (statement != nullptr) ++next_ahead_;
    environment_[name] = {static_cast<int32_t>(definitions_.size())};
    NameUse& use = AddUse(NameUse::Kind::kVariable, name, range);
    definitions_.push_back(uses_.size() - 1);
    use.is_definition = true;
    use.statement = statement;
    return use;
  }

  void Read(const std::string& name, const SourceRange& range) {
    NameUse& use = AddUse(NameUse::Kind::kVariable, name, range);
    if (const auto found = environment_.find(name); found != environment_.end()) use.from = found->second;
  }

  NameUse& AddUse(NameUse::Kind kind, const std::string& name, const SourceRange& range) {
    NameUse& use = uses_.emplace_back();
    use.kind = kind;
    use.name = name;
    use.range = range;
    use.scope = scope_;
    return use;
  }

  void Visit(const Index& index) {
    for (const IndexRange* range : {&index.rows, &index.columns}) {
      if (range->from) Visit(*range->from);
      if (range->to) Visit(*range->to);
    }
  }

  void Visit(const Expression& expression) {
    using enum Expression::Kind;
    switch (expression.kind) {
      case kLiteral: return;
      case kIdentifier:
      case kIndexed:
        if (!IsConstant(expression.name))
          Read(expression.name, NameRange(expression.name_range.begin, expression.name));
        break;
      case kParameter: AddUse(NameUse::Kind::kScriptArgument, expression.name, expression.name_range); break;
      case kCall: VisitCall(expression); break;
      case kIndexedValue:
      case kBinary:
      case kUnary:
      case kList: break;
    }
    if (expression.index) Visit(*expression.index);
    for (const ExpressionPointer& operand : expression.operands) Visit(*operand);
    for (const Argument& argument : expression.arguments) Visit(*argument.value);
  }

  void VisitCall(const Expression& call) {
    AddUse(NameUse::Kind::kFunction, call.name, NameAtEnd(call.name_range, call.name)).name_space =
        call.name_space;
    for (const Argument& argument : call.arguments) {
      if (argument.name.empty()) continue;
      NameUse& use = AddUse(NameUse::Kind::kArgument, argument.name, argument.name_range);
      use.name_space = call.name_space;
      use.callee = call.name;
    }
    if (!call.name_space.empty() ||
        std::find(std::begin(kOtherCalls), std::end(kOtherCalls), call.name) == std::end(kOtherCalls))
      return;
    // Texts that name a function of this file.
    for (const Argument& argument : call.arguments) {
      const Expression& value = *argument.value;
      if (value.kind != kLiteralText || !value.literal.IsString()) continue;
      const std::string& text = value.literal.AsString();
      const bool is_function = std::any_of(file_.functions.begin(), file_.functions.end(),
                                           [&](const FunctionDefinition& f) { return f.name == text; });
      // In quotes, and as it is written.
      const int32_t length = value.range.end.column - value.range.begin.column;
      if (!is_function || value.range.begin.line != value.range.end.line ||
          length != static_cast<int32_t>(text.size()) + 2)
        continue;
      AddUse(NameUse::Kind::kFunction, text,
             NameRange({value.range.begin.line, value.range.begin.column + 1}, text));
    }
  }

  // By place; `from` then counts in that order.
  std::vector<NameUse> Sorted() {
    std::vector<size_t> order(uses_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return uses_[a].range.begin < uses_[b].range.begin; });
    std::vector<int32_t> place(uses_.size());
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
    std::vector<NameUse> sorted;
    sorted.reserve(uses_.size());
    for (const size_t i : order) {
      NameUse& use = sorted.emplace_back(std::move(uses_[i]));
      for (int32_t& definition : use.from) {
        const auto index = static_cast<size_t>(definition);
        definition = index < definitions_.size() ? place[definitions_[index]] : -1;
      }
      std::erase(use.from, -1);
      std::sort(use.from.begin(), use.from.end());
    }
    return sorted;
  }

  static constexpr Expression::Kind kLiteralText = Expression::Kind::kLiteral;

  const ScriptFile& file_;
  std::vector<NameUse> uses_;
  std::vector<size_t> definitions_;  // those uses that define a variable
  int32_t scope_ = 0;
  Environment environment_;
  std::vector<Environment> before_loops_;
  // Of the body that is walked: the names that its statements define, in order; how many have been met, and
  // the number of the first one.
  std::vector<std::string> names_ahead_;
  size_t next_ahead_ = 0;
  int32_t first_definition_ = 0;
};

}  // namespace

std::vector<NameUse> NamesIn(const ScriptFile& file) { return NameWalk(file).Run(); }

}  // namespace heddle::compiler

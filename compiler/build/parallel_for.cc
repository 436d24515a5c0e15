// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/parallel_for.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/build/polynomial.h"

namespace heddle::compiler {
namespace {

// What an expression is at least and at most, as far as known; several true bounds each.
struct Bounds {
  std::vector<Polynomial> lower;
  std::vector<Polynomial> upper;
};

// One use of cells of a variable.
struct Access {
  bool whole = false;
  bool write = false;
  bool counts = false;   // written by a loop inside, which sets its variable before its body reads it
  Bounds dimensions[2];  // rows, columns; without bounds: all
  SourceRange range;
};

struct Uses {
  std::vector<Access> accesses;
  std::vector<SourceRange> accumulations;  // x += e
};

class Collector {
 public:
  Collector(const Statement& loop, const std::map<std::string, DataType>& outer)
      : loop_(loop), outer_(outer) {
    Count(loop.body);
    Visit(loop.body);
  }

  const std::map<std::string, Uses>& uses() const { return uses_; }
  const std::map<std::string, Bounds>& inner_loops() const { return inner_loops_; }

 private:
  void Count(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      for (const Target& target : statement.targets)
        if (target.index == nullptr) ++assignments_[target.name];
      if (statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor)
        ++assignments_[statement.name];
      Count(statement.body);
      Count(statement.otherwise);
    }
  }

  void Visit(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) Visit(statement);
  }

  void Visit(const Statement& statement) {
    for (const ExpressionPointer* part :
         {&statement.value, &statement.from, &statement.to, &statement.increment})
      if (*part) Visit(**part);
    for (const Target& target : statement.targets) {
      if (target.index) {
        VisitIndex(*target.index);
        AddIndexed(target.name, *target.index, true, target.range);
        if (statement.kind == Statement::Kind::kAccumulate)
          AddIndexed(target.name, *target.index, false, target.range);
      } else if (statement.kind == Statement::Kind::kAccumulate) {
        if (outer_.contains(target.name)) uses_[target.name].accumulations.push_back(target.range);
      } else {
        AddWhole(target.name, true, target.range);
      }
    }
    if (statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor) {
      AddWhole(statement.name, true, statement.name_range, true);
      inner_loops_[statement.name] = {BoundsOf(*statement.from).lower, BoundsOf(*statement.to).upper};
    }
    const bool defines = statement.kind == Statement::Kind::kAssign && statement.targets[0].index == nullptr;
    if (defines && assignments_[statement.targets[0].name] == 1)
      definitions_[statement.targets[0].name] = BoundsOf(*statement.value);
    if (IsUnchecked(statement)) return;
    Visit(statement.body);
    Visit(statement.otherwise);
  }

  // What a parfor inside does is the script's own promise where it says check=0.
  static bool IsUnchecked(const Statement& statement) {
    return std::any_of(
        statement.options.begin(), statement.options.end(),
        [](const ParallelForOption& option) { return option.name == "check" && option.text == "0"; });
  }

  void Visit(const Expression& expression) {
    for (const ExpressionPointer& operand : expression.operands) Visit(*operand);
    if (expression.kind == Expression::Kind::kIdentifier) AddWhole(expression.name, false, expression.range);
    if (expression.index) {
      VisitIndex(*expression.index);
      AddIndexed(expression.name, *expression.index, false, expression.range);
    }
    for (const Argument& argument : expression.arguments)
      if (!IsSizeOfVariable(expression)) Visit(*argument.value);
  }

  void VisitIndex(const Index& index) {
    for (const IndexRange* range : {&index.rows, &index.columns})
      for (const Expression* bound : {range->from.get(), range->to.get()})
        if (bound != nullptr) Visit(*bound);
  }

  // nrow(X): no cell is read.
  static bool IsSizeOfVariable(const Expression& expression) {
    return expression.kind == Expression::Kind::kCall && expression.name_space.empty() &&
           expression.arguments.size() == 1 &&
           (expression.name == "nrow" || expression.name == "ncol" || expression.name == "length") &&
           expression.arguments[0].value->kind == Expression::Kind::kIdentifier;
  }

  void AddWhole(const std::string& name, bool write, const SourceRange& range, bool counts = false) {
    if (!outer_.contains(name)) return;
    Access access;
    access.whole = true;
    access.write = write;
    access.counts = counts;
    access.range = range;
    uses_[name].accesses.push_back(std::move(access));
  }

  void AddIndexed(const std::string& name, const Index& index, bool write, const SourceRange& range) {
    if (!outer_.contains(name)) return;
    Access access;
    access.write = write;
    access.range = range;
    const IndexRange* ranges[2] = {&index.rows, &index.columns};
    for (int i = 0; i < 2; ++i) {
      if (ranges[i]->kind == IndexRange::Kind::kAll) continue;
      const Expression& to = ranges[i]->kind == IndexRange::Kind::kRange ? *ranges[i]->to : *ranges[i]->from;
      access.dimensions[i] = {BoundsOf(*ranges[i]->from).lower, BoundsOf(to).upper};
    }
    uses_[name].accesses.push_back(std::move(access));
  }

  std::optional<Polynomial> Exact(const Expression& expression) {
    const Bounds bounds = BoundsOf(expression);
    if (bounds.lower.size() == 1 && bounds.lower == bounds.upper) return bounds.lower[0];
    return std::nullopt;
  }

  Bounds BoundsOf(const Expression& expression) {
    const auto exactly = [](Polynomial value) { return Bounds{{value}, {value}}; };
    switch (expression.kind) {
      case Expression::Kind::kLiteral:
        if (!expression.literal.IsString()) return exactly(Polynomial(expression.literal.AsDouble()));
        return {};
      case Expression::Kind::kParameter: return exactly(Polynomial::Symbol("$" + expression.name));
      case Expression::Kind::kIdentifier: {
        auto definition = definitions_.find(expression.name);
        if (definition != definitions_.end()) return definition->second;
        const bool is_loop = expression.name == loop_.name || inner_loops_.contains(expression.name);
        if (!is_loop && assignments_.contains(expression.name)) return {};
        return exactly(Polynomial::Symbol(expression.name));
      }
      case Expression::Kind::kUnary:
        if (std::optional<Polynomial> x = Exact(*expression.operands[0])) {
          if (expression.name == "-") return exactly(*x * Polynomial(-1));
          if (expression.name == "+") return exactly(*x);
        }
        return {};
      case Expression::Kind::kBinary: {
        const std::optional<Polynomial> a = Exact(*expression.operands[0]);
        const std::optional<Polynomial> b = Exact(*expression.operands[1]);
        if (!a || !b) return {};
        if (expression.name == "+") return exactly(*a + *b);
        if (expression.name == "-") return exactly(*a - *b);
        if (expression.name == "*") return exactly(*a * *b);
        return {};
      }
      case Expression::Kind::kCall: {
        if (IsSizeOfVariable(expression)) {
          const std::string& name = expression.arguments[0].value->name;
          if (assignments_.contains(name)) return {};
          return exactly(Polynomial::Symbol(expression.name + "(" + name + ")"));
        }
        Bounds bounds;  // min(a, b) is at most a, and at most b
        if (expression.name != "min" && expression.name != "max") return bounds;
        for (const Argument& argument : expression.arguments) {
          const Bounds of_argument = BoundsOf(*argument.value);
          const bool is_min = expression.name == "min";
          std::vector<Polynomial>& to = is_min ? bounds.upper : bounds.lower;
          const std::vector<Polynomial>& from = is_min ? of_argument.upper : of_argument.lower;
          to.insert(to.end(), from.begin(), from.end());
        }
        return bounds;
      }
      case Expression::Kind::kIndexed:
      case Expression::Kind::kList: return {};
    }
    return {};
  }

  const Statement& loop_;
  const std::map<std::string, DataType>& outer_;
  std::map<std::string, int> assignments_;     // whole ones in the body, by name
  std::map<std::string, Bounds> definitions_;  // of names assigned once
  std::map<std::string, Bounds> inner_loops_;  // loops inside, by variable
  std::map<std::string, Uses> uses_;           // of outer variables
};

using InnerLoops = std::map<std::string, Bounds>;

// Replaces the variables of inner loops by their first or last value.
std::optional<Polynomial> Eliminate(Polynomial bound, const InnerLoops& loops, bool upper) {
  for (size_t round = 0; round <= loops.size(); ++round) {
    bool changed = false;
    for (const auto& [variable, of_loop] : loops) {
      if (!bound.Contains(variable)) continue;
      Polynomial coefficient;
      Polynomial rest;
      if (!bound.Split(variable, &coefficient, &rest)) return std::nullopt;
      const bool use_upper = coefficient.IsPositiveSum() == upper;
      if (!coefficient.IsPositiveSum() && !(coefficient * Polynomial(-1)).IsPositiveSum())
        return std::nullopt;
      const std::vector<Polynomial>& values = use_upper ? of_loop.upper : of_loop.lower;
      if (values.empty()) return std::nullopt;
      bound = coefficient * values[0] + rest;
      changed = true;
    }
    if (!changed) return bound;
  }
  return std::nullopt;
}

// The end of an interval as coefficient * i + rest.
struct End {
  Polynomial coefficient;
  Polynomial rest;
};

std::vector<End> EndsOf(const std::vector<Polynomial>& bounds, const InnerLoops& loops,
                        const std::string& variable, bool upper) {
  std::vector<End> ends;
  for (const Polynomial& bound : bounds) {
    std::optional<Polynomial> value = Eliminate(bound, loops, upper);
    End end;
    if (value && value->Split(variable, &end.coefficient, &end.rest)) ends.push_back(std::move(end));
  }
  return ends;
}

// True if the interval of p in one round and that of q in another can never share a number: the one of the
// next round begins behind the end of this one.
bool NeverMeet(const Access& p, const Access& q, int dimension, const InnerLoops& loops,
               const std::string& variable) {
  for (const End& high : EndsOf(p.dimensions[dimension].upper, loops, variable, true)) {
    for (const End& low : EndsOf(q.dimensions[dimension].lower, loops, variable, false)) {
      if (!(high.coefficient == low.coefficient)) continue;
      if (high.coefficient.IsPositiveSum() && (high.rest - low.rest - high.coefficient).IsNegative())
        return true;
      const Polynomial downward = high.coefficient * Polynomial(-1);
      if (downward.IsPositiveSum() && (high.rest - low.rest - downward).IsNegative()) return true;
    }
  }
  return false;
}

bool AreDisjoint(const std::vector<Access>& accesses, const InnerLoops& loops, const std::string& variable) {
  for (int dimension = 0; dimension < 2; ++dimension) {
    const bool disjoint = std::all_of(accesses.begin(), accesses.end(), [&](const Access& p) {
      return std::all_of(accesses.begin(), accesses.end(), [&](const Access& q) {
        return (!p.write && !q.write) || NeverMeet(p, q, dimension, loops, variable);
      });
    });
    if (disjoint) return true;
  }
  return false;
}

bool Reads(const Expression& expression, const std::string& name) {
  if ((expression.kind == Expression::Kind::kIdentifier || expression.kind == Expression::Kind::kIndexed) &&
      expression.name == name)
    return true;
  for (const ExpressionPointer& operand : expression.operands)
    if (Reads(*operand, name)) return true;
  for (const Argument& argument : expression.arguments)
    if (Reads(*argument.value, name)) return true;
  if (expression.index)
    for (const IndexRange* range : {&expression.index->rows, &expression.index->columns})
      for (const Expression* bound : {range->from.get(), range->to.get()})
        if (bound != nullptr && Reads(*bound, name)) return true;
  return false;
}

// True if a round may read `name` before it has assigned it. `assigned`: whether it has, before and after.
bool ReadsBeforeWrite(const std::vector<Statement>& statements, const std::string& name, bool* assigned) {
  for (const Statement& statement : statements) {
    const auto reads = [&](const ExpressionPointer& part) {
      return part != nullptr && !*assigned && Reads(*part, name);
    };
    if (reads(statement.value) || reads(statement.from) || reads(statement.to) || reads(statement.increment))
      return true;
    for (const Target& target : statement.targets) {
      if (target.index != nullptr) {
        for (const IndexRange* range : {&target.index->rows, &target.index->columns})
          if (reads(range->from) || reads(range->to)) return true;
      }
      if (target.name != name) continue;
      if (!*assigned && (target.index != nullptr || statement.kind == Statement::Kind::kAccumulate))
        return true;
      *assigned = true;
    }
    bool in_body = *assigned;
    bool in_otherwise = *assigned;
    const bool is_loop =
        statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor;
    if (is_loop && statement.name == name) in_body = true;
    if (ReadsBeforeWrite(statement.body, name, &in_body) ||
        ReadsBeforeWrite(statement.otherwise, name, &in_otherwise))
      return true;
    if (statement.kind == Statement::Kind::kIf && in_body && in_otherwise) *assigned = true;
  }
  return false;
}

}  // namespace

bool ReadsOfEarlierRounds(const Statement& loop, const std::string& name) {
  bool assigned = false;
  const bool in_predicate = loop.kind == Statement::Kind::kWhile && Reads(*loop.value, name);
  return in_predicate || ReadsBeforeWrite(loop.body, name, &assigned);
}

ParallelForReport CheckParallelFor(const Statement& loop, const std::map<std::string, DataType>& outer) {
  ParallelForReport report;
  const Collector collector(loop, outer);
  for (const auto& [name, uses] : collector.uses()) {
    if (name == loop.name) continue;
    if (!uses.accumulations.empty()) report.sums.push_back(name);
    const auto write =
        std::find_if(uses.accesses.begin(), uses.accesses.end(), [](const Access& a) { return a.write; });
    const bool whole_write = std::any_of(uses.accesses.begin(), uses.accesses.end(),
                                         [](const Access& a) { return a.write && a.whole; });
    const bool whole_access =
        std::any_of(uses.accesses.begin(), uses.accesses.end(), [](const Access& a) { return a.whole; });
    if (write == uses.accesses.end() && uses.accumulations.empty()) continue;
    if (write != uses.accesses.end() && !whole_write) report.merged.push_back(name);
    const auto conflict = [&](const SourceRange& range, std::string why) {
      report.conflicts.push_back({name, range, std::move(why)});
    };
    if (write == uses.accesses.end()) {
      if (!uses.accesses.empty())
        conflict(uses.accumulations[0], "a variable that is summed up with += cannot be read in the loop");
    } else if (whole_write) {
      const bool counts_only = std::all_of(uses.accesses.begin(), uses.accesses.end(),
                                           [](const Access& a) { return !a.write || a.counts; });
      bool assigned = false;
      if (outer.at(name) == DataType::kMatrix || outer.at(name) == DataType::kFrame) {
        conflict(write->range, fmt::format("every iteration assigns the whole {}", Name(outer.at(name))));
      } else if (ReadsBeforeWrite(loop.body, name, &assigned)) {
        conflict(write->range, "an iteration may read what an earlier one assigned");
      } else if (counts_only && uses.accumulations.empty()) {
        report.locals.push_back(name);
      } else {
        conflict(write->range,
                 fmt::format("every iteration assigns it, and '{}' was there before the loop; a "
                             "variable of each iteration needs a name of its own",
                             name));
      }
    } else if (!uses.accumulations.empty()) {
      conflict(uses.accumulations[0],
               "a variable that is summed up with += cannot be assigned in the loop as well");
    } else if (whole_access) {
      conflict(write->range, "the loop reads all of it and writes parts of it");
    } else if (!AreDisjoint(uses.accesses, collector.inner_loops(), loop.name)) {
      conflict(write->range, "two iterations may touch the same cells");
    }
  }
  return report;
}

}  // namespace heddle::compiler

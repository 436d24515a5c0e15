// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/parallel_for.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/build/parallel_uses.h"

namespace heddle::compiler {
namespace {

using InnerLoops = std::map<std::string, InnerLoop>;

// The end of an interval as coefficient * i + rest.
struct End {
  Polynomial coefficient;
  Polynomial rest;
};

// Decides which accesses of different iterations share no cell, and remembers what it took for granted.
class Disjointness {
 public:
  Disjointness(const Statement& loop, const ParallelUses& uses, ParallelForReport* report)
      : variable_(loop.name), uses_(uses), report_(report) {}

  bool AreDisjoint(const std::vector<Access>& accesses) {
    return std::all_of(accesses.begin(), accesses.end(), [&](const Access& p) {
      return std::all_of(accesses.begin(), accesses.end(), [&](const Access& q) {
        return (!p.write && !q.write) || NeverMeet(p, q, 0) || NeverMeet(p, q, 1);
      });
    });
  }

 private:
  // What a proof rests on.
  struct Proof {
    std::vector<Polynomial> polynomials;
    std::set<std::string> turning;  // Inner loops that must count up.
  };

  // True if the interval of p in one round and that of q in a later one can never share a number.
  bool NeverMeet(const Access& p, const Access& q, int dimension) {
    const Bounds& of_p = p.dimensions[dimension];
    const Bounds& of_q = q.dimensions[dimension];
    if (HaveNoCommonMultiple(of_p, of_q)) return true;
    for (const Polynomial& upper : of_p.upper)
      for (const Polynomial& lower : of_q.lower)
        if (IsBehindNextRound(upper, lower) || IsAlwaysBelow(upper, lower)) return true;
    for (const Polynomial& lower : of_p.lower)
      for (const Polynomial& upper : of_q.upper)
        if (IsAlwaysBelow(upper, lower)) return true;
    return false;
  }

  // The interval that begins at `lower` begins, in the next round, behind the one that ends at `upper` now.
  bool IsBehindNextRound(const Polynomial& upper, const Polynomial& lower) {
    Proof proof;
    const std::optional<End> high = EndOf(upper, true, &proof);
    const std::optional<End> low = EndOf(lower, false, &proof);
    if (!high || !low || !(high->coefficient == low->coefficient)) return false;
    const Polynomial upward = high->coefficient;
    const Polynomial downward = high->coefficient * Polynomial(-1);
    const bool holds = (upward.IsPositiveSum() && IsShort(*high, *low, upward)) ||
                       (downward.IsPositiveSum() && IsShort(*high, *low, downward));
    return holds && Assume(proof);
  }
  bool IsShort(const End& high, const End& low, const Polynomial& coefficient) const {
    return (high.rest - low.rest - coefficient * uses_.step()).IsNegative();
  }

  // The one interval stays below the other in all rounds of both.
  bool IsAlwaysBelow(const Polynomial& upper, const Polynomial& lower) {
    if (uses_.counter().lower.empty()) return false;
    InnerLoops loops = uses_.inner_loops();
    loops[variable_].values = uses_.counter();
    Proof proof;
    const std::optional<Polynomial> high = Eliminate(upper, loops, true, &proof);
    const std::optional<Polynomial> low = Eliminate(lower, loops, false, &proof);
    return high && low && (*high - *low).IsNegative() && Assume(proof);
  }

  // a*i + b and c*j + d are never the same number where no common divisor of a and c divides d - b.
  bool HaveNoCommonMultiple(const Bounds& p, const Bounds& q) const {
    if (p.lower.size() != 1 || p.lower != p.upper || q.lower.size() != 1 || q.lower != q.upper) return false;
    End ends[2];
    if (!p.lower[0].Split(variable_, &ends[0].coefficient, &ends[0].rest) ||
        !q.lower[0].Split(variable_, &ends[1].coefficient, &ends[1].rest))
      return false;
    const std::optional<double> a = ends[0].coefficient.AsConstant(), c = ends[1].coefficient.AsConstant();
    const std::optional<double> distance = (ends[1].rest - ends[0].rest).AsConstant();
    if (!a || !c || !distance) return false;
    const int64_t divisor = std::gcd(static_cast<int64_t>(*a), static_cast<int64_t>(*c));
    return divisor == 0 ? *distance != 0 : static_cast<int64_t>(*distance) % divisor != 0;
  }

  std::optional<End> EndOf(const Polynomial& bound, bool upper, Proof* proof) const {
    const std::optional<Polynomial> value = Eliminate(bound, uses_.inner_loops(), upper, proof);
    End end;
    if (!value || !value->Split(variable_, &end.coefficient, &end.rest)) return std::nullopt;
    return end;
  }

  // Replaces the variables of loops by their first or last value.
  static std::optional<Polynomial> Eliminate(Polynomial bound, const InnerLoops& loops, bool upper,
                                             Proof* proof) {
    for (size_t round = 0; round <= loops.size(); ++round) {
      proof->polynomials.push_back(bound);
      bool changed = false;
      for (const auto& [variable, of_loop] : loops) {
        if (!bound.Contains(variable)) continue;
        Polynomial coefficient;
        Polynomial rest;
        if (!bound.Split(variable, &coefficient, &rest)) return std::nullopt;
        const bool is_positive = coefficient.IsPositiveSum();
        if (!is_positive && !(coefficient * Polynomial(-1)).IsPositiveSum()) return std::nullopt;
        const Bounds& all = of_loop.values;
        const std::vector<Polynomial>& values = is_positive == upper ? all.upper : all.lower;
        if (values.empty()) return std::nullopt;
        if (of_loop.may_turn) proof->turning.insert(variable);
        bound = coefficient * values[0] + rest;
        changed = true;
      }
      if (!changed) return bound;
    }
    return std::nullopt;
  }

  // Everything that the proof calculates with has to be a natural number.
  bool Assume(const Proof& proof) {
    std::set<std::string> symbols;
    for (const Polynomial& polynomial : proof.polynomials) polynomial.AddSymbols(&symbols);
    uses_.step().AddSymbols(&symbols);
    for (const std::string& symbol : symbols)
      if (!uses_.inner_loops().contains(symbol) && symbol.back() != ')') report_->natural.insert(symbol);
    report_->upward.insert(proof.turning.begin(), proof.turning.end());
    return true;
  }

  const std::string& variable_;
  const ParallelUses& uses_;
  ParallelForReport* report_;
};

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

ParallelForReport CheckParallelFor(const Statement& loop, const std::map<std::string, DataType>& outer,
                                   const std::function<std::optional<Scalar>(const std::string&)>& argument,
                                   bool trusts_unchecked) {
  ParallelForReport report;
  const ParallelUses uses_of_all(loop, outer, argument, trusts_unchecked);
  Disjointness disjointness(loop, uses_of_all, &report);
  for (const auto& [name, uses] : uses_of_all.uses()) {
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
    } else if (!disjointness.AreDisjoint(uses.accesses)) {
      conflict(write->range, "two iterations may touch the same cells");
    }
  }
  return report;
}

}  // namespace heddle::compiler

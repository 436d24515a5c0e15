// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/build/polynomial.h"
#include "compiler/parse/ast.h"

namespace heddle::compiler {

/// What an expression is at least and at most, as far as known; several true bounds each. Only with
/// coefficients that are whole numbers: others would be cut off where cells are counted.
struct Bounds {
  std::vector<Polynomial> lower;
  std::vector<Polynomial> upper;
};

/// One use of cells of a variable.
struct Access {
  bool whole = false;
  bool write = false;
  bool counts = false;   ///< Written by a loop inside, which sets its variable before its body reads it.
  Bounds dimensions[2];  ///< Rows, columns; without bounds: all.
  SourceRange range;
};

/// What a loop inside counts through; without bounds where that is not known.
struct InnerLoop {
  Bounds values;
  bool may_turn = false;  ///< from:to, which counts down where to is less: then the bounds do not hold.
};

/// What the body of a parfor does with variables of before it.
class ParallelUses {
 public:
  struct Uses {
    std::vector<Access> accesses;
    std::vector<SourceRange> accumulations;  ///< x += e
  };
  using FindArgument = std::function<std::optional<Scalar>(const std::string& name)>;

  /// `outer` holds the variables of before the loop, `argument` finds arguments of the script. With
  /// `trusts_unchecked` the bodies of parfors inside that say check=0 are left out.
  ParallelUses(const Statement& loop, const std::map<std::string, DataType>& outer,
               const FindArgument& argument, bool trusts_unchecked);

  const std::map<std::string, Uses>& uses() const { return uses_; }
  const std::map<std::string, InnerLoop>& inner_loops() const { return inner_loops_; }
  /// What the loop itself counts through: numbers, or without bounds.
  const Bounds& counter() const { return counter_; }
  /// By how much its variable differs from round to round, at least.
  const Polynomial& step() const { return step_; }
  /// False where the body assigns the loop's variable.
  bool keeps_counter() const { return !assignments_.contains(loop_.name); }

 private:
  void Count(const std::vector<Statement>& statements);
  void CountLoop(const Statement& loop);
  void Visit(const std::vector<Statement>& statements);
  void Visit(const Statement& statement);
  void Visit(const Expression& expression);
  void VisitIndex(const Index& index);
  void AddWhole(const std::string& name, bool write, const SourceRange& range, bool counts = false);
  void AddIndexed(const std::string& name, const Index& index, bool write, const SourceRange& range);
  InnerLoop ValuesOf(const Statement& loop);
  std::optional<Polynomial> Exact(const Expression& expression);
  Bounds BoundsOf(const Expression& expression);
  Bounds BoundsOfCall(const Expression& call);

  const Statement& loop_;
  const std::map<std::string, DataType>& outer_;
  const FindArgument& argument_;
  const bool trusts_unchecked_;
  Bounds counter_;
  Polynomial step_{1};
  std::map<std::string, int> assignments_;        // Whole ones in the body, by name,
  std::map<std::string, int> loops_;              // those by loops alone.
  std::map<std::string, Bounds> definitions_;     // Of names assigned once.
  std::map<std::string, InnerLoop> inner_loops_;  // By variable.
  std::map<std::string, Uses> uses_;              // Of outer variables.
};

}  // namespace heddle::compiler

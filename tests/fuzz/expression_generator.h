// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

struct MatrixVariable {
  std::string name;
  int64_t rows = 0;
  int64_t columns = 0;
};

/// What a place in a generated script may name.
struct Scope {
  std::vector<MatrixVariable> matrices;
  std::vector<std::string> scalars;
  std::vector<std::string> texts;
};

/// Expressions of a wanted type and shape, so that most of them are right and reach what computes; now and
/// then a part is replaced by something hostile.
class ExpressionGenerator {
 public:
  /// Of the parts of expressions, `hostile_per_mille` are hostile.
  ExpressionGenerator(Chooser& choose, int hostile_per_mille)
      : choose_(choose), hostile_per_mille_(hostile_per_mille) {}

  std::string Matrix(const Scope& scope, int64_t rows, int64_t columns, int depth);
  std::string Scalar(const Scope& scope, int depth);
  std::string Condition(const Scope& scope, int depth);
  std::string Text(const Scope& scope, int depth);
  /// A call of any builtin with arguments of any kind, in any number, by position or by name.
  std::string AnyCall(const Scope& scope);
  std::string Numbers(const Scope& scope, int length);
  /// Hundreds to thousands of parentheses, signs, operators or brackets: what recursion meets.
  std::string Deep(const Scope& scope);

 private:
  bool IsHostile() { return choose_.Below(1000) < static_cast<size_t>(hostile_per_mille_); }
  std::string Leaf(const Scope& scope, int64_t rows, int64_t columns);
  std::string CellWise(const Scope& scope, int64_t rows, int64_t columns, int depth);
  std::string Reorganized(const Scope& scope, int64_t rows, int64_t columns, int depth);
  std::string Vector(const Scope& scope, int64_t rows, int64_t columns, int depth);
  std::string Any(const Scope& scope, int depth);

  Chooser& choose_;
  const int hostile_per_mille_;
};

}  // namespace heddle::fuzz

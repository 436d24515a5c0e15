// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "compiler/rules/rule_match.h"

namespace heddle::compiler {

/// Algebra in DML, so that a user can read it and one property test can check every rule on random matrices.
///
/// In `before` a capital letter stands for any matrix, a small one for any scalar that is a number, a number
/// for itself; the same letter twice means the same node. f(...) stands for any chain of cell-wise operators
/// around the one inside, other operands included, none at all included; it says the same chain in `after`.
/// index(X, k, l, m, n) is X[k:l, m:n], `none` a bound that is left out.
/// Operators inside have no other reader, unless `shared` says that this does not matter. `after` may use
/// operators that DML has no name for. A rule never changes type, size or format of the result; where it
/// replaces an operator that may fail, its condition makes sure that it does not.
struct Rule {
  std::string_view name;
  std::string_view before;
  std::string_view after;
  bool (*condition)(const Match& match) =
      nullptr;  ///< On types, shapes and formats only (docs/numerics.md R3).
  bool shared = false;
};

/// Both sides have the same bits for every matrix, NaN, infinities and signed zeros included
/// (rules_exact.cc).
std::span<const Rule> ExactRules();
/// Both sides are the same number, added up in different orders: equal to a few ulp of the sum of absolute
/// values. These rules belong to the definition of the program's result and apply in every mode
/// (rules_order.cc).
std::span<const Rule> OrderRules();

}  // namespace heddle::compiler

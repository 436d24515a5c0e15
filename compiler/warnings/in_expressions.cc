// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "compiler/warnings/warners.h"

namespace heddle::compiler {
namespace {

bool IsComparison(const Expression& expression) {
  constexpr std::array<std::string_view, 6> kComparisons = {"<", "<=", ">", ">=", "==", "!="};
  return expression.kind == Expression::Kind::kBinary &&
         std::find(kComparisons.begin(), kComparisons.end(), expression.name) != kComparisons.end();
}

// Of an order: a < b, no a == b.
bool IsOrder(const Expression& expression) {
  return IsComparison(expression) && expression.name != "==" && expression.name != "!=";
}

bool IsNaN(const Expression& expression) {
  return expression.kind == Expression::Kind::kIdentifier && expression.name == "NaN";
}

bool IsZero(const Expression& expression) {
  return expression.kind == Expression::Kind::kLiteral &&
         (expression.literal.type() == ValueType::kInteger ||
          expression.literal.type() == ValueType::kDouble) &&
         expression.literal.AsDouble() == 0;
}

void OfNaN(const Expression& expression, const Warner& warn) {
  if (!IsComparison(expression)) return;
  if (!IsNaN(*expression.operands[0]) && !IsNaN(*expression.operands[1])) return;
  warn(expression.range,
       fmt::format("a comparison with NaN is {} TRUE", expression.name == "!=" ? "always" : "never"))
      .notes.push_back("isNaN(x) tells where x is NaN");
}

// a < b < c without parentheses compares TRUE or FALSE with c.
void OfChains(const Expression& expression, const Warner& warn) {
  if (!IsOrder(expression)) return;
  const Expression& left = *expression.operands[0];
  const bool is_in_parentheses = IsOrder(left) && left.range.begin < left.operands[0]->range.begin;
  if (!IsOrder(left) || is_in_parentheses) return;
  warn(expression.name_range, "this compares the outcome of another comparison, TRUE or FALSE")
      .notes.push_back("a < b & b < c says that b is between a and c; (a < b) < c says that this is meant");
}

void OfZero(const Expression& expression, const Warner& warn) {
  if (expression.kind != Expression::Kind::kBinary || !IsZero(*expression.operands[1])) return;
  if (expression.name == "%/%")
    warn(expression.range, "a whole division by 0 gives no finite number");
  else if (expression.name == "%%")
    warn(expression.range, "the remainder of a division by 0 is NaN");
}

void OfNames(const Expression& expression, const Warner& warn) {
  if (!IsCallOf(expression, "list")) return;
  std::set<std::string_view> names;
  for (const Argument& argument : expression.arguments)
    if (!argument.name.empty() && !names.insert(argument.name).second)
      warn(argument.name_range, fmt::format("the list has two elements with the name '{}'", argument.name))
          .notes.push_back("the name finds the last of them");
}

}  // namespace

void WarnOfExpression(const Expression& expression, const Warner& warn) {
  OfNaN(expression, warn);
  OfChains(expression, warn);
  OfZero(expression, warn);
  OfNames(expression, warn);
}

}  // namespace heddle::compiler

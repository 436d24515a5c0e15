// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/values/column_groups.h"

// Where addition is exact, its order is free (docs/compression.md): sums of numbers that are all multiples of
// one power of two, the *unit*, are exact as long as no partial sum reaches 2^53 units. Numbers of dummies,
// codes, whole numbers, dates and pixels are of this kind.
namespace heddle::ops {

/// Some numbers as multiples of 2^exponent. An infinity or a NaN is none. -0.0 counts as zero: every chain of
/// additions starts at +0.0 and so never becomes -0.0 by adding it (docs/numerics.md, R2); a sum in another
/// order has to start there, too.
struct ExactUnits {
  /// Of zeros alone, which are multiples of any unit.
  static constexpr int kAnyExponent = 1 << 20;

  bool is_exact = true;         ///< All are finite. The rest holds only then.
  int exponent = kAnyExponent;  ///< The largest one for which that is true, but for zeros.
  double most = 0;  ///< The largest of them, without its sign, in units; infinite where no double.

  static ExactUnits None() { return {.is_exact = false}; }
};

ExactUnits UnitsOf(std::span<const double> numbers);
ExactUnits UnitsOf(std::span<const float> numbers);
/// Of the numbers in column k of a group (of its dictionary, so tuples that no row has count, too); those of
/// kUncompressed are not looked at: none.
ExactUnits UnitsOfColumn(const ColumnGroup& group, int64_t k);
/// Of all numbers of the group.
ExactUnits UnitsOf(const ColumnGroup& group);

/// Of the numbers of both.
ExactUnits Joined(const ExactUnits& a, const ExactUnits& b);
/// Of the products of two numbers, one of each.
ExactUnits ProductsOf(const ExactUnits& a, const ExactUnits& b);

/// The digits of what sums are computed in.
inline constexpr int kDoubleDigits = 53, kFloatDigits = 24;

/// Whether every sum of at most `terms` of the numbers is exact in every order, and so is every sum of
/// products where the numbers are ProductsOf two, rounded before they are added or not.
bool AddExactly(const ExactUnits& units, double terms, int digits = kDoubleDigits);

}  // namespace heddle::ops

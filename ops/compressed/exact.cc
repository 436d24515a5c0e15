// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/exact.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace heddle::ops {
namespace {

constexpr int kFractionBits = 52, kLeastExponent = -1074, kExponents = 0x7FF;
constexpr uint64_t kFraction = (uint64_t{1} << kFractionBits) - 1;

// Adds one number to what is known of others: the exponent of its lowest digit, and its size.
void Add(double number, ExactUnits* units, double* largest) {
  const uint64_t bits = std::bit_cast<uint64_t>(number);
  const int exponent = static_cast<int>(bits >> kFractionBits) & kExponents;
  if (exponent == kExponents) units->is_exact = false;
  const uint64_t fraction = (bits & kFraction) | (exponent == 0 ? 0 : uint64_t{1} << kFractionBits);
  if (fraction == 0) return;
  units->exponent =
      std::min(units->exponent, std::max(exponent, 1) - 1 + kLeastExponent + std::countr_zero(fraction));
  *largest = std::max(*largest, std::abs(number));
}

// A number of doubles that may be too large for one.
ExactUnits WithLargest(ExactUnits units, double largest) {
  if (!units.is_exact) return ExactUnits::None();
  // Halves first: the number may be below 2^-1022, and its exponent too low for one power.
  const int half = -units.exponent / 2;
  units.most = largest == 0 ? 0 : std::ldexp(std::ldexp(largest, half), -units.exponent - half);
  return units;
}

template <typename T>
ExactUnits UnitsOfRun(const T* numbers, int64_t count, int64_t stride) {
  ExactUnits units;
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) Add(static_cast<double>(numbers[i * stride]), &units, &largest);
  return WithLargest(units, largest);
}

ExactUnits UnitsOfDictionary(const ColumnGroup& group, int64_t first, int64_t count, int64_t stride) {
  if (group.encoding == Encoding::kEmpty) return {};
  if (group.encoding == Encoding::kUncompressed) return ExactUnits::None();
  if (group.dictionary.element_type() == ElementType::kFloat32)
    return UnitsOfRun(group.dictionary.data<float>() + first, count, stride);
  return UnitsOfRun(group.dictionary.data() + first, count, stride);
}

}  // namespace

ExactUnits UnitsOf(std::span<const double> numbers) {
  return UnitsOfRun(numbers.data(), static_cast<int64_t>(numbers.size()), 1);
}
ExactUnits UnitsOf(std::span<const float> numbers) {
  return UnitsOfRun(numbers.data(), static_cast<int64_t>(numbers.size()), 1);
}

ExactUnits UnitsOfColumn(const ColumnGroup& group, int64_t k) {
  return UnitsOfDictionary(group, k, group.tuples(), group.width());
}
ExactUnits UnitsOf(const ColumnGroup& group) {
  return UnitsOfDictionary(group, 0, group.tuples() * group.width(), 1);
}

ExactUnits Joined(const ExactUnits& a, const ExactUnits& b) {
  if (!a.is_exact || !b.is_exact) return ExactUnits::None();
  if (a.most == 0) return b;
  if (b.most == 0) return a;
  const int exponent = std::min(a.exponent, b.exponent);
  return {
      .exponent = exponent,
      .most = std::max(std::ldexp(a.most, a.exponent - exponent), std::ldexp(b.most, b.exponent - exponent))};
}

ExactUnits ProductsOf(const ExactUnits& a, const ExactUnits& b) {
  if (!a.is_exact || !b.is_exact) return ExactUnits::None();
  if (a.most == 0 || b.most == 0) return {};
  return {.exponent = a.exponent + b.exponent, .most = a.most * b.most};
}

bool AddExactly(const ExactUnits& units, double terms, int digits) {
  if (!units.is_exact) return false;
  if (units.most == 0 || terms == 0) return true;
  // A double has units from 2^-1074 on, a float from 2^-149, and both end below 2^(1 - least) / 2^digits.
  const int least = digits == kDoubleDigits ? -1074 : -149;
  const int greatest = (digits == kDoubleDigits ? 1024 : 128) - digits;
  return units.exponent >= least && units.exponent <= greatest &&
         terms * units.most < std::ldexp(1.0, digits);
}

}  // namespace heddle::ops

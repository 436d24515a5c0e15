// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace heddle::ops {

/// The sum of doubles without rounding, rounded to the nearest double at its end: the same in any order, and
/// in any parts. With infinities what their sum is, NaN with a NaN.
///
/// Source: a fixed-point number wide enough for every double, as in Neal, Fast exact summation using small
/// and
///         large superaccumulators (2015), section 2. Cost: some 3 ns a number.
class ExactSum {
 public:
  /// Digits of the number, and how many doubles a sum takes as cells of a matrix.
  static constexpr int kDigits = 68, kCells = kDigits + 3;

  void Add(double x);
  void Add(const ExactSum& other);
  double Rounded() const;

  /// To cells that hold the sum, and from them.
  void Write(double* cells) const;
  static ExactSum Read(const double* cells);

 private:
  static constexpr int kDigitBits = 32;
  static constexpr int64_t kAddsBeforeCarry = int64_t{1} << 29;

  void Carry();

  // The sum of digits[k] * 2^(32 k - 1074). Digits but the last are from 0 to 2^32 - 1 after Carry().
  std::array<int64_t, kDigits> digits_{};
  int64_t adds_ = 0;  // Since the last Carry().
  bool has_nan_ = false, has_infinity_ = false, has_negative_infinity_ = false;
};

}  // namespace heddle::ops

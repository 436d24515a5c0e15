// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace heddle::ops {

/// A finite number with the 53 digits of binary64 whose exponent has no upper end: what sums are computed in
/// that leave the range of binary64 on their way (docs/numerics.md, section 3). Where an operation on doubles
/// has a finite result, so has the same operation here, to the last bit. What is larger is stored multiplied
/// by 2^-kScale.
class WideNumber {
 public:
  /// Squares of differences of doubles, added up over any matrix, are below 2^(1024 + kScale).
  static constexpr int kScale = 1100;

  WideNumber() = default;
  WideNumber(double value) : stored_(value) {}  // NOLINT(google-explicit-constructor): a double is one.
  /// scaled * 2^kScale.
  static WideNumber FromScaled(double scaled) {
    // 2^1024, the least power of two that is no double.
    if (!(std::abs(scaled) >= std::ldexp(1.0, 1024 - kScale))) return WideNumber(std::ldexp(scaled, kScale));
    WideNumber number(scaled);
    number.is_beyond_ = true;
    return number;
  }

  /// True if it is beyond the largest double.
  bool IsBeyond() const { return is_beyond_; }
  /// The number, or the number * 2^-kScale if it is beyond the largest double.
  double stored() const { return stored_; }
  /// Infinity for a number beyond the largest double.
  double ToDouble() const {
    return is_beyond_ ? std::copysign(std::numeric_limits<double>::infinity(), stored_) : stored_;
  }
  /// The largest double for a number beyond it.
  double ToNearestDouble() const {
    return is_beyond_ ? std::copysign(std::numeric_limits<double>::max(), stored_) : stored_;
  }

  friend WideNumber operator-(const WideNumber& a) {
    WideNumber negative(a);
    negative.stored_ = -a.stored_;
    return negative;
  }
  friend WideNumber operator+(const WideNumber& a, const WideNumber& b) {
    const double sum = a.stored_ + b.stored_;
    if (AreEnough(a, b, sum)) return WideNumber(sum);
    return FromScaled(a.Scaled() + b.Scaled());
  }
  friend WideNumber operator-(const WideNumber& a, const WideNumber& b) { return a + (-b); }
  friend WideNumber operator*(const WideNumber& a, const WideNumber& b) {
    const double product = a.stored_ * b.stored_;
    if (AreEnough(a, b, product)) return WideNumber(product);
    const Parts x = a.Split(), y = b.Split();
    return FromParts(x.fraction * y.fraction, x.exponent + y.exponent);
  }
  friend WideNumber operator/(const WideNumber& a, const WideNumber& b) {
    const double quotient = a.stored_ / b.stored_;
    if (AreEnough(a, b, quotient) || b.stored_ == 0) return WideNumber(quotient);
    const Parts x = a.Split(), y = b.Split();
    return FromParts(x.fraction / y.fraction, x.exponent - y.exponent);
  }
  friend WideNumber SquareRoot(const WideNumber& a) {
    if (!a.is_beyond_) return WideNumber(std::sqrt(a.stored_));
    static_assert(kScale % 2 == 0);
    return FromParts(std::sqrt(a.stored_), kScale / 2);
  }

 private:
  struct Parts {
    double fraction;
    int exponent;
  };
  // True if the result on doubles is the one, as it always is of infinities and NaN.
  static bool AreEnough(const WideNumber& a, const WideNumber& b, double result) {
    return !a.is_beyond_ && !b.is_beyond_ &&
           (std::isfinite(result) || !std::isfinite(a.stored_) || !std::isfinite(b.stored_));
  }
  // What this loses at the lower end of doubles is far below the last digit of a sum beyond the upper one.
  double Scaled() const { return is_beyond_ ? stored_ : std::ldexp(stored_, -kScale); }
  Parts Split() const {
    Parts parts{};
    parts.fraction = std::frexp(stored_, &parts.exponent);
    parts.exponent += is_beyond_ ? kScale : 0;
    return parts;
  }
  // fraction * 2^exponent, the fraction near 1.
  static WideNumber FromParts(double fraction, int exponent) {
    if (exponent < 1000) return WideNumber(std::ldexp(fraction, exponent));
    return FromScaled(std::ldexp(fraction, exponent - kScale));
  }

  double stored_ = 0;
  bool is_beyond_ = false;
};

}  // namespace heddle::ops

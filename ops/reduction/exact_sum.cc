// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace heddle::ops {
namespace {

constexpr int64_t kDigitMask = 0xffffffff;
constexpr int kSmallestExponent = -1074;

}  // namespace

void ExactSum::Add(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  const bool is_negative = bits >> 63 != 0;
  if (exponent == 0x7ff) {
    has_nan_ |= mantissa != 0;
    (is_negative ? has_negative_infinity_ : has_infinity_) |= mantissa == 0;
    return;
  }
  if (exponent != 0) mantissa |= uint64_t{1} << 52;
  const int shift = exponent == 0 ? 0 : exponent - 1;  // x is mantissa * 2^(shift - 1074).
  int64_t* const digit = digits_.data() + shift / kDigitBits;
  const int offset = shift % kDigitBits;
  const uint64_t low = (mantissa & kDigitMask) << offset, high = (mantissa >> kDigitBits) << offset;
  const int64_t sign = is_negative ? -1 : 1;
  digit[0] += sign * static_cast<int64_t>(low & kDigitMask);
  digit[1] += sign * static_cast<int64_t>((low >> kDigitBits) + (high & kDigitMask));
  digit[2] += sign * static_cast<int64_t>(high >> kDigitBits);
  if (++adds_ == kAddsBeforeCarry) Carry();
}

void ExactSum::Carry() {
  adds_ = 0;
  for (size_t k = 0; k + 1 < kDigits; ++k) {
    digits_[k + 1] += digits_[k] >> kDigitBits;  // Rounds down, also of what is negative.
    digits_[k] &= kDigitMask;
  }
}

void ExactSum::Add(const ExactSum& other) {
  ExactSum carried = other;
  carried.Carry();
  Carry();
  for (size_t k = 0; k < kDigits; ++k) digits_[k] += carried.digits_[k];
  Carry();
  has_nan_ |= other.has_nan_;
  has_infinity_ |= other.has_infinity_;
  has_negative_infinity_ |= other.has_negative_infinity_;
}

double ExactSum::Rounded() const {
  if (has_nan_ || (has_infinity_ && has_negative_infinity_)) return std::numeric_limits<double>::quiet_NaN();
  if (has_infinity_) return std::numeric_limits<double>::infinity();
  if (has_negative_infinity_) return -std::numeric_limits<double>::infinity();
  ExactSum sum = *this;
  sum.Carry();
  const bool is_negative = sum.digits_.back() < 0;
  if (is_negative) {
    for (int64_t& digit : sum.digits_) digit = -digit;
    sum.Carry();
  }
  int top = kDigits - 1;
  while (top > 0 && sum.digits_[static_cast<size_t>(top)] == 0) --top;
  // The three digits from the top hold the 53 bits of the result and one more; of those below only matters
  // whether they are 0. The last bit of 128 stands for them.
  unsigned __int128 leading = 0;
  for (int k = top; k > top - 3; --k)
    leading = leading << kDigitBits | static_cast<uint64_t>(k < 0 ? 0 : sum.digits_[static_cast<size_t>(k)]);
  bool has_rest = false;
  for (int k = top - 3; k >= 0; --k) has_rest |= sum.digits_[static_cast<size_t>(k)] != 0;
  // leading * 2^exponent, and something below if has_rest.
  int exponent = kDigitBits * (top - 2) + kSmallestExponent;
  const auto bits_of = [](unsigned __int128 x) {
    const auto high = static_cast<uint64_t>(x >> 64);
    return high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<uint64_t>(x));
  };
  // No double has bits below 2^-1074, and neither has the sum.
  const int drop = bits_of(leading) - 53;
  if (drop > 0 && exponent + drop > kSmallestExponent) {
    const unsigned __int128 rest = leading & ((static_cast<unsigned __int128>(1) << drop) - 1);
    const unsigned __int128 half = static_cast<unsigned __int128>(1) << (drop - 1);
    leading >>= drop;
    exponent += drop;
    if (rest > half || (rest == half && (has_rest || (leading & 1) != 0))) ++leading;
  } else if (exponent < kSmallestExponent) {
    leading >>= kSmallestExponent - exponent;
    exponent = kSmallestExponent;
  }
  const double magnitude = std::ldexp(static_cast<double>(static_cast<uint64_t>(leading)), exponent);
  return is_negative ? -magnitude : magnitude;
}

void ExactSum::Write(double* cells) const {
  ExactSum sum = *this;
  sum.Carry();
  for (const int64_t digit : sum.digits_) *cells++ = static_cast<double>(digit);
  *cells++ = has_nan_ ? 1 : 0;
  *cells++ = has_infinity_ ? 1 : 0;
  *cells++ = has_negative_infinity_ ? 1 : 0;
}

ExactSum ExactSum::Read(const double* cells) {
  ExactSum sum;
  for (int64_t& digit : sum.digits_) digit = static_cast<int64_t>(*cells++);
  sum.has_nan_ = *cells++ != 0;
  sum.has_infinity_ = *cells++ != 0;
  sum.has_negative_infinity_ = *cells++ != 0;
  return sum;
}

}  // namespace heddle::ops

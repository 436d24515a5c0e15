// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/reduce_angle.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heddle::ops {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

// The binary digits of 2/pi after the point.
constexpr uint64_t kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};
constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;

// 64 digits of 2/pi, the first of weight 2^-(skip+1); digits before the point are zeros.
uint64_t DigitsOfTwoOverPi(int skip) {
  if (skip <= -64) return 0;
  if (skip < 0) return kTwoOverPi[0] >> -skip;
  const int word = skip / 64;
  const int shift = skip % 64;
  if (shift == 0) return kTwoOverPi[word];
  return kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> (64 - shift);
}

}  // namespace

int ReduceLargeAngle(double x, double* high, double* low) {
  *low = 0.0;
  if (!std::isfinite(x)) {
    *high = std::numeric_limits<double>::quiet_NaN();
    return 0;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1075;
  const uint64_t mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
  // |x| * 2/pi = mantissa * W / 2^190 (mod 4), where W is 192 digits of 2/pi: those before it add multiples
  // of 4.
  const int skip = exponent - 2;
  const Wide product0 = Wide{mantissa} * DigitsOfTwoOverPi(skip + 128);
  const Wide product1 = Wide{mantissa} * DigitsOfTwoOverPi(skip + 64) + (product0 >> 64);
  const Wide product2 = Wide{mantissa} * DigitsOfTwoOverPi(skip) + (product1 >> 64);
  const uint64_t digits2 = static_cast<uint64_t>(product2);
  const uint64_t digits1 = static_cast<uint64_t>(product1);
  const uint64_t digits0 = static_cast<uint64_t>(product0);
  const Wide fraction = Wide{digits2 << 2 | digits1 >> 62} << 64 | (digits1 << 2 | digits0 >> 62);
  // Read as a signed number the fraction lies in [-1/2, 1/2); two bits are given up so that rounding cannot
  // overflow.
  int quadrant = static_cast<int>(digits2 >> 62) + static_cast<int>(fraction >> 127);
  const SignedWide turn = static_cast<SignedWide>(fraction) >> 2;
  const double turn_high = static_cast<double>(turn);
  const double turn_low = static_cast<double>(turn - static_cast<SignedWide>(turn_high));
  const double scale = 0x1p-126;
  double a = turn_high * scale;  // Exact: a power of two.
  double b = turn_low * scale;
  double product = a * kHalfPiHigh;
  double rest = std::fma(a, kHalfPiHigh, -product) + std::fma(a, kHalfPiLow, b * kHalfPiHigh);
  double sum = product + rest;
  rest = (product - sum) + rest;
  if (x < 0) {
    sum = -sum;
    rest = -rest;
    quadrant = -quadrant;
  }
  *high = sum;
  *low = rest;
  return quadrant & 3;
}

}  // namespace heddle::ops

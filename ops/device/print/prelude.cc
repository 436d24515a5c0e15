// SPDX-License-Identifier: Apache-2.0
#include "ops/device/print/prelude.h"

namespace heddle::ops::printed {
namespace {

// heddle_truncate: Truncate of ops/simd/cellwise/integer_operators.h. heddle_reduce_angle: ReduceLargeAngle
// of ops/simd/cellwise/reduce_angle.cc, its numbers of 128 bits as two of 64.
// FETCH asks for a line of memory: prefetch() does nothing on POCL, and Oclgrind does not know the other.
constexpr std::string_view kPrelude = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#ifdef POCL_DEVICE_ADDRESS_BITS
#define FETCH(address) __builtin_prefetch((const void*)(size_t)(address))
#else
#define FETCH(address) prefetch(address, 1)
#endif

static inline ulong heddle_truncate(double x) {
  const double magnitude = floor(fabs(x) + 0x1p-53);
  if (!(magnitude >= 0.0)) return 0UL;
  if (magnitude >= 0x1p63) return x < 0.0 ? 0x8000000000000000UL : 0x7fffffffffffffffUL;
  return x < 0.0 ? (ulong)(-(long)magnitude) : (ulong)(long)magnitude;
}
static inline double heddle_bit_and(double a, double b) {
  return convert_double_rte((long)(heddle_truncate(a) & heddle_truncate(b)));
}
static inline double heddle_bit_or(double a, double b) {
  return convert_double_rte((long)(heddle_truncate(a) | heddle_truncate(b)));
}
static inline double heddle_bit_xor(double a, double b) {
  return convert_double_rte((long)(heddle_truncate(a) ^ heddle_truncate(b)));
}
static inline double heddle_shift_left(double a, double b) {
  return convert_double_rte((long)(heddle_truncate(a) << (heddle_truncate(b) & 63UL)));
}
static inline double heddle_shift_right(double a, double b) {
  return convert_double_rte((long)heddle_truncate(a) >> (heddle_truncate(b) & 63UL));
}

__constant ulong heddle_two_over_pi[20] = {
    0xa2f9836e4e441529UL, 0xfc2757d1f534ddc0UL, 0xdb6295993c439041UL, 0xfe5163abdebbc561UL,
    0xb7246e3a424dd2e0UL, 0x06492eea09d1921cUL, 0xfe1deb1cb129a73eUL, 0xe88235f52ebb4484UL,
    0xe99c7026b45f7e41UL, 0x3991d639835339f4UL, 0x9c845f8bbdf9283bUL, 0x1ff897ffde05980fUL,
    0xef2f118b5a0a6d1fUL, 0x6d367ecf27cb09b7UL, 0x4f463f669e5fea2dUL, 0x7527bac7ebe5f17bUL,
    0x3d0739f78a5292eaUL, 0x6bfb5fb11f8d5d08UL, 0x56033046fc7b6babUL, 0xf0cfbc209af4361dUL};

// 64 digits of 2/pi, the first of weight 2^-(skip+1); digits before the point are zeros.
static inline ulong heddle_digits(int skip) {
  if (skip <= -64) return 0UL;
  if (skip < 0) return heddle_two_over_pi[0] >> -skip;
  const int word = skip / 64, shift = skip % 64;
  if (shift == 0) return heddle_two_over_pi[word];
  return heddle_two_over_pi[word] << shift | heddle_two_over_pi[word + 1] >> (64 - shift);
}

// high * 2^64 + low, a two's complement number, to the nearest double.
static inline double heddle_to_double(ulong high, ulong low) {
  const int negative = (long)high < 0;
  if (negative) {
    low = 0UL - low;
    high = ~high + (low == 0UL);
  }
  if (high == 0UL) {
    const double whole = convert_double_rte(low);
    return negative ? -whole : whole;
  }
  const int shift = (int)clz(high);  // Digits below the first 64 of them only tell that there are some.
  ulong top = shift == 0 ? high : high << shift | low >> (64 - shift);
  const ulong rest = shift == 0 ? low : low << shift;
  if (rest != 0UL) top |= 1UL;
  const double scaled = convert_double_rte(top) * as_double((ulong)(1023 + 64 - shift) << 52);
  return negative ? -scaled : scaled;
}

static inline double heddle_reduce_angle(double x, double* r_high, double* r_low) {
  *r_low = 0.0;
  if (!isfinite(x)) {
    *r_high = as_double(0x7ff8000000000000UL);
    return 0.0;
  }
  const ulong bits = as_ulong(x);
  const int exponent = (int)(bits >> 52 & 0x7ffUL) - 1075;
  const ulong mantissa = (bits & 0xfffffffffffffUL) | 0x10000000000000UL;
  const int skip = exponent - 2;
  const ulong w0 = heddle_digits(skip + 128), w1 = heddle_digits(skip + 64), w2 = heddle_digits(skip);
  const ulong digits0 = mantissa * w0, carry0 = mul_hi(mantissa, w0);
  const ulong low1 = mantissa * w1, digits1 = low1 + carry0;
  const ulong carry1 = mul_hi(mantissa, w1) + (digits1 < low1);
  const ulong digits2 = mantissa * w2 + carry1;
  const ulong fraction_high = digits2 << 2 | digits1 >> 62, fraction_low = digits1 << 2 | digits0 >> 62;
  int quadrant = (int)(digits2 >> 62) + (int)(fraction_high >> 63);
  const ulong turn_high = (ulong)((long)fraction_high >> 2);
  const ulong turn_low = fraction_high << 62 | fraction_low >> 2;
  const double first = heddle_to_double(turn_high, turn_low);
  // What is left: `first` as a whole number again, taken away. It has at most 126 bits.
  const ulong first_bits = as_ulong(first);
  const ulong first_mantissa = (first_bits & 0xfffffffffffffUL) | 0x10000000000000UL;
  const int place = (int)(first_bits >> 52 & 0x7ffUL) - 1075;
  ulong whole_high = 0UL, whole_low = 0UL;
  if (first != 0.0) {
    if (place <= 0) {
      whole_low = place <= -64 ? 0UL : first_mantissa >> -place;
    } else if (place < 64) {
      whole_low = first_mantissa << place;
      whole_high = first_mantissa >> (64 - place);
    } else {
      whole_high = first_mantissa << (place - 64);
    }
    if (first < 0.0) {
      whole_low = 0UL - whole_low;
      whole_high = ~whole_high + (whole_low == 0UL);
    }
  }
  const ulong left_low = turn_low - whole_low, left_high = turn_high - whole_high - (turn_low < whole_low);
  const double second = heddle_to_double(left_high, left_low);
  const double a = first * 0x1p-126, b = second * 0x1p-126;
  const double half_pi_high = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
  const double product = a * half_pi_high;
  double rest = fma(a, half_pi_high, -product) + fma(a, half_pi_low, b * half_pi_high);
  double sum = product + rest;
  rest = (product - sum) + rest;
  if (x < 0.0) {
    sum = -sum;
    rest = -rest;
    quadrant = -quadrant;
  }
  *r_high = sum;
  *r_low = rest;
  return (double)(quadrant & 3);
}

)";

}  // namespace

std::string_view Prelude() { return kPrelude; }

std::string_view JoinOfMoments() {
  return R"(
static inline double4 heddle_moments(const double4 a, const double4 b) {
  const double count = a.s0 + b.s0, share = b.s0 / count, weight = a.s0 * share, delta = b.s1 - a.s1;
  return (double4)(count, a.s1 + delta * share, (a.s2 + b.s2) + (delta * delta) * weight, 0.0);
}
)";
}

}  // namespace heddle::ops::printed

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/vector.h"

// Eight float lanes, the cells of a Vector in one register of 256 bits on every target: what the functions of
// single precision are written on (math_single.h). The interface is that of vector.h as far as they need it.
#if defined(HEDDLE_SIMD_VECTOR_HEADER)
#include HEDDLE_SIMD_SINGLE_HEADER
#else

namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

struct Singles {
  __m256 v;
};  ///< 8 floats.
struct SingleMask {
  __m256 m;
};  ///< 8 booleans: all bits of a lane set or clear.
struct SingleIntegers {
  __m256i v;
};  ///< 8 32-bit integers.

/// Rounded to floats, which changes nothing where the doubles are floats; and back.
HEDDLE_SIMD_INLINE Singles Narrow(Vector a) {
#if defined(__AVX512F__)
  return {_mm512_maskz_cvtpd_ps(kAllLanes, a.v)};
#else
  return {_mm256_set_m128(_mm256_cvtpd_ps(a.high), _mm256_cvtpd_ps(a.low))};
#endif
}
HEDDLE_SIMD_INLINE Vector Widen(Singles a) {
#if defined(__AVX512F__)
  return {_mm512_maskz_cvtps_pd(kAllLanes, a.v)};
#else
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.v)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))};
#endif
}

HEDDLE_SIMD_INLINE Singles BroadcastSingle(float x) { return {_mm256_set1_ps(x)}; }
HEDDLE_SIMD_INLINE SingleIntegers BroadcastSingleInteger(int32_t x) { return {_mm256_set1_epi32(x)}; }
HEDDLE_SIMD_INLINE SingleIntegers BitsOf(Singles a) { return {_mm256_castps_si256(a.v)}; }
HEDDLE_SIMD_INLINE Singles OfBits(SingleIntegers a) { return {_mm256_castsi256_ps(a.v)}; }
HEDDLE_SIMD_INLINE Singles operator+(Singles a, Singles b) { return {_mm256_add_ps(a.v, b.v)}; }
HEDDLE_SIMD_INLINE Singles operator-(Singles a, Singles b) { return {_mm256_sub_ps(a.v, b.v)}; }
HEDDLE_SIMD_INLINE Singles operator*(Singles a, Singles b) { return {_mm256_mul_ps(a.v, b.v)}; }
HEDDLE_SIMD_INLINE Singles operator/(Singles a, Singles b) { return {_mm256_div_ps(a.v, b.v)}; }
/// x86 min/max: b where a and b are unordered or equal.
HEDDLE_SIMD_INLINE Singles Min(Singles a, Singles b) { return {_mm256_min_ps(a.v, b.v)}; }
HEDDLE_SIMD_INLINE Singles Max(Singles a, Singles b) { return {_mm256_max_ps(a.v, b.v)}; }
/// a * b + c and c - a * b, one rounding.
HEDDLE_SIMD_INLINE Singles Fma(Singles a, Singles b, Singles c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
HEDDLE_SIMD_INLINE Singles Fnma(Singles a, Singles b, Singles c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
HEDDLE_SIMD_INLINE SingleMask Less(Singles a, Singles b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
HEDDLE_SIMD_INLINE SingleMask Equal(Singles a, Singles b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
/// a where the mask holds, else b.
HEDDLE_SIMD_INLINE Singles Select(SingleMask mask, Singles a, Singles b) {
  return {_mm256_blendv_ps(b.v, a.v, mask.m)};
}
HEDDLE_SIMD_INLINE SingleIntegers operator+(SingleIntegers a, SingleIntegers b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
HEDDLE_SIMD_INLINE SingleIntegers operator-(SingleIntegers a, SingleIntegers b) {
  return {_mm256_sub_epi32(a.v, b.v)};
}
HEDDLE_SIMD_INLINE SingleIntegers operator&(SingleIntegers a, SingleIntegers b) {
  return {_mm256_and_si256(a.v, b.v)};
}
HEDDLE_SIMD_INLINE SingleIntegers operator|(SingleIntegers a, SingleIntegers b) {
  return {_mm256_or_si256(a.v, b.v)};
}
template <int kBits>
HEDDLE_SIMD_INLINE SingleIntegers ShiftLeft(SingleIntegers a) {
  return {_mm256_slli_epi32(a.v, kBits)};
}
/// Copies of the sign come in.
template <int kBits>
HEDDLE_SIMD_INLINE SingleIntegers ShiftRightSigned(SingleIntegers a) {
  return {_mm256_srai_epi32(a.v, kBits)};
}
/// Rounded to nearest; exact below 2^24.
HEDDLE_SIMD_INLINE Singles ToSingles(SingleIntegers a) { return {_mm256_cvtepi32_ps(a.v)}; }

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
#endif

namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

HEDDLE_SIMD_INLINE Singles Abs(Singles a) { return OfBits(BitsOf(a) & BroadcastSingleInteger(0x7fffffff)); }
/// a, which has no sign, with the sign bit of b.
HEDDLE_SIMD_INLINE Singles WithSign(Singles a, Singles b) {
  return OfBits(BitsOf(a) | (BitsOf(b) & BroadcastSingleInteger(static_cast<int32_t>(0x80000000))));
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE

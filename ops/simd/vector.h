// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// Eight double lanes, the unit in which every order of docs/numerics.md is written: two AVX2 registers, or
// one AVX-512 register where the file is compiled for it. Kernels are written once, in a .inc file that
// foo_avx2.cc and foo_avx512.cc include; each exports one table of plain function pointers. Everything here
// lives in a namespace that differs per target and is inlined by force, so the two compilations never meet in
// the linker. No standard headers: a template of the library that is compiled for AVX-512 could replace its
// baseline copy.
//
// Lanes never influence each other except in SumLanes, so every function gives the same bits for both
// targets.
//
// The code generator (compiler/codegen) compiles the functions and operators that are written on these types
// a third time: HEDDLE_SIMD_VECTOR_HEADER names a header that defines the same interface so that each call
// emits LLVM IR.
#if defined(HEDDLE_SIMD_VECTOR_HEADER)
#include HEDDLE_SIMD_VECTOR_HEADER
#else

#include <immintrin.h>

#if defined(__AVX512F__)
#define HEDDLE_SIMD_NAMESPACE avx512
#else
#define HEDDLE_SIMD_NAMESPACE avx2
#endif
#define HEDDLE_SIMD_INLINE [[maybe_unused]] static inline __attribute__((always_inline))

namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

constexpr int64_t kLanes = 8;

#if defined(__AVX512F__)

struct Vector {
  __m512d v;
};  ///< 8 doubles.
struct Mask {
  __mmask8 m;
};  ///< 8 booleans.
struct Integers {
  __m512i v;
};  ///< 8 64-bit integers.

// Where the plain intrinsic reads an "undefined" register, GCC 12 warns of it; the zero-masked form makes the
// same code.
constexpr __mmask8 kAllLanes = 0xff;

#define HEDDLE_SIMD_UNARY(Name, intrinsic) \
  HEDDLE_SIMD_INLINE Vector Name(Vector a) { return {intrinsic}; }
#define HEDDLE_SIMD_BINARY(Name, intrinsic) \
  HEDDLE_SIMD_INLINE Vector Name(Vector a, Vector b) { return {intrinsic(a.v, b.v)}; }
#define HEDDLE_SIMD_COMPARE(Name, predicate) \
  HEDDLE_SIMD_INLINE Mask Name(Vector a, Vector b) { return {_mm512_cmp_pd_mask(a.v, b.v, predicate)}; }
#define HEDDLE_SIMD_INTEGER(Name, intrinsic) \
  HEDDLE_SIMD_INLINE Integers Name(Integers a, Integers b) { return {intrinsic(a.v, b.v)}; }

HEDDLE_SIMD_INLINE __mmask8 FirstLanes(int64_t n) { return static_cast<__mmask8>((1u << n) - 1u); }

HEDDLE_SIMD_INLINE Vector Broadcast(double x) { return {_mm512_set1_pd(x)}; }
HEDDLE_SIMD_INLINE Vector Zero() { return {_mm512_setzero_pd()}; }
HEDDLE_SIMD_INLINE Vector Load(const double* p) { return {_mm512_loadu_pd(p)}; }
/// The first n (0-8) doubles at p; the other lanes are +0.0 and their memory is not touched.
HEDDLE_SIMD_INLINE Vector LoadFirst(const double* p, int64_t n) {
  return {_mm512_maskz_loadu_pd(FirstLanes(n), p)};
}
HEDDLE_SIMD_INLINE void Store(double* p, Vector a) { _mm512_storeu_pd(p, a.v); }
HEDDLE_SIMD_INLINE void StoreFirst(double* p, Vector a, int64_t n) {
  _mm512_mask_storeu_pd(p, FirstLanes(n), a.v);
}
/// Past the caches; p must be 64-byte aligned. Call StreamFence() before anybody else reads.
HEDDLE_SIMD_INLINE void Stream(double* p, Vector a) { _mm512_stream_pd(p, a.v); }
/// Eight floats, widened; eight doubles, rounded to floats.
HEDDLE_SIMD_INLINE Vector LoadSingle(const float* p) {
  return {_mm512_maskz_cvtps_pd(kAllLanes, _mm256_loadu_ps(p))};
}
HEDDLE_SIMD_INLINE void StoreSingle(float* p, Vector a) {
  _mm256_storeu_ps(p, _mm512_maskz_cvtpd_ps(kAllLanes, a.v));
}

HEDDLE_SIMD_BINARY(operator+, _mm512_add_pd)
HEDDLE_SIMD_BINARY(operator-, _mm512_sub_pd)
HEDDLE_SIMD_BINARY(operator*, _mm512_mul_pd)
HEDDLE_SIMD_BINARY(operator/, _mm512_div_pd)
/// x86 min/max: b where a and b are unordered or equal.
HEDDLE_SIMD_INLINE Vector Min(Vector a, Vector b) { return {_mm512_maskz_min_pd(kAllLanes, a.v, b.v)}; }
HEDDLE_SIMD_INLINE Vector Max(Vector a, Vector b) { return {_mm512_maskz_max_pd(kAllLanes, a.v, b.v)}; }
HEDDLE_SIMD_BINARY(And, _mm512_and_pd)
HEDDLE_SIMD_BINARY(AndNot, _mm512_andnot_pd)
HEDDLE_SIMD_BINARY(Or, _mm512_or_pd)
HEDDLE_SIMD_BINARY(Xor, _mm512_xor_pd)
HEDDLE_SIMD_UNARY(Sqrt, _mm512_maskz_sqrt_pd(kAllLanes, a.v))
HEDDLE_SIMD_UNARY(Floor,
                  _mm512_maskz_roundscale_pd(kAllLanes, a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
HEDDLE_SIMD_UNARY(Ceil, _mm512_maskz_roundscale_pd(kAllLanes, a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
HEDDLE_SIMD_UNARY(RoundEven,
                  _mm512_maskz_roundscale_pd(kAllLanes, a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
/// Rounded to a float, as a double.
HEDDLE_SIMD_UNARY(ToSingle, _mm512_maskz_cvtps_pd(kAllLanes, _mm512_maskz_cvtpd_ps(kAllLanes, a.v)))
/// a * b + c, one rounding.
HEDDLE_SIMD_INLINE Vector Fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
/// a * b - c, one rounding.
HEDDLE_SIMD_INLINE Vector Fms(Vector a, Vector b, Vector c) { return {_mm512_fmsub_pd(a.v, b.v, c.v)}; }
/// c - a * b, one rounding.
HEDDLE_SIMD_INLINE Vector Fnma(Vector a, Vector b, Vector c) { return {_mm512_fnmadd_pd(a.v, b.v, c.v)}; }

HEDDLE_SIMD_COMPARE(Less, _CMP_LT_OQ)
HEDDLE_SIMD_COMPARE(LessEqual, _CMP_LE_OQ)
HEDDLE_SIMD_COMPARE(Greater, _CMP_GT_OQ)
HEDDLE_SIMD_COMPARE(GreaterEqual, _CMP_GE_OQ)
HEDDLE_SIMD_COMPARE(Equal, _CMP_EQ_OQ)
HEDDLE_SIMD_COMPARE(NotEqual, _CMP_NEQ_UQ)  ///< True for NaN.
HEDDLE_SIMD_COMPARE(Unordered, _CMP_UNORD_Q)
HEDDLE_SIMD_INLINE Mask Both(Mask a, Mask b) { return {static_cast<__mmask8>(a.m & b.m)}; }
HEDDLE_SIMD_INLINE Mask Either(Mask a, Mask b) { return {static_cast<__mmask8>(a.m | b.m)}; }
HEDDLE_SIMD_INLINE Mask Differ(Mask a, Mask b) { return {static_cast<__mmask8>(a.m ^ b.m)}; }
/// Bit i is lane i.
HEDDLE_SIMD_INLINE unsigned Bits(Mask a) { return a.m; }
/// a where the mask holds, else b.
HEDDLE_SIMD_INLINE Vector Select(Mask mask, Vector a, Vector b) {
  return {_mm512_mask_blend_pd(mask.m, b.v, a.v)};
}
/// a where the mask holds, else +0.0.
HEDDLE_SIMD_INLINE Vector KeepWhere(Mask mask, Vector a) { return {_mm512_maskz_mov_pd(mask.m, a.v)}; }

HEDDLE_SIMD_INLINE Integers BroadcastInteger(int64_t x) { return {_mm512_set1_epi64(x)}; }
HEDDLE_SIMD_INLINE Integers BitsOf(Vector a) { return {_mm512_castpd_si512(a.v)}; }
HEDDLE_SIMD_INLINE Vector OfBits(Integers a) { return {_mm512_castsi512_pd(a.v)}; }
HEDDLE_SIMD_INTEGER(operator+, _mm512_add_epi64)
HEDDLE_SIMD_INTEGER(operator-, _mm512_sub_epi64)
HEDDLE_SIMD_INTEGER(operator&, _mm512_and_si512)
HEDDLE_SIMD_INTEGER(operator|, _mm512_or_si512)
template <int kBits>
HEDDLE_SIMD_INLINE Integers ShiftLeft(Integers a) {
  return {_mm512_maskz_slli_epi64(kAllLanes, a.v, kBits)};
}
/// Logical: zeros come in.
template <int kBits>
HEDDLE_SIMD_INLINE Integers ShiftRight(Integers a) {
  return {_mm512_maskz_srli_epi64(kAllLanes, a.v, kBits)};
}
HEDDLE_SIMD_INLINE Mask EqualIntegers(Integers a, Integers b) { return {_mm512_cmpeq_epi64_mask(a.v, b.v)}; }

/// True if the next four exist here; what they do is exact, so that others can do the same with more
/// instructions.
HEDDLE_SIMD_INLINE bool HasExponents() { return true; }
/// x * 2^k for whole k, one rounding.
HEDDLE_SIMD_INLINE Vector ScaleExponent(Vector x, Vector k) {
  return {_mm512_maskz_scalef_pd(kAllLanes, x.v, k.v)};
}
/// Of x = 2^e * m, finite and not zero: e, and 1 <= m < 2 (without the sign of x).
HEDDLE_SIMD_INLINE Vector ExponentOf(Vector x) { return {_mm512_maskz_getexp_pd(kAllLanes, x.v)}; }
HEDDLE_SIMD_INLINE Vector MantissaOf(Vector x) {
  return {_mm512_maskz_getmant_pd(kAllLanes, x.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero)};
}
/// `result` but for special x: what the four bits of its class in `table` say (VFIXUPIMMPD).
HEDDLE_SIMD_INLINE Vector FixSpecials(Vector result, Vector x, int64_t table) {
  return {_mm512_fixupimm_pd(result.v, x.v, _mm512_set1_epi64(table), 0)};
}

/// (r0+r4, r1+r5, r2+r6, r3+r7)
HEDDLE_SIMD_INLINE __m256d JoinHalves(Vector a) {
  return _mm256_add_pd(_mm512_maskz_extractf64x4_pd(kAllLanes, a.v, 0),
                       _mm512_maskz_extractf64x4_pd(kAllLanes, a.v, 1));
}

#else  // AVX2 and FMA: lanes 0-3 are low, lanes 4-7 are high.

struct Vector {
  __m256d low, high;
};  ///< 8 doubles.
struct Mask {
  __m256d low, high;
};  ///< 8 booleans: all bits of a lane set or clear.
struct Integers {
  __m256i low, high;
};  ///< 8 64-bit integers.

#define HEDDLE_SIMD_UNARY(Name, intrinsic)                                         \
  HEDDLE_SIMD_INLINE Vector Name(Vector a) {                                       \
    auto one = [](__m256d a) __attribute__((always_inline)) { return intrinsic; }; \
    return {one(a.low), one(a.high)};                                              \
  }
#define HEDDLE_SIMD_BINARY(Name, intrinsic)                      \
  HEDDLE_SIMD_INLINE Vector Name(Vector a, Vector b) {           \
    return {intrinsic(a.low, b.low), intrinsic(a.high, b.high)}; \
  }
#define HEDDLE_SIMD_COMPARE(Name, predicate)                                                   \
  HEDDLE_SIMD_INLINE Mask Name(Vector a, Vector b) {                                           \
    return {_mm256_cmp_pd(a.low, b.low, predicate), _mm256_cmp_pd(a.high, b.high, predicate)}; \
  }
#define HEDDLE_SIMD_INTEGER(Name, intrinsic)                     \
  HEDDLE_SIMD_INLINE Integers Name(Integers a, Integers b) {     \
    return {intrinsic(a.low, b.low), intrinsic(a.high, b.high)}; \
  }

/// Lane masks for the first n of four lanes; n may be negative (none) or above four (all).
HEDDLE_SIMD_INLINE __m256i FirstOfFour(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

HEDDLE_SIMD_INLINE Vector Broadcast(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
HEDDLE_SIMD_INLINE Vector Zero() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
HEDDLE_SIMD_INLINE Vector Load(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
/// The first n (0-8) doubles at p; the other lanes are +0.0 and their memory is not touched.
HEDDLE_SIMD_INLINE Vector LoadFirst(const double* p, int64_t n) {
  return {_mm256_maskload_pd(p, FirstOfFour(n)), _mm256_maskload_pd(p + 4, FirstOfFour(n - 4))};
}
HEDDLE_SIMD_INLINE void Store(double* p, Vector a) {
  _mm256_storeu_pd(p, a.low);
  _mm256_storeu_pd(p + 4, a.high);
}
/// By halves: the masked store of AVX2 is slow on many processors.
HEDDLE_SIMD_INLINE void StoreFirst(double* p, Vector a, int64_t n) {
  __m256d rest = a.low;
  if (n >= 4) {
    _mm256_storeu_pd(p, a.low);
    rest = a.high;
    p += 4;
    n -= 4;
  }
  if (n >= 4) return _mm256_storeu_pd(p, rest);
  __m128d two = _mm256_castpd256_pd128(rest);
  if (n >= 2) {
    _mm_storeu_pd(p, two);
    two = _mm256_extractf128_pd(rest, 1);
    p += 2;
    n -= 2;
  }
  if (n > 0) _mm_store_sd(p, two);
}
/// Past the caches; p must be 64-byte aligned. Call StreamFence() before anybody else reads.
HEDDLE_SIMD_INLINE void Stream(double* p, Vector a) {
  _mm256_stream_pd(p, a.low);
  _mm256_stream_pd(p + 4, a.high);
}
/// Eight floats, widened; eight doubles, rounded to floats.
HEDDLE_SIMD_INLINE Vector LoadSingle(const float* p) {
  return {_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
}
HEDDLE_SIMD_INLINE void StoreSingle(float* p, Vector a) {
  _mm_storeu_ps(p, _mm256_cvtpd_ps(a.low));
  _mm_storeu_ps(p + 4, _mm256_cvtpd_ps(a.high));
}

HEDDLE_SIMD_BINARY(operator+, _mm256_add_pd)
HEDDLE_SIMD_BINARY(operator-, _mm256_sub_pd)
HEDDLE_SIMD_BINARY(operator*, _mm256_mul_pd)
HEDDLE_SIMD_BINARY(operator/, _mm256_div_pd)
/// x86 min/max: b where a and b are unordered or equal.
HEDDLE_SIMD_BINARY(Min, _mm256_min_pd)
HEDDLE_SIMD_BINARY(Max, _mm256_max_pd)
HEDDLE_SIMD_BINARY(And, _mm256_and_pd)
HEDDLE_SIMD_BINARY(AndNot, _mm256_andnot_pd)
HEDDLE_SIMD_BINARY(Or, _mm256_or_pd)
HEDDLE_SIMD_BINARY(Xor, _mm256_xor_pd)
HEDDLE_SIMD_UNARY(Sqrt, _mm256_sqrt_pd(a))
HEDDLE_SIMD_UNARY(Floor, _mm256_round_pd(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
HEDDLE_SIMD_UNARY(Ceil, _mm256_round_pd(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
HEDDLE_SIMD_UNARY(RoundEven, _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
/// Rounded to a float, as a double.
HEDDLE_SIMD_UNARY(ToSingle, _mm256_cvtps_pd(_mm256_cvtpd_ps(a)))
/// a * b + c, one rounding.
HEDDLE_SIMD_INLINE Vector Fma(Vector a, Vector b, Vector c) {
  return {_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
}
/// a * b - c, one rounding.
HEDDLE_SIMD_INLINE Vector Fms(Vector a, Vector b, Vector c) {
  return {_mm256_fmsub_pd(a.low, b.low, c.low), _mm256_fmsub_pd(a.high, b.high, c.high)};
}
/// c - a * b, one rounding.
HEDDLE_SIMD_INLINE Vector Fnma(Vector a, Vector b, Vector c) {
  return {_mm256_fnmadd_pd(a.low, b.low, c.low), _mm256_fnmadd_pd(a.high, b.high, c.high)};
}

HEDDLE_SIMD_COMPARE(Less, _CMP_LT_OQ)
HEDDLE_SIMD_COMPARE(LessEqual, _CMP_LE_OQ)
HEDDLE_SIMD_COMPARE(Greater, _CMP_GT_OQ)
HEDDLE_SIMD_COMPARE(GreaterEqual, _CMP_GE_OQ)
HEDDLE_SIMD_COMPARE(Equal, _CMP_EQ_OQ)
HEDDLE_SIMD_COMPARE(NotEqual, _CMP_NEQ_UQ)  ///< True for NaN.
HEDDLE_SIMD_COMPARE(Unordered, _CMP_UNORD_Q)
HEDDLE_SIMD_INLINE Mask Both(Mask a, Mask b) {
  return {_mm256_and_pd(a.low, b.low), _mm256_and_pd(a.high, b.high)};
}
HEDDLE_SIMD_INLINE Mask Either(Mask a, Mask b) {
  return {_mm256_or_pd(a.low, b.low), _mm256_or_pd(a.high, b.high)};
}
HEDDLE_SIMD_INLINE Mask Differ(Mask a, Mask b) {
  return {_mm256_xor_pd(a.low, b.low), _mm256_xor_pd(a.high, b.high)};
}
/// Bit i is lane i.
HEDDLE_SIMD_INLINE unsigned Bits(Mask a) {
  return static_cast<unsigned>(_mm256_movemask_pd(a.low)) | static_cast<unsigned>(_mm256_movemask_pd(a.high))
                                                                << 4;
}
/// a where the mask holds, else b.
HEDDLE_SIMD_INLINE Vector Select(Mask mask, Vector a, Vector b) {
  return {_mm256_blendv_pd(b.low, a.low, mask.low), _mm256_blendv_pd(b.high, a.high, mask.high)};
}
/// a where the mask holds, else +0.0.
HEDDLE_SIMD_INLINE Vector KeepWhere(Mask mask, Vector a) {
  return {_mm256_and_pd(mask.low, a.low), _mm256_and_pd(mask.high, a.high)};
}

HEDDLE_SIMD_INLINE Integers BroadcastInteger(int64_t x) {
  return {_mm256_set1_epi64x(x), _mm256_set1_epi64x(x)};
}
HEDDLE_SIMD_INLINE Integers BitsOf(Vector a) {
  return {_mm256_castpd_si256(a.low), _mm256_castpd_si256(a.high)};
}
HEDDLE_SIMD_INLINE Vector OfBits(Integers a) {
  return {_mm256_castsi256_pd(a.low), _mm256_castsi256_pd(a.high)};
}
HEDDLE_SIMD_INTEGER(operator+, _mm256_add_epi64)
HEDDLE_SIMD_INTEGER(operator-, _mm256_sub_epi64)
HEDDLE_SIMD_INTEGER(operator&, _mm256_and_si256)
HEDDLE_SIMD_INTEGER(operator|, _mm256_or_si256)
template <int kBits>
HEDDLE_SIMD_INLINE Integers ShiftLeft(Integers a) {
  return {_mm256_slli_epi64(a.low, kBits), _mm256_slli_epi64(a.high, kBits)};
}
/// Logical: zeros come in.
template <int kBits>
HEDDLE_SIMD_INLINE Integers ShiftRight(Integers a) {
  return {_mm256_srli_epi64(a.low, kBits), _mm256_srli_epi64(a.high, kBits)};
}
HEDDLE_SIMD_INLINE Mask EqualIntegers(Integers a, Integers b) {
  return {_mm256_castsi256_pd(_mm256_cmpeq_epi64(a.low, b.low)),
          _mm256_castsi256_pd(_mm256_cmpeq_epi64(a.high, b.high))};
}

HEDDLE_SIMD_INLINE bool HasExponents() { return false; }
HEDDLE_SIMD_INLINE Vector ScaleExponent(Vector, Vector) { __builtin_unreachable(); }
HEDDLE_SIMD_INLINE Vector ExponentOf(Vector) { __builtin_unreachable(); }
HEDDLE_SIMD_INLINE Vector MantissaOf(Vector) { __builtin_unreachable(); }
HEDDLE_SIMD_INLINE Vector FixSpecials(Vector, Vector, int64_t) { __builtin_unreachable(); }

HEDDLE_SIMD_INLINE __m256d JoinHalves(Vector a) { return _mm256_add_pd(a.low, a.high); }

#endif

#undef HEDDLE_SIMD_UNARY
#undef HEDDLE_SIMD_BINARY
#undef HEDDLE_SIMD_COMPARE
#undef HEDDLE_SIMD_INTEGER

/// ((r0+r4)+(r2+r6)) + ((r1+r5)+(r3+r7)): the L of docs/numerics.md, section 3.
HEDDLE_SIMD_INLINE double SumLanes(Vector a) {
  const __m256d four = JoinHalves(a);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
/// Makes streamed stores visible to other threads.
HEDDLE_SIMD_INLINE void StreamFence() { _mm_sfence(); }
HEDDLE_SIMD_INLINE bool Any(Mask mask) { return Bits(mask) != 0; }
/// A shortcut may ask this; what follows it must hold without it too (generated code only knows of
/// constants).
HEDDLE_SIMD_INLINE bool All(Mask mask) { return Bits(mask) == 0xff; }

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE
#endif

namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

HEDDLE_SIMD_INLINE Vector Negate(Vector a) { return Xor(a, Broadcast(-0.0)); }
HEDDLE_SIMD_INLINE Vector Abs(Vector a) { return AndNot(Broadcast(-0.0), a); }
/// |a| with the sign bit of b.
HEDDLE_SIMD_INLINE Vector CopySign(Vector a, Vector b) {
  const Vector sign = Broadcast(-0.0);
  return Or(AndNot(sign, a), And(sign, b));
}
/// 1.0 where the mask holds, else 0.0.
HEDDLE_SIMD_INLINE Vector OneWhere(Mask mask) { return KeepWhere(mask, Broadcast(1.0)); }

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE

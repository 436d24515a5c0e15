// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/vector.h"

// Operators on 64-bit integers, which doubles are truncated to (docs/numerics.md, section 7). They go lane by
// lane.
namespace heddle::ops::HEDDLE_SIMD_NAMESPACE {

// sign(x) * floor(|x| + 2^-53) as int64: NaN is 0, what does not fit saturates.
HEDDLE_SIMD_INLINE int64_t Truncate(double x) {
  const double magnitude = __builtin_floor(__builtin_fabs(x) + 0x1p-53);
  if (!(magnitude >= 0)) return 0;
  if (magnitude >= 0x1p63) return x < 0 ? INT64_MIN : INT64_MAX;
  return x < 0 ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

template <typename Function>
HEDDLE_SIMD_INLINE Vector OnIntegers(Vector a, Vector b, Function function) {
  double x[8], y[8];
  Store(x, a);
  Store(y, b);
  for (int i = 0; i < 8; ++i)
    x[i] = static_cast<double>(static_cast<int64_t>(
        function(static_cast<uint64_t>(Truncate(x[i])), static_cast<uint64_t>(Truncate(y[i])))));
  return Load(x);
}

HEDDLE_SIMD_INLINE Vector IntegerAnd(Vector a, Vector b) {
  return OnIntegers(a, b, [](uint64_t x, uint64_t y) { return x & y; });
}
HEDDLE_SIMD_INLINE Vector IntegerOr(Vector a, Vector b) {
  return OnIntegers(a, b, [](uint64_t x, uint64_t y) { return x | y; });
}
HEDDLE_SIMD_INLINE Vector IntegerExclusiveOr(Vector a, Vector b) {
  return OnIntegers(a, b, [](uint64_t x, uint64_t y) { return x ^ y; });
}
HEDDLE_SIMD_INLINE Vector IntegerShiftLeft(Vector a, Vector b) {
  return OnIntegers(a, b, [](uint64_t x, uint64_t y) { return x << (y & 63); });
}
/// The sign comes in.
HEDDLE_SIMD_INLINE Vector IntegerShiftRight(Vector a, Vector b) {
  return OnIntegers(a, b, [](uint64_t x, uint64_t y) {
    return static_cast<uint64_t>(static_cast<int64_t>(x) >> (y & 63));
  });
}

}  // namespace heddle::ops::HEDDLE_SIMD_NAMESPACE

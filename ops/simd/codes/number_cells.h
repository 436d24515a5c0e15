// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops::simd {

/// Numbers of whole numbers from `first` on: numbers[cell - first], which has kNoNumber where there is none,
/// `places` of them and one more.
struct WholeNumbers {
  static constexpr uint16_t kNoNumber = 0xffff;
  const uint16_t* numbers;
  int32_t first;
  uint32_t places;
};

/// codes[i] = the number of cells[i * stride], eight at a time until one of the eight has none. So many were
/// written: a multiple of eight, at most `count`. AVX-512.
int64_t NumberCellsAvx512(const WholeNumbers& table, const double* cells, int64_t stride, int64_t count,
                          uint16_t* codes);

}  // namespace heddle::ops::simd

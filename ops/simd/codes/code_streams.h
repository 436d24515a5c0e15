// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// Columns of a compressed matrix, read in eight streams of rows at once: a vector has a cell of each stream.
// Where the streams are panels of t(X) %*% W, every chain of additions stays in its lane. AVX-512 and doubles
// only.
namespace heddle::ops::simd {

constexpr int64_t kStreams = 8;

/// A column by codes, by cells, or one cell for all rows.
struct StreamedColumn {
  enum class Lookup : uint8_t {
    kConstant,   ///< cells[0]
    kCells,      ///< Row i of a stream: cells[(rows[stream] + i) * step].
    kSixteen,    ///< cells[code], of 16 in registers; `step` is 1.
    kThirtyTwo,  ///< cells[code], of 32 in registers; `step` is 1.
    kGather,     ///< cells[code * step]
  } lookup = Lookup::kConstant;
  int bits = 0;  ///< Of a code: 4 (kSixteen alone), 8 or 16.
  const uint8_t* codes = nullptr;
  const double* cells = nullptr;
  int64_t step = 1;
  /// The first row of each stream; even, where codes have 4 bits.
  const int64_t* rows = nullptr;
};

/// sums[(j * k + c) * 8 + s], of column j, = fma(cell of row i of stream s, weights[(i * k + c) * 8 + s], the
/// same), i ascending, c < k <= 8. Codes are read in whole eights of bytes. Columns that are looked up alike
/// take least time one behind the other.
void AddStreamsAvx512(const StreamedColumn* columns, int64_t count, int64_t rows, const double* weights,
                      int64_t k, double* sums);

}  // namespace heddle::ops::simd

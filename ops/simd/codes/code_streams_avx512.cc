// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/simd/codes/code_streams.h"

namespace heddle::ops::simd {
namespace {

using Lookup = StreamedColumn::Lookup;

// A call of what is given to it must not take the vectors out of the registers.
#define HEDDLE_INLINE __attribute__((always_inline)) inline

HEDDLE_INLINE __m512i RowsOfStreams(const StreamedColumn& column) { return _mm512_loadu_si512(column.rows); }

// Reads the column in order: Next() gives the cells of the next row of all streams.
template <Lookup kLookup, int kBits>
class Reader {
 public:
  static constexpr int64_t kCodesOfWord = kBits == 0 ? 16 : 64 / kBits;

  HEDDLE_INLINE explicit Reader(const StreamedColumn& column) : codes_(column.codes), cells_(column.cells) {
    if constexpr (kLookup == Lookup::kConstant) {
      first_ = _mm512_set1_pd(cells_[0]);
    } else if constexpr (kLookup == Lookup::kCells) {
      step_ = column.step;
      places_ = _mm512_mullox_epi64(RowsOfStreams(column), _mm512_set1_epi64(step_));
    } else {
      places_ = kBits == 4   ? _mm512_maskz_srli_epi64(0xff, RowsOfStreams(column), 1)
                : kBits == 8 ? RowsOfStreams(column)
                             : _mm512_maskz_slli_epi64(0xff, RowsOfStreams(column), 1);
      if constexpr (kLookup == Lookup::kGather) {
        steps_ = _mm512_set1_epi64(column.step);
      } else {
        first_ = _mm512_loadu_pd(cells_);
        second_ = _mm512_loadu_pd(cells_ + 8);
        if constexpr (kLookup == Lookup::kThirtyTwo) {
          third_ = _mm512_loadu_pd(cells_ + 16);
          fourth_ = _mm512_loadu_pd(cells_ + 24);
        }
      }
    }
  }

  // To be called before the first and every kCodesOfWord-th row.
  HEDDLE_INLINE void Load() {
    if constexpr (kBits > 0) {
      words_ = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), 0xff, places_, codes_, 1);
      codes_ += 8;
    }
  }

  HEDDLE_INLINE __m512d Next() {
    if constexpr (kLookup == Lookup::kConstant) {
      return first_;
    } else if constexpr (kLookup == Lookup::kCells) {
      const __m512d cells = _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, places_, cells_, 8);
      cells_ += step_;
      return cells;
    } else {
      const __m512i codes = words_;
      words_ = _mm512_maskz_srli_epi64(0xff, words_, kBits);
      if constexpr (kLookup == Lookup::kSixteen) {
        // A lane finds its code in the lowest four bits; what is above them does not count.
        return _mm512_permutex2var_pd(first_, codes, second_);
      } else if constexpr (kLookup == Lookup::kThirtyTwo) {
        return _mm512_mask_blend_pd(_mm512_test_epi64_mask(codes, _mm512_set1_epi64(16)),
                                    _mm512_permutex2var_pd(first_, codes, second_),
                                    _mm512_permutex2var_pd(third_, codes, fourth_));
      } else {
        const __m512i code = _mm512_and_si512(codes, _mm512_set1_epi64((1 << kBits) - 1));
        return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, _mm512_maskz_mul_epu32(0xff, code, steps_),
                                        cells_, 8);
      }
    }
  }

 private:
  const uint8_t* codes_;
  const double* cells_;
  int64_t step_ = 1;
  __m512i places_ = _mm512_setzero_si512(), words_ = places_, steps_ = places_;
  __m512d first_ = _mm512_setzero_pd(), second_ = first_, third_ = first_, fourth_ = first_;
};

template <Lookup kLookup, int kBits, int kColumns, int kTogether>
HEDDLE_INLINE void AddTogether(const StreamedColumn* columns, int64_t rows, const double* weights,
                               double* sums) {
  using ColumnReader = Reader<kLookup, kBits>;
  constexpr int64_t kWord = ColumnReader::kCodesOfWord;
  const auto run = [&](auto... readers) __attribute__((always_inline)) {
    ColumnReader reader[kTogether] = {readers...};
    __m512d sum[kTogether][kColumns];
    for (int j = 0; j < kTogether; ++j)
      for (int c = 0; c < kColumns; ++c)
        sum[j][c] = _mm512_loadu_pd(sums + j * kColumns * kStreams + c * kStreams);
    const auto add = [&](int64_t i) __attribute__((always_inline)) {
      __m512d cells[kTogether];
#pragma GCC unroll 4
      for (int j = 0; j < kTogether; ++j) cells[j] = reader[j].Next();
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) {
        const __m512d weight = _mm512_loadu_pd(weights + (i * kColumns + c) * kStreams);
#pragma GCC unroll 4
        for (int j = 0; j < kTogether; ++j) sum[j][c] = _mm512_fmadd_pd(cells[j], weight, sum[j][c]);
      }
    };
    for (int64_t row = 0; row < rows; row += kWord) {
#pragma GCC unroll 4
      for (int j = 0; j < kTogether; ++j) reader[j].Load();
      const int64_t end = row + kWord < rows ? row + kWord : rows;
#pragma GCC unroll 4
      for (int64_t i = row; i < end; ++i) add(i);
    }
    for (int j = 0; j < kTogether; ++j)
      for (int c = 0; c < kColumns; ++c)
        _mm512_storeu_pd(sums + j * kColumns * kStreams + c * kStreams, sum[j][c]);
  };
  if constexpr (kTogether == 1)
    run(ColumnReader(columns[0]));
  else if constexpr (kTogether == 2)
    run(ColumnReader(columns[0]), ColumnReader(columns[1]));
  else
    run(ColumnReader(columns[0]), ColumnReader(columns[1]), ColumnReader(columns[2]),
        ColumnReader(columns[3]));
}

bool AreAlike(const StreamedColumn* columns, int64_t count) {
  for (int64_t j = 1; j < count; ++j)
    if (columns[j].lookup != columns[0].lookup || columns[j].bits != columns[0].bits) return false;
  return true;
}

// Calls visit with the lookup and the bits of a column as constants.
template <typename Visit>
void WithLookup(const StreamedColumn& column, const Visit& visit) {
  switch (column.lookup) {
    case Lookup::kConstant: return visit.template operator()<Lookup::kConstant, 0>();
    case Lookup::kCells: return visit.template operator()<Lookup::kCells, 0>();
    case Lookup::kSixteen:
      return column.bits == 4 ? visit.template operator()<Lookup::kSixteen, 4>()
                              : visit.template operator()<Lookup::kSixteen, 8>();
    case Lookup::kThirtyTwo: return visit.template operator()<Lookup::kThirtyTwo, 8>();
    case Lookup::kGather:
      return column.bits == 8 ? visit.template operator()<Lookup::kGather, 8>()
                              : visit.template operator()<Lookup::kGather, 16>();
  }
}

// Chains that wait for their own last addition take turns: those of `kTogether` columns, where they are
// looked up alike.
template <int kColumns, int kTogether>
void AddAlike(const StreamedColumn* columns, int64_t count, int64_t rows, const double* weights,
              double* sums) {
  constexpr int64_t kStep = kColumns * kStreams;
  for (int64_t j = 0; j < count;) {
    const bool are_alike = j + kTogether <= count && AreAlike(columns + j, kTogether);
    WithLookup(columns[j], [&]<Lookup kLookup, int kBits>() {
      if (are_alike)
        AddTogether<kLookup, kBits, kColumns, kTogether>(columns + j, rows, weights, sums + j * kStep);
      else
        AddTogether<kLookup, kBits, kColumns, 1>(columns + j, rows, weights, sums + j * kStep);
    });
    j += are_alike ? kTogether : 1;
  }
}

}  // namespace

void AddStreamsAvx512(const StreamedColumn* columns, int64_t count, int64_t rows, const double* weights,
                      int64_t k, double* sums) {
  switch (k) {
    case 1: return AddAlike<1, 4>(columns, count, rows, weights, sums);
    case 2: return AddAlike<2, 2>(columns, count, rows, weights, sums);
    case 3: return AddAlike<3, 2>(columns, count, rows, weights, sums);
    case 4: return AddAlike<4, 2>(columns, count, rows, weights, sums);
    case 5: return AddAlike<5, 1>(columns, count, rows, weights, sums);
    case 6: return AddAlike<6, 1>(columns, count, rows, weights, sums);
    case 7: return AddAlike<7, 1>(columns, count, rows, weights, sums);
    default: return AddAlike<8, 1>(columns, count, rows, weights, sums);
  }
}

#undef HEDDLE_INLINE

}  // namespace heddle::ops::simd

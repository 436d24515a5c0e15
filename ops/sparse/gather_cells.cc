// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/gather_cells.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "ops/base/fetch.h"

namespace heddle::ops {
namespace {

// Short loops of unknown length cost a wrong guess of a branch each: entries are taken so many at a time, and
// what is taken too much is overwritten by what comes after it.
constexpr int64_t kSpreadTogether = 8;
// Rows of x with at most so many entries are compared with a column at once.
constexpr int64_t kCompared = 8;

// values[place], or 0.0 unless it is there; without a branch.
double Where(bool there, const double* values, uint32_t place) {
  const uint64_t mask = uint64_t{0} - uint64_t{there};
  return std::bit_cast<double>(std::bit_cast<uint64_t>(values[place & mask]) & mask);
}

// The rows of x are short: a column of the pattern is compared with all of a row's.
class ComparedRow {
 public:
  static constexpr int64_t kTogether = 2;
  ComparedRow(const Matrix& x, int64_t first, int64_t last)
      : values_(x.values() + first),
        columns_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.column_indexes() + first))),
        valid_((1u << (last - first)) - 1) {}
  bool Has(int32_t column) const { return Matches(column) != 0; }
  double At(int32_t column) const {
    const unsigned found = Matches(column);
    return Where(found != 0, values_, static_cast<uint32_t>(std::countr_zero(found)));
  }

 private:
  unsigned Matches(int32_t column) const {
    const __m256i equal = _mm256_cmpeq_epi32(columns_, _mm256_set1_epi32(column));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) & valid_;
  }

  const double* values_;
  __m256i columns_;
  unsigned valid_;
};

class PlacedRow {
 public:
  static constexpr int64_t kTogether = 4;
  PlacedRow(const Matrix& x, int64_t first, int64_t last, SpreadRow& spread)
      : values_(x.values() + first),
        places_(spread.places.data()),
        first_(static_cast<uint32_t>(first - spread.base)),
        count_(static_cast<uint32_t>(last - first)) {}
  bool Has(int32_t column) const { return places_[column] - first_ < count_; }
  double At(int32_t column) const {
    const uint32_t place = places_[column] - first_;
    return Where(place < count_, values_, place);
  }

 private:
  const double* values_;
  const uint32_t* places_;
  uint32_t first_, count_;
};

// `past` entries after the row's last are readable; those placed too much come first, so that the row's own
// stay.
void Spread(const Matrix& x, int64_t first, int64_t last, int64_t past, SpreadRow& spread) {
  // Places are less than 2^32; those of other matrices and of earlier calls do not matter after a fill.
  if (first < spread.base || last - spread.base > int64_t{UINT32_MAX} || spread.places.empty()) {
    spread.places.assign(static_cast<size_t>(x.columns()), UINT32_MAX);
    spread.base = first;
  }
  const int32_t* columns = x.column_indexes();
  uint32_t* places = spread.places.data();
  const auto place = [&](int64_t e) { places[columns[e]] = static_cast<uint32_t>(e - spread.base); };
  const int64_t tail = first + (last - first - 1) / kSpreadTogether * kSpreadTogether;
  if (last - tail + past >= kSpreadTogether) {
#pragma GCC unroll 8
    for (int64_t k = kSpreadTogether - 1; k >= 0; --k) place(tail + k);
  } else {
    for (int64_t e = tail; e < last; ++e) place(e);
  }
  for (int64_t e = first; e < tail; e += kSpreadTogether)
#pragma GCC unroll 8
    for (int64_t k = 0; k < kSpreadTogether; ++k) place(e + k);
}

template <typename Row>
void ReadRow(const Row& row, const int32_t* columns, int64_t count, int64_t past, double* out) {
  int64_t e = 0;
  for (; e < count && e + Row::kTogether <= count + past; e += Row::kTogether)
#pragma GCC unroll 4
    for (int64_t k = 0; k < Row::kTogether; ++k) out[e + k] = row.At(columns[e + k]);
  for (; e < count; ++e) out[e] = row.At(columns[e]);
}

// Values are read here and there, which the machine does not foresee, and columns in more streams than it
// follows: fetches as many of both as row i has, about 2 KiB further on.
[[gnu::always_inline]] inline void FetchEntries(const Matrix& x, int64_t i) {
  const int64_t first = x.row_offsets()[i], count = x.row_offsets()[i + 1] - first;
  FetchLines(x.values() + first + 256, count);
  FetchLines(x.column_indexes() + first + 512, count);
}

void GatherSparse(const RowPattern& pattern, const Matrix& x, int64_t begin, int64_t end, SpreadRow& spread,
                  double* out) {
  const int64_t *offsets = pattern.offsets - begin, *x_offsets = x.row_offsets();
  const int64_t pattern_end = pattern.readable, x_end = x_offsets[x.rows()];
  const int64_t first_entry = offsets[begin];
  const bool short_rows = x.stored() <= kCompared / 2 * x.rows();
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = offsets[i], count = offsets[i + 1] - first;
    const int64_t x_first = x_offsets[i], x_last = x_offsets[i + 1];
    const int32_t* columns = pattern.columns + first;
    double* cells = out + (first - first_entry);
    // Reading too far is fine but behind the arrays' ends.
    const int64_t past = pattern_end - offsets[i + 1];
    if (short_rows && x_last - x_first <= kCompared && x_first + kCompared <= x_end) {
      ReadRow(ComparedRow(x, x_first, x_last), columns, count, past, cells);
    } else if (count > 0 && x_first < x_last) {
      FetchEntries(x, i);
      Spread(x, x_first, x_last, x_end - x_last, spread);
      ReadRow(PlacedRow(x, x_first, x_last, spread), columns, count, past, cells);
    } else {
      for (int64_t e = 0; e < count; ++e) cells[e] = 0.0;
    }
  }
}

// Entries of one row that were kept so far, and their values in `depth` matrices.
struct Kept {
  int32_t* columns;
  double* const* values;
  int64_t first;  // Place of the row's first.
  int64_t count;
};

// Keeps those of count entries of a row of x that `row`, of the first other matrix, has too. Most are not:
// their places are found first, with one store an entry.
template <typename Row>
void KeepFirst(const Row& row, const int32_t* columns, const double* values, int64_t count, int64_t readable,
               Kept& kept) {
  int32_t* const places = kept.columns + kept.first;
  int64_t left = 0, e = 0;
  for (; e < count && e + Row::kTogether <= readable; e += Row::kTogether)
#pragma GCC unroll 4
    for (int64_t k = 0; k < Row::kTogether; ++k) {
      places[left] = static_cast<int32_t>(e + k);
      left += row.Has(columns[e + k]) && e + k < count;
    }
  for (; e < count; ++e) {
    places[left] = static_cast<int32_t>(e);
    left += row.Has(columns[e]);
  }
  double *const own = kept.values[0] + kept.first, *const other = kept.values[1] + kept.first;
  for (int64_t k = 0; k < left; ++k) {
    const int32_t place = places[k], column = columns[place];
    places[k] = column;
    own[k] = values[place];
    other[k] = row.At(column);
  }
  kept.count = left;
}

// The same for matrix `depth`, among what was kept.
template <typename Row>
void KeepMore(const Row& row, size_t depth, Kept& kept) {
  int64_t left = 0;
  for (int64_t k = 0; k < kept.count; ++k) {
    const int32_t column = kept.columns[kept.first + k];
    kept.columns[kept.first + left] = column;
    for (size_t d = 0; d < depth; ++d) kept.values[d][kept.first + left] = kept.values[d][kept.first + k];
    kept.values[depth][kept.first + left] = row.At(column);
    left += row.Has(column);
  }
  kept.count = left;
}

// Rows of at most kEntries entries: every column of one is compared with all of the other, with no branch
// that depends on how many there are.
template <int kEntries>
class ShortRows {
 public:
  ShortRows(const Matrix& x, const Matrix& y) : x_(x), y_(y), x_end_(End(x)), y_end_(End(y)) {}

  // Intersects row i if both rows are short and so many entries can be read; false otherwise.
  bool Keep(int64_t i, Kept& kept) const {
    const int64_t x_first = x_.row_offsets()[i], x_count = x_.row_offsets()[i + 1] - x_first;
    const int64_t y_first = y_.row_offsets()[i], y_count = y_.row_offsets()[i + 1] - y_first;
    if (x_count > kEntries || y_count > kEntries || x_first + kEntries > x_end_ ||
        y_first + kEntries > y_end_)
      return false;
    const int32_t* const x_columns = x_.column_indexes() + x_first;
    __m256i y_columns[kVectors];
    for (int v = 0; v < kVectors; ++v)
      y_columns[v] = Columns(y_.column_indexes() + y_first + 8 * v, y_count - 8 * v);
    unsigned common = 0;
#pragma GCC unroll 16
    for (int k = 0; k < kEntries; ++k) {
      const __m256i column = _mm256_set1_epi32(x_columns[k]);
      __m256i equal = _mm256_cmpeq_epi32(column, y_columns[0]);
      for (int v = 1; v < kVectors; ++v)
        equal = _mm256_or_si256(equal, _mm256_cmpeq_epi32(column, y_columns[v]));
      common |= static_cast<unsigned>(_mm256_testz_si256(equal, equal) == 0) << k;
    }
    kept.count = 0;
    for (common &= (1u << x_count) - 1; common != 0; common &= common - 1, ++kept.count) {
      const int64_t place = std::countr_zero(common), to = kept.first + kept.count;
      const int32_t column = x_columns[place];
      unsigned found = 0;
      for (int v = 0; v < kVectors; ++v)
        found |= static_cast<unsigned>(_mm256_movemask_ps(
                     _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_set1_epi32(column), y_columns[v]))))
                 << (8 * v);
      kept.columns[to] = column;
      kept.values[0][to] = x_.values()[x_first + place];
      kept.values[1][to] = y_.values()[y_first + std::countr_zero(found)];
    }
    return true;
  }

 private:
  static constexpr int kVectors = kEntries / 8;
  static int64_t End(const Matrix& x) { return x.row_offsets()[x.rows()]; }
  // The first `count` of eight columns; the others are none.
  static __m256i Columns(const int32_t* columns, int64_t count) {
    const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)),
                                             _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_blendv_epi8(_mm256_set1_epi32(-1),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(columns)), there);
  }

  const Matrix &x_, &y_;
  int64_t x_end_, y_end_;
};

// Calls use(row) with row i of x made ready to be searched; false if it has no entries.
template <typename Use>
bool WithRow(const Matrix& x, int64_t i, SpreadRow& spread, Use use) {
  const int64_t first = x.row_offsets()[i], last = x.row_offsets()[i + 1], end = x.row_offsets()[x.rows()];
  if (first == last) return false;
  if (last - first <= kCompared && first + kCompared <= end) {
    use(ComparedRow(x, first, last));
  } else {
    Spread(x, first, last, end - last, spread);
    use(PlacedRow(x, first, last, spread));
  }
  return true;
}

// keep_short(i, kept) intersects row i with the first of the others, or returns false.
template <typename KeepShort>
void IntersectRowsWith(KeepShort keep_short, const Matrix& x, std::span<const Matrix* const> others,
                       int64_t begin, int64_t end, std::span<SpreadRow* const> spreads,
                       const Intersection& out) {
  const int64_t readable = x.row_offsets()[x.rows()];
  Kept kept{out.columns, out.values, 0, 0};
  out.offsets[0] = 0;
  for (int64_t i = begin; i < end; ++i) {
    if (!keep_short(i, kept)) {
      const int64_t first = x.row_offsets()[i], count = x.row_offsets()[i + 1] - first;
      kept.count = 0;
      FetchEntries(x, i);
      FetchEntries(*others[0], i);
      if (count > 0)
        WithRow(*others[0], i, *spreads[0], [&](const auto& row) {
          KeepFirst(row, x.column_indexes() + first, x.values() + first, count, readable - first, kept);
        });
    }
    for (size_t d = 1; d < others.size() && kept.count > 0; ++d) {
      FetchEntries(*others[d], i);
      if (!WithRow(*others[d], i, *spreads[d], [&](const auto& row) { KeepMore(row, d + 1, kept); }))
        kept.count = 0;
    }
    kept.first += kept.count;
    out.offsets[i - begin + 1] = kept.first;
  }
}

}  // namespace

void IntersectRows(const Matrix& x, std::span<const Matrix* const> others, int64_t begin, int64_t end,
                   std::span<SpreadRow* const> spreads, const Intersection& out) {
  const auto run = [&](auto keep_short) {
    IntersectRowsWith(keep_short, x, others, begin, end, spreads, out);
  };
  const auto use = [&](const auto& rows) { run([&](int64_t i, Kept& kept) { return rows.Keep(i, kept); }); };
  // Most rows of the longer kind should be short.
  const double length = static_cast<double>(std::max(x.stored(), others[0]->stored())) /
                        static_cast<double>(std::max<int64_t>(x.rows(), 1));
  if (length <= 4) return use(ShortRows<8>(x, *others[0]));
  if (length <= 12) return use(ShortRows<16>(x, *others[0]));
  run([](int64_t, Kept&) { return false; });
}

namespace {

// Rows of so few entries end where no branch foresees it, and what was looked up ahead of memory is lost:
// entry by entry, whatever row it is of.
constexpr int64_t kShortRows = 8;

bool AreShort(const int64_t* offsets, int64_t rows) {
  return offsets[rows] - offsets[0] <= kShortRows * rows;
}

// For each entry the number of rows that begin at it.
const uint32_t* FindBegins(const int64_t* offsets, int64_t rows, std::vector<uint32_t>& begins) {
  begins.assign(static_cast<size_t>(offsets[rows] - offsets[0]) + 1, 0);
  for (int64_t i = 1; i < rows; ++i) ++begins[static_cast<size_t>(offsets[i] - offsets[0])];
  return begins.data();
}

void GatherFromShortRows(const RowPattern& pattern, const Matrix& x, int64_t begin, int64_t end,
                         SpreadRow& spread, double* out) {
  const uint32_t* const begins = FindBegins(pattern.offsets, end - begin, spread.begins);
  const int64_t n = x.columns();
  const double* cells = x.data() + begin * n;
  const int32_t* const columns = pattern.columns + pattern.offsets[0];
  for (int64_t e = 0, count = pattern.Count(end - begin); e < count; ++e) {
    cells += begins[e] * n;
    out[e] = cells[columns[e]];
  }
}

}  // namespace

void AddByFlatLanes(const int64_t* offsets, const int32_t* columns, const double* values, int64_t rows,
                    int64_t n, int64_t base, double* lanes) {
  if (!AreShort(offsets, rows)) {
    for (int64_t i = 0; i < rows; ++i, base += n)
      for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) lanes[(base + columns[e]) & 7] += values[e];
    return;
  }
  thread_local std::vector<uint32_t> scratch;
  const uint32_t* const begins = FindBegins(offsets, rows, scratch);
  for (int64_t e = offsets[0]; e < offsets[rows]; ++e) {
    base += begins[e - offsets[0]] * n;
    lanes[(base + columns[e]) & 7] += values[e];
  }
}

void GatherCells(const RowPattern& pattern, const Matrix& x, int64_t begin, int64_t end, SpreadRow& spread,
                 double* out) {
  if (x.IsSparse()) return GatherSparse(pattern, x, begin, end, spread, out);
  if (AreShort(pattern.offsets, end - begin)) return GatherFromShortRows(pattern, x, begin, end, spread, out);
  const int64_t* offsets = pattern.offsets - begin;
  const int32_t* columns = pattern.columns;
  for (int64_t i = begin; i < end; ++i) {
    const double* cells = x.data() + i * x.columns();
    for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) *out++ = cells[columns[e]];
  }
}

}  // namespace heddle::ops

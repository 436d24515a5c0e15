// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "ops/cells/tuple_tables.h"

namespace heddle::ops {

/// How many of the codes are `code`.
inline int64_t CountOf(uint16_t code, const uint16_t* codes, size_t rows) {
  const __m256i wanted = _mm256_set1_epi16(static_cast<int16_t>(code));
  int64_t count = 0;
  size_t i = 0;
  for (; i + 16 <= rows; i += 16) {
    const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
    // Two bits for each that is equal.
    count += std::popcount(static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi16(some, wanted))));
  }
  return count / 2 + std::count(codes + i, codes + rows, code);
}

/// How often one row has another code than the row before it, and once; there is one row at least.
inline int64_t CountRuns(const uint16_t* codes, size_t rows) {
  int64_t same = 0;
  size_t i = 1;
  for (; i + 16 <= rows; i += 16) {
    const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
    const __m256i before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i - 1));
    same += std::popcount(static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi16(some, before))));
  }
  same /= 2;
  for (; i < rows; ++i) same += codes[i] == codes[i - 1] ? 1 : 0;
  return static_cast<int64_t>(rows) - same;
}

/// What a block of rows has of one group: its tuples, and of each row which one.
template <typename T>
struct BlockOfGroup {
  std::vector<T> cells;               // The tuples, one behind the other,
  std::vector<uint8_t> narrow_codes;  // the code of each row, where there are at most 256 tuples,
  std::vector<uint16_t> codes;        // or more,
  std::vector<int32_t> counts;        // the rows of each tuple,
  int64_t runs = 0;  // and how often one row has another tuple than the one before it, and once.

  int64_t size() const { return static_cast<int64_t>(counts.size()); }
  size_t rows() const { return std::max(codes.size(), narrow_codes.size()); }
  uint16_t CodeOf(size_t row) const { return codes.empty() ? narrow_codes[row] : codes[row]; }
  // The codes of so many rows; the counts are known.
  void Keep(const uint16_t* first, size_t count) {
    if (counts.size() > 256) {
      codes.assign(first, first + count);
      return;
    }
    narrow_codes.resize(count);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + i));
      const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + i + 8));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(narrow_codes.data() + i), _mm_packus_epi16(low, high));
    }
    for (; i < count; ++i) narrow_codes[i] = static_cast<uint8_t>(first[i]);
  }
  // Calls visit(codes), a pointer to one for each row.
  template <typename Visit>
  void WithCodes(Visit visit) const {
    if (codes.empty())
      visit(narrow_codes.data());
    else
      visit(codes.data());
  }
};

/// The tuples of some of the columns of a group of `width` columns: those at `places` among them, ascending.
template <typename T>
BlockOfGroup<T> ColumnsOf(const BlockOfGroup<T>& all, size_t width, const std::vector<size_t>& places) {
  BlockOfGroup<T> block;
  TupleTable<T> table(static_cast<int64_t>(places.size()));
  std::vector<T> tuple(places.size());
  std::vector<uint16_t> numbers;  // Of the tuples of all columns.
  for (size_t i = 0; i < all.counts.size(); ++i) {
    for (size_t k = 0; k < places.size(); ++k) tuple[k] = all.cells[i * width + places[k]];
    numbers.push_back(static_cast<uint16_t>(table.Add(tuple.data())));
  }
  block.cells = table.cells();
  block.counts.assign(static_cast<size_t>(table.size()), 0);
  for (size_t i = 0; i < numbers.size(); ++i) block.counts[numbers[i]] += all.counts[i];
  std::vector<uint16_t> codes(all.rows());
  all.WithCodes([&](const auto* own) {
    for (size_t row = 0; row < codes.size(); ++row) codes[row] = numbers[own[row]];
  });
  block.runs = 1;
  for (size_t row = 1; row < codes.size(); ++row) block.runs += codes[row] != codes[row - 1] ? 1 : 0;
  block.Keep(codes.data(), codes.size());
  return block;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "ops/cells/tuple_tables.h"

namespace heddle::ops {

/// cells[i * stride + j] becomes out[j * room + i], for `rows` rows and `columns` columns.
template <typename T>
void CopyColumns(const T* cells, int64_t stride, int64_t rows, int64_t columns, T* out, int64_t room) {
  int64_t i = 0;
  if constexpr (sizeof(T) == sizeof(double)) {
    for (; i + 4 <= rows; i += 4) {
      int64_t j = 0;
      for (; j + 4 <= columns; j += 4) {
        const T* const from = cells + i * stride + j;
        const auto load = [&](int64_t k) {
          return _mm256_loadu_pd(reinterpret_cast<const double*>(from + k * stride));
        };
        const __m256d a = load(0), b = load(1), c = load(2), d = load(3);
        const __m256d low_ab = _mm256_unpacklo_pd(a, b), high_ab = _mm256_unpackhi_pd(a, b);
        const __m256d low_cd = _mm256_unpacklo_pd(c, d), high_cd = _mm256_unpackhi_pd(c, d);
        const auto store = [&](int64_t k, __m256d four) {
          _mm256_storeu_pd(reinterpret_cast<double*>(out + (j + k) * room + i), four);
        };
        store(0, _mm256_permute2f128_pd(low_ab, low_cd, 0x20));
        store(1, _mm256_permute2f128_pd(high_ab, high_cd, 0x20));
        store(2, _mm256_permute2f128_pd(low_ab, low_cd, 0x31));
        store(3, _mm256_permute2f128_pd(high_ab, high_cd, 0x31));
      }
      for (; j < columns; ++j)
        for (int64_t k = i; k < i + 4; ++k) out[j * room + k] = cells[k * stride + j];
    }
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[j * room + i] = cells[i * stride + j];
}

/// The cells of some columns of a block of rows: the different ones of each column, numbered by first
/// occurrence, and the number of each row's cell.
template <typename T>
class NumberedColumns {
 public:
  /// `columns`: of a matrix with `all` of them. A block has at most `most_rows` rows, fewer than kMostTuples.
  NumberedColumns(const std::vector<int32_t>& columns, int64_t all, int64_t most_rows)
      : places_(static_cast<size_t>(all), -1), most_rows_(most_rows), tables_(columns.size()) {
    for (size_t k = 0; k < columns.size(); ++k)
      places_[static_cast<size_t>(columns[k])] = static_cast<int32_t>(k);
    numbers_.resize(columns.size() * static_cast<size_t>(most_rows));
  }

  /// Begins a block.
  void Begin() {
    for (ValueTable<T>& table : tables_) table = ValueTable<T>();
    rows_ = 0;
  }
  /// The rows that follow, all columns of the matrix.
  void Add(const T* cells, int64_t rows) {
    constexpr int64_t kRowsAtOnce = 256;
    for (int64_t i = 0; i < rows; i += kRowsAtOnce)
      AddTile(cells + i * std::ssize(places_), std::min(kRowsAtOnce, rows - i));
  }
  int64_t rows() const { return rows_; }

  const uint16_t* numbers(int32_t column) const { return numbers_.data() + PlaceOf(column) * most_rows_; }
  const std::vector<T>& cells(int32_t column) const {
    return tables_[static_cast<size_t>(PlaceOf(column))].cells();
  }

 private:
  // Of eight columns, whose cells of a row are in one line of the cache, or two.
  static constexpr int64_t kColumnsAtOnce = 8;

  int64_t PlaceOf(int32_t column) const { return places_[static_cast<size_t>(column)]; }

  void AddTile(const T* cells, int64_t rows) {
    const int64_t stride = std::ssize(places_);
    T of_columns[kColumnsAtOnce * 256];
    for (int64_t first = 0; first < stride; first += kColumnsAtOnce) {
      const int64_t count = std::min(kColumnsAtOnce, stride - first);
      const int32_t* const places = places_.data() + first;
      if (std::all_of(places, places + count, [](int32_t place) { return place < 0; })) continue;
      CopyColumns(cells + first, stride, rows, count, of_columns, rows);
      for (int64_t k = 0; k < count; ++k)
        if (places[k] >= 0)
          tables_[static_cast<size_t>(places[k])].Add(of_columns + k * rows, 1, rows,
                                                      numbers_.data() + places[k] * most_rows_ + rows_);
    }
    rows_ += rows;
  }

  std::vector<int32_t> places_;  // Of each column of the matrix among those that are numbered; -1: none.
  int64_t most_rows_;
  int64_t rows_ = 0;
  std::vector<ValueTable<T>> tables_;
  std::vector<uint16_t> numbers_;  // Of each place those of all rows.
};

/// The different tuples of several columns of a block, numbered by first occurrence. By tables of all pairs
/// of numbers, where these are few.
class JointNumbers {
 public:
  /// Of one column: the numbers of its rows, less than `count`.
  void Begin(const uint16_t* numbers, int64_t count, int64_t rows) {
    numbers_.assign(numbers, numbers + rows);
    tuples_ = static_cast<uint32_t>(count);
  }
  /// With one more column.
  void Join(const uint16_t* numbers, int64_t count) {
    first_rows_.clear();
    if (tuples_ * static_cast<uint64_t>(count) <= kMostPairs)
      JoinByTable(numbers, static_cast<uint32_t>(count));
    else
      JoinByHash(numbers, static_cast<uint32_t>(count));
    tuples_ = static_cast<uint32_t>(first_rows_.size());
  }
  const uint16_t* numbers() const { return numbers_.data(); }
  /// Of each tuple the first row that has it; of two columns and more.
  std::span<const int32_t> first_rows() const { return first_rows_; }

 private:
  static constexpr uint64_t kMostPairs = uint64_t{1} << 16;
  static constexpr uint16_t kNone = 0xffff;

  void JoinByTable(const uint16_t* numbers, uint32_t count) {
    table_.assign(size_t{tuples_} * count, kNone);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      uint16_t& number = table_[numbers_[i] * count + numbers[i]];
      if (number == kNone) number = Next(i);
      numbers_[i] = number;
    }
  }
  void JoinByHash(const uint16_t* numbers, uint32_t count) {
    // Open addressing, of pairs and 1.
    size_t size = 64;
    while (size < 2 * numbers_.size()) size *= 2;
    slots_.assign(size, {});
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const uint32_t key = numbers_[i] * count + numbers[i] + 1;
      size_t at = SpreadHash(key) & (size - 1);
      while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & (size - 1);
      if (slots_[at].key == 0) slots_[at] = {key, Next(i)};
      numbers_[i] = slots_[at].number;
    }
  }
  uint16_t Next(size_t row) {
    first_rows_.push_back(static_cast<int32_t>(row));
    return static_cast<uint16_t>(first_rows_.size() - 1);
  }

  struct Slot {
    uint32_t key = 0;
    uint16_t number = 0;
  };
  uint32_t tuples_ = 0;
  std::vector<uint16_t> numbers_;
  std::vector<int32_t> first_rows_;
  std::vector<uint16_t> table_;
  std::vector<Slot> slots_;
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/hash.h"
#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/simd/codes/number_cells.h"

// Distinct tuples of cells, numbered by first occurrence. Cells are told apart by their bits, but that all
// NaN are one.
namespace heddle::ops {

template <typename T>
T Canonical(T cell) {
  return std::isnan(cell) ? std::numeric_limits<T>::quiet_NaN() : cell;
}
template <typename T>
bool IsSameCell(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// A hash whose low bits depend on all bits of another one: whole numbers as doubles differ in high bits
/// alone.
inline size_t SpreadHash(uint64_t hash) { return static_cast<size_t>(hash * 0x9e3779b97f4a7c15 >> 32); }

/// Tuples of several cells. Open addressing.
template <typename T>
class TupleTable {
 public:
  explicit TupleTable(int64_t width) : width_(width), slots_(64, kFree) {}
  int64_t size() const { return size_; }
  const std::vector<T>& cells() const { return tuples_; }
  const T* tuple(int64_t i) const { return tuples_.data() + i * width_; }

  /// The number of the tuple, of canonical cells; -1 for a new one beyond kMostTuples.
  int64_t Add(const T* tuple) {
    if (size_ > 0 && Equal(last_, tuple)) return last_;
    size_t slot = Hash(tuple) & (slots_.size() - 1);
    while (slots_[slot] != kFree) {
      if (Equal(slots_[slot], tuple)) return last_ = slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (size_ == kMostTuples) return -1;
    tuples_.insert(tuples_.end(), tuple, tuple + width_);
    slots_[slot] = static_cast<int32_t>(size_);
    last_ = static_cast<int32_t>(size_++);
    if (static_cast<size_t>(size_) * 2 > slots_.size()) Grow();
    return last_;
  }

 private:
  static constexpr int32_t kFree = -1;

  // Few cells: a loop takes less time than a call of memcmp.
  bool Equal(int64_t i, const T* other) const {
    const T* own = tuple(i);
    for (int64_t k = 0; k < width_; ++k)
      if (!IsSameCell(own[k], other[k])) return false;
    return true;
  }
  size_t Hash(const T* cells) const {
    uint64_t hash = 0;
    for (int64_t k = 0; k < width_; ++k) {
      uint64_t bits = 0;
      std::memcpy(&bits, cells + k, sizeof(T));
      hash = FoldHash(hash, bits);
    }
    return SpreadHash(hash);
  }
  void Grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (int64_t i = 0; i < size_; ++i) {
      size_t slot = Hash(tuple(i)) & (slots_.size() - 1);
      while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<int32_t>(i);
    }
  }

  int64_t width_;
  int64_t size_ = 0;
  int32_t last_ = 0;
  std::vector<T> tuples_;
  std::vector<int32_t> slots_;
};

/// Single cells, fewer than kMostTuples different ones. What is a small whole number is found by it, without
/// a hash and without a branch on what the cell before was.
template <typename T>
class ValueTable {
 public:
  ValueTable() : others_(1), whole_(kWhole + 1, kFree) {}
  const std::vector<T>& cells() const { return others_.cells(); }
  int64_t size() const { return others_.size(); }

  uint16_t Add(T cell) {
    const int32_t whole = Truncated(cell);
    const uint32_t place = static_cast<uint32_t>(whole) - static_cast<uint32_t>(kFirstWhole);
    if (place < kWhole && IsSameCell(static_cast<T>(whole), cell)) {
      uint16_t& number = whole_[place];
      if (number == kFree) number = Insert(cell);
      return number;
    }
    return Insert(Canonical(cell));
  }
  /// The same of `count` cells, `stride` apart.
  void Add(const T* cells, int64_t stride, int64_t count, uint16_t* numbers) {
    for (int64_t i = 0; i < count;) {
      if constexpr (std::is_same_v<T, double>)
        if (SelectedCpu() == Cpu::kAvx512)
          i += simd::NumberCellsAvx512({whole_.data(), kFirstWhole, kWhole}, cells + i * stride, stride,
                                       count - i, numbers + i);
      // Those with a new cell among them, or one that is no small whole number.
      for (const int64_t end = std::min(count, i + 8); i < end; ++i) numbers[i] = Add(cells[i * stride]);
    }
  }

 private:
  static constexpr int32_t kFirstWhole = -256;
  static constexpr uint32_t kWhole = 4352;
  static constexpr uint16_t kFree = simd::WholeNumbers::kNoNumber;

  static int32_t Truncated(double cell) { return _mm_cvttsd_si32(_mm_set_sd(cell)); }
  static int32_t Truncated(float cell) { return _mm_cvttss_si32(_mm_set_ss(cell)); }
  uint16_t Insert(T cell) { return static_cast<uint16_t>(others_.Add(&cell)); }

  TupleTable<T> others_;
  std::vector<uint16_t> whole_;
};

}  // namespace heddle::ops

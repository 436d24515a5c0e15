// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "ops/io/files/counted_bytes.h"

namespace heddle::ops {

/// Which cells of a matrix or frame have come already, a bit each. Threads may add at once.
class CellSet {
 public:
  /// None yet. kResourceExhausted names the file for which there is no room.
  static Result<CellSet> Make(int64_t rows, int64_t columns, std::string_view file) {
    CellSet set(columns);
    const int64_t words = (rows * columns + 63) / 64;
    HEDDLE_RETURN_IF_ERROR(set.memory_.Renew(words * 8, file));
    std::fill_n(set.words(), words, uint64_t{0});
    return set;
  }

  /// False if the cell is one of them.
  bool Add(int64_t row, int64_t column) {
    const int64_t place = row * columns_ + column;
    const uint64_t bit = uint64_t{1} << (place % 64);
    return (std::atomic_ref(words()[place / 64]).fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

 private:
  explicit CellSet(int64_t columns) : columns_(columns) {}
  uint64_t* words() { return reinterpret_cast<uint64_t*>(memory_.data()); }

  CountedBytes memory_;
  int64_t columns_;
};

}  // namespace heddle::ops

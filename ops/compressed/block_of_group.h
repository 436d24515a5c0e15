// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/cells/tuple_tables.h"

namespace heddle::ops {

/// What a block of rows has of one group: its tuples, and of each row which one.
template <typename T>
struct BlockOfGroup {
  std::optional<ValueTable<T>> values;  // Of groups of one column, while the block is looked at,
  std::optional<TupleTable<T>> tuples;  // and of others.
  std::vector<T> cells;                 // Then the tuples, one behind the other,
  std::vector<uint8_t> narrow_codes;    // the code of each row, where there are at most 256 tuples,
  std::vector<uint16_t> codes;          // or more,
  std::vector<int32_t> counts;          // the rows of each tuple,
  int64_t runs = 0;  // and how often one row has another tuple than the one before it, and once.

  int64_t size() const { return static_cast<int64_t>(counts.size()); }
  size_t rows() const { return std::max(codes.size(), narrow_codes.size()); }
  uint16_t CodeOf(size_t row) const { return codes.empty() ? narrow_codes[row] : codes[row]; }
  // The codes of so many rows; the counts are known.
  void Keep(const uint16_t* first, size_t count) {
    if (counts.size() <= 256)
      narrow_codes.assign(first, first + count);
    else
      codes.assign(first, first + count);
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

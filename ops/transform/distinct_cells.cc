// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/distinct_cells.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/frame/convert.h"
#include "ops/transform/key_table.h"

namespace heddle::ops {
namespace {

constexpr int64_t kLeastRowsOfPiece = int64_t{1} << 17, kMostRowsOfPiece = int64_t{1} << 30;
constexpr int64_t kRowsBetweenLooks = 1 << 12;
constexpr int64_t kMostDistinct = std::numeric_limits<int32_t>::max();

// Few pieces: each meets most of the frequent cells anew. How rows are cut changes no number.
int64_t RowsOfPiece(int64_t rows) {
  const int64_t pieces = int64_t{4} * ParallelThreads();
  return std::clamp((rows + pieces - 1) / pieces, kLeastRowsOfPiece, kMostRowsOfPiece);
}

// Numbers the keys of each piece of rows, then those of the whole column, piece after piece.
template <typename Key, typename KeyAt>
Result<DistinctCells> Find(const Column& column, const std::atomic<bool>* cancelled, const KeyAt& key_at) {
  const auto ends = [cancelled](int64_t i) { return i % kRowsBetweenLooks == 0 && IsCancelled(cancelled); };
  const int64_t rows = column.rows(), rows_of_piece = RowsOfPiece(rows);
  DistinctCells result;
  result.numbers.resize(static_cast<size_t>(rows));
  std::vector<KeyTable<Key>> pieces(static_cast<size_t>((rows + rows_of_piece - 1) / rows_of_piece));
  const auto count = static_cast<int64_t>(pieces.size());
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      KeyTable<Key>& piece = pieces[static_cast<size_t>(p)];
      for (int64_t i = p * rows_of_piece; i < std::min(rows, (p + 1) * rows_of_piece); ++i) {
        if (ends(i)) return;
        int32_t& number = result.numbers[static_cast<size_t>(i)];
        number = -1;
        Key key;
        if (!column.IsMissing(i) && key_at(i, &key)) number = piece.NumberOf(key, HashOf(key), i);
      }
    }
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  if (count == 1) {
    result.first_rows = std::move(pieces[0].rows());
    return result;
  }
  KeyTable<Key> whole;
  std::vector<std::vector<int32_t>> numbers(pieces.size());  // In the whole, of the keys of a piece.
  for (size_t p = 0; p < pieces.size(); ++p) {
    KeyTable<Key>& piece = pieces[p];
    numbers[p].reserve(piece.keys().size());
    for (size_t k = 0; k < piece.keys().size(); ++k) {
      if (ends(static_cast<int64_t>(k))) return Cancelled("cancelled");
      numbers[p].push_back(whole.NumberOf(piece.keys()[k], piece.hashes()[k], piece.rows()[k]));
    }
    if (static_cast<int64_t>(whole.keys().size()) > kMostDistinct)
      return ResourceExhausted("a column has more than {} different cells", kMostDistinct);
  }
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = p * rows_of_piece; i < std::min(rows, (p + 1) * rows_of_piece); ++i) {
        int32_t& number = result.numbers[static_cast<size_t>(i)];
        if (number >= 0) number = numbers[static_cast<size_t>(p)][static_cast<size_t>(number)];
      }
  });
  result.first_rows = std::move(whole.rows());
  return result;
}

}  // namespace

std::string DistinctCells::TextOf(const Column& column, int64_t number) const {
  std::string text;
  AppendCell(column, first_rows[static_cast<size_t>(number)], &text);
  return text;
}

Result<DistinctCells> FindDistinctCells(const Column& column, const std::atomic<bool>* cancelled) {
  switch (column.storage()) {
    case ColumnStorage::kTexts:
      return Find<std::string_view>(column, cancelled, [&](int64_t i, std::string_view* key) {
        *key = column.TextAt(i);
        return !key->empty();
      });
    case ColumnStorage::kDoubles:
      return Find<uint64_t>(column, cancelled, [&](int64_t i, uint64_t* key) {
        const double x = column.doubles()[i];
        *key = std::bit_cast<uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x);
        return true;
      });
    case ColumnStorage::kIntegers:
      return Find<uint64_t>(column, cancelled, [&](int64_t i, uint64_t* key) {
        *key = static_cast<uint64_t>(column.integers()[i]);
        return true;
      });
    case ColumnStorage::kBooleans:
      return Find<uint64_t>(column, cancelled, [&](int64_t i, uint64_t* key) {
        *key = column.booleans()[i];
        return true;
      });
  }
  HEDDLE_CHECK(false, "cells of every storage are compared");
}

}  // namespace heddle::ops

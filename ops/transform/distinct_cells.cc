// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/distinct_cells.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include "ops/frame/convert.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kRowsOfPiece = int64_t{1} << 16;
constexpr int64_t kMostDistinct = std::numeric_limits<int32_t>::max();

uint64_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }
uint64_t HashOf(uint64_t bits) {
  // The finalizer of MurmurHash3: neighbours go apart.
  bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccdULL;
  bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return bits ^ bits >> 33;
}

// Numbers of keys in order of appearance: open addressing, at most half full.
template <typename Key>
class KeyTable {
 public:
  // The number of the key, which `row` is the first to hold if it is new.
  int32_t NumberOf(const Key& key, uint64_t hash, int64_t row) {
    if (2 * keys_.size() >= slots_.size()) Grow();
    size_t& slot = slots_[SlotOf(key, hash)];
    if (slot == 0) {
      keys_.push_back(key);
      hashes_.push_back(hash);
      rows_.push_back(row);
      slot = keys_.size();
    }
    return static_cast<int32_t>(slot - 1);
  }
  const std::vector<Key>& keys() const { return keys_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }
  std::vector<int64_t>& rows() { return rows_; }

 private:
  size_t SlotOf(const Key& key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at] != 0 && (hashes_[slots_[at] - 1] != hash || keys_[slots_[at] - 1] != key))
      at = (at + 1) & mask;
    return at;
  }
  void Grow() {
    slots_.assign(std::max<size_t>(64, 2 * slots_.size()), 0);
    for (size_t i = 0; i < keys_.size(); ++i) {
      size_t at = hashes_[i] & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i + 1;
    }
  }

  std::vector<size_t> slots_;  // Numbers and one; 0: empty.
  std::vector<Key> keys_;
  std::vector<uint64_t> hashes_;
  std::vector<int64_t> rows_;  // The first of each key.
};

// Numbers the keys of each piece of rows, then those of the whole column, piece after piece.
template <typename Key, typename KeyAt>
Result<DistinctCells> Find(const Column& column, const KeyAt& key_at) {
  const int64_t rows = column.rows();
  DistinctCells result;
  result.numbers.resize(static_cast<size_t>(rows));
  std::vector<KeyTable<Key>> pieces(static_cast<size_t>((rows + kRowsOfPiece - 1) / kRowsOfPiece));
  const auto count = static_cast<int64_t>(pieces.size());
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      KeyTable<Key>& piece = pieces[static_cast<size_t>(p)];
      for (int64_t i = p * kRowsOfPiece; i < std::min(rows, (p + 1) * kRowsOfPiece); ++i) {
        int32_t& number = result.numbers[static_cast<size_t>(i)];
        number = -1;
        Key key;
        if (!column.IsMissing(i) && key_at(i, &key)) number = piece.NumberOf(key, HashOf(key), i);
      }
    }
  });
  if (count == 1) {
    result.first_rows = std::move(pieces[0].rows());
    return result;
  }
  KeyTable<Key> whole;
  std::vector<std::vector<int32_t>> numbers(pieces.size());  // In the whole, of the keys of a piece.
  for (size_t p = 0; p < pieces.size(); ++p) {
    KeyTable<Key>& piece = pieces[p];
    numbers[p].reserve(piece.keys().size());
    for (size_t k = 0; k < piece.keys().size(); ++k)
      numbers[p].push_back(whole.NumberOf(piece.keys()[k], piece.hashes()[k], piece.rows()[k]));
    if (static_cast<int64_t>(whole.keys().size()) > kMostDistinct - kRowsOfPiece)
      return ResourceExhausted("a column has more than {} different cells", kMostDistinct - kRowsOfPiece);
  }
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = p * kRowsOfPiece; i < std::min(rows, (p + 1) * kRowsOfPiece); ++i) {
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

Result<DistinctCells> FindDistinctCells(const Column& column) {
  switch (column.storage()) {
    case ColumnStorage::kTexts:
      return Find<std::string_view>(column, [&](int64_t i, std::string_view* key) {
        *key = column.TextAt(i);
        return !key->empty();
      });
    case ColumnStorage::kDoubles:
      return Find<uint64_t>(column, [&](int64_t i, uint64_t* key) {
        const double x = column.doubles()[i];
        *key = std::bit_cast<uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x);
        return true;
      });
    case ColumnStorage::kIntegers:
      return Find<uint64_t>(column, [&](int64_t i, uint64_t* key) {
        *key = static_cast<uint64_t>(column.integers()[i]);
        return true;
      });
    case ColumnStorage::kBooleans:
      return Find<uint64_t>(column, [&](int64_t i, uint64_t* key) {
        *key = column.booleans()[i];
        return true;
      });
  }
  HEDDLE_CHECK(false, "cells of every storage are compared");
}

}  // namespace heddle::ops

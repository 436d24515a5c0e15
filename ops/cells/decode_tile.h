// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/cells/code_units.h"

namespace heddle::ops {

/// The cells of a compressed matrix, a few rows at a time, for kernels that read them in the first-level
/// cache. T is the type of its cells. DDC groups of adjacent columns are joined to tuples of up to eight
/// cells, which are copied by one look-up; cells of EMPTY, CONST and SDC groups are copied from a row that
/// has their defaults. With AVX-512 eight adjacent columns of codes of 4 bits are looked up in registers.
template <typename T>
class TileDecoder {
 public:
  /// Shares the groups of `matrix`.
  explicit TileDecoder(const Matrix& matrix);
  TileDecoder(const TileDecoder&) = delete;
  TileDecoder& operator=(const TileDecoder&) = delete;

  /// Where one thread reads on: tiles that follow each other need no search for exceptions and runs.
  class Cursor {
   private:
    friend class TileDecoder;
    int64_t row_ = -1;  // Of the groups.
    std::vector<GroupPlace> places_;
  };

  int64_t columns() const { return matrix_.columns(); }
  /// Rows [begin, end) of the matrix: cell (i, j) to cells[(i - begin) * columns() + j].
  void Decode(Cursor* cursor, int64_t begin, int64_t end, T* cells) const;

  /// Rows of a tile whose cells stay in the first-level cache, and whose groups are worth a call: a power of
  /// two.
  static int64_t RowsOfTile(int64_t columns);

 private:
  // Adjacent columns of a tuple.
  struct Piece {
    int64_t column = 0;  // Of the matrix.
    int64_t offset = 0;  // In the tuple.
    int64_t width = 0;   // At most kMostTogether.
  };
  static constexpr int64_t kMostTogether = 8;
  // Groups with a dictionary, and where its tuples go.
  struct Tuples {
    std::vector<Piece> pieces;
    std::vector<T> joined;     // Of joined groups.
    const T* cells = nullptr;  // Row-major, `width` a tuple.
    int64_t width = 0;
  };
  struct Unit {
    CodeUnit codes;
    Tuples tuples;
  };
  struct Group {
    const ColumnGroup* group = nullptr;
    Tuples tuples;
  };

  // Eight adjacent columns of groups with codes of 4 bits, where the processor looks them up in registers.
  struct Eight {
    int64_t column = 0;
    std::array<const Codes*, 8> codes{};
    std::vector<T> cells;  // 16 for each column.
  };

  void FindEights(const std::vector<const ColumnGroup*>& dense);
  void AddEight(const std::vector<std::pair<const ColumnGroup*, int64_t>>& columns, int64_t first);
  void DecodeEight(const Eight& eight, int64_t begin, int64_t end, T* cells) const;
  void AddUnits(std::vector<const ColumnGroup*> dense);
  void AddUnit(const CodeUnit& codes);
  void AddDefaults(const ColumnGroup& group);
  void DecodeRows(Cursor* cursor, int64_t begin, int64_t end, T* cells) const;
  void DecodeFour(const Unit* units, int64_t begin, int64_t end, T* cells) const;
  void FindFours();
  void CopyPlain(const Group& plain, int64_t begin, int64_t end, T* cells) const;
  // Those that are in no eight.
  std::vector<Piece> PiecesOf(const std::vector<int32_t>& columns) const;

  Matrix matrix_;
  std::vector<Eight> eights_;      // DDC
  std::vector<bool> is_in_eight_;  // By column.
  std::vector<T> defaults_;        // A row with the cells of EMPTY, CONST and SDC groups.
  std::vector<Piece> default_;     // Where they are; of any width.
  std::vector<Unit> units_;        // DDC
  std::vector<Unit> single_;       // DDC of one column each, in fours of adjacent columns.
  std::vector<Group> moving_;      // SDC and RLE, which have a place in a cursor.
  std::vector<Group> plain_;       // UNCOMPRESSED
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/values/value.h"
#include "ops/io/files/counted_bytes.h"
#include "ops/io/formats/file_format.h"

// Cells that one rank parses and other ranks keep (docs/files.md, "Read and written by several workers"). On
// their way they are a dense matrix of two columns, in the order of the file: the place of a cell in the rows
// of the rank that keeps it, row by row, and its value.
namespace heddle::ops {

/// Whether places of a matrix of that shape are exact, for so many ranks.
bool CanExchangeCells(const Shape& shape, int64_t ranks);

/// Sorts the cells of some chunks by the rank that keeps their rows.
class CellSorter {
 public:
  /// Of a matrix of `columns` columns, whose rows are cut so; of a file in so many chunks.
  CellSorter(const ReadOptions& options, std::span<const int64_t> cuts, int64_t columns, size_t chunks);

  /// One thread for each chunk, cells in the order of the file. False where that is no cell of the matrix, or
  /// memory has no room.
  bool Add(size_t chunk, int64_t row, int64_t column, double value);
  /// For each rank its cells. kDataLoss, kResourceExhausted: what Add() met.
  Result<std::vector<Matrix>> Take() &&;

 private:
  struct Cell {
    uint64_t place = 0;  // The number of the rank in the highest bits.
    double value = 0;
  };
  struct Chunk {
    CountedBytes cells;  // Those before the last ones, which wait here until there are some.
    std::array<Cell, 256> last = {};
    size_t lasts = 0;
    size_t rank = 0;              // Of the cell before: mostly the next one has the same.
    std::vector<int64_t> counts;  // By rank.
    Status status;
  };
  void Flush(Chunk* chunk) const;

  const ReadOptions& options_;
  const std::span<const int64_t> cuts_;
  const int64_t columns_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // nullptr: no cell of it has come.
};

/// The matrix of this shape of the cells that all ranks have sent, in their order. kInternal when they are
/// not what CellSorter makes.
Result<Matrix> JoinCells(const ReadOptions& options, const Shape& shape, Format format,
                         std::span<const Value* const> parts);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"
#include "core/values/panels.h"
#include "ops/aggregate/wide_sums.h"

// The cells of a matrix leaf by leaf, whatever their storage, as sums in wide numbers read them.
namespace heddle::ops {

/// About so many cells are the work of one task.
constexpr int64_t kCellsOfTask = 1 << 18;

/// Cells of a leaf, row-major: all of them, or `count` entries, the k-th at place places[k].
struct LeafCells {
  const double* values = nullptr;
  int64_t count = 0;
  int64_t rows = 0;
  bool is_sparse = false;
  const int64_t* places = nullptr;
  int64_t PlaceOf(int64_t k) const { return is_sparse ? places[k] : k; }
};

/// Reads cells of a matrix as LeafCells. Belongs to one thread.
class LeafCellReader {
 public:
  /// Rows [begin, end) of x and columns [column_begin, column_end), all of them or some of one row. `all`:
  /// absent cells, too.
  LeafCells Read(const Matrix& x, int64_t begin, int64_t end, int64_t column_begin, int64_t column_end,
                 bool all);

 private:
  std::vector<double> values_;
  std::vector<int64_t> places_;
};

/// How leaves of a full or column aggregate lie in its matrix.
class LeavesOfMatrix {
 public:
  explicit LeavesOfMatrix(const SumsOfMatrix& sums);

  int64_t Count() const { return CeilDivide(rows_, height_) * chunks_; }
  int64_t Cells() const { return height_ * std::min(columns_, chunks_ > 1 ? kColumnChunk : columns_); }

  /// Reads leaves of one thread.
  class Reader {
   public:
    Reader(const LeavesOfMatrix& leaves, const RowsOfMatrix& rows) : leaves_(leaves), rows_of_(rows) {}
    Result<LeafCells> Read(int64_t leaf);

   private:
    const LeavesOfMatrix& leaves_;
    const RowsOfMatrix& rows_of_;
    int64_t begin_ = -1;
    Matrix piece_;
    LeafCellReader cells_;
  };

 private:
  const bool full_;
  const int64_t rows_, columns_, first_column_, height_, chunks_;
  const bool needs_all_;
};

}  // namespace heddle::ops

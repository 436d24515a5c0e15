// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/values/matrix.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/stored_cell.h"

// Sparse matrices in files that store each cell by itself, with its row and column, and can be read from any
// cell on.
namespace heddle::ops {

/// Puts the cells [begin, end), in the order of the file, into `out`.
using FillCells = std::function<Status(int64_t begin, int64_t end, StoredCell* out)>;

/// Rows [row_begin, row_end) of the matrix that has `stored` such cells, in any order. The file is gone
/// through twice, first to count them. Cells that are given twice are added up in the order of the file;
/// those that are +0.0 are not stored. kDataLoss where one is outside of the matrix.
Result<Matrix> CollectCells(const ReadOptions& options, const FileSummary& summary, int64_t stored,
                            int64_t row_begin, int64_t row_end, const FillCells& fill);

/// The same of a sparse array, whose stored() and Fill() tell of its cells; `is_transposed`: its rows are the
/// columns of the matrix.
template <typename Array>
Result<Matrix> CollectArray(const ReadOptions& options, const FileSummary& summary, Array& array,
                            bool is_transposed, int64_t row_begin, int64_t row_end) {
  return CollectCells(options, summary, array.stored(), row_begin, row_end,
                      [&](int64_t begin, int64_t end, StoredCell* out) {
                        HEDDLE_RETURN_IF_ERROR(array.Fill(begin, end, out));
                        if (is_transposed)
                          for (StoredCell* cell = out; cell != out + (end - begin); ++cell)
                            std::swap(cell->row, cell->column);
                        return OkStatus();
                      });
}

/// kDataLoss if a matrix cannot be as large, or so large and sparse.
Status CheckLength(const std::string& path, const Shape& shape, bool is_sparse);

}  // namespace heddle::ops

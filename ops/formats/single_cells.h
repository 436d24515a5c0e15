// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/values/matrix.h"
#include "ops/formats/file_format.h"
#include "ops/formats/stored_cell.h"

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

/// kDataLoss if a matrix cannot be as large, or so large and sparse.
Status CheckLength(const std::string& path, const Shape& shape, bool is_sparse);

}  // namespace heddle::ops

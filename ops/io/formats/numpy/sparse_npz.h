// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/io/formats/file_format.h"
#include "ops/io/formats/numpy/zip_file.h"
#include "ops/io/formats/stored_cell.h"

// Sparse matrices as SciPy's save_npz() writes them: an archive of arrays that together are one matrix.
// `format` says how: csr, csc and bsr (indices, indptr, data), coo (row and col, or coords; data), dia
// (offsets, data).
namespace heddle::ops {

/// A sparse matrix in an archive that is open. `archive` outlives it.
class SparseNpz {
 public:
  virtual ~SparseNpz() = default;
  const Shape& shape() const { return shape_; }
  /// Cells that it stores.
  int64_t stored() const { return stored_; }
  /// Stored cells [begin, end) in the order of the file. Those of a diagonal that are outside of the matrix
  /// are zeros of its first cell.
  virtual Status Fill(int64_t begin, int64_t end, StoredCell* out) = 0;

 protected:
  Shape shape_{0, 0};
  int64_t stored_ = 0;
};

/// Whether the arrays of an archive are those of a sparse matrix.
bool HoldsSparse(const std::vector<ZipMember>& members);
/// kDataLoss says what is wrong, or that the array has other than one or two indexes. An array of one index
/// is a column.
Result<std::unique_ptr<SparseNpz>> OpenSparseNpz(const ReadOptions& options, const InputFile& archive,
                                                 const std::vector<ZipMember>& members);

/// Writes the cells that are not 0 as a csr matrix of SciPy. The bytes depend on the cells alone.
Status WriteSparseNpz(const Matrix& matrix, const std::atomic<bool>* cancelled, const ByteSink& sink);

}  // namespace heddle::ops

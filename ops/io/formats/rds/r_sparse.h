// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/values/shape.h"
#include "ops/io/formats/rds/r_vector.h"
#include "ops/io/formats/stored_cell.h"

// Matrices of the package Matrix. The letters of their classes say how: d, l or n for numbers, logical values
// or none but places; g, s or t for all cells, half of a symmetric matrix or a triangle; C, R or T for
// columns, rows or triplets (dgCMatrix). ddiMatrix is a diagonal, dgeMatrix is dense.
namespace heddle::ops {

/// Whether an object is one of them that is sparse.
Result<bool> HoldsSparse(const RFile& file, const RObject& object);
/// The cells of one that is dense, column by column; nullptr of any other object.
Result<const RObject*> CellsOfDenseMatrix(const RFile& file, const RObject& object);
/// The slot Dim of any of them.
Result<Shape> ShapeOfMatrix(const RFile& file, const RObject& object);

class RSparse {
 public:
  static Result<RSparse> Open(const RFile& file, const RObject& object);

  const Shape& shape() const { return shape_; }
  /// Cells that it stores, those that a symmetric or unit triangular matrix implies among them.
  int64_t stored() const { return stored_ * (is_symmetric_ ? 2 : 1) + diagonal_; }
  /// Stored cells [begin, end) in the order of the file. The second of the two cells that a cell on the
  /// diagonal of a symmetric matrix is counted as is 0.
  Status Fill(int64_t begin, int64_t end, StoredCell* out) const;

 private:
  Status FillStored(int64_t begin, int64_t end, StoredCell* out) const;
  Status OpenEnds(const RObject* vector, int64_t ranges);
  Status ReadIndexes(const RObject& vector, int64_t begin, int64_t end, std::vector<int64_t>* out) const;
  Status ReadValues(int64_t begin, int64_t end, std::vector<double>* out) const;

  const RFile* file_ = nullptr;
  Shape shape_{0, 0};
  bool is_symmetric_ = false;
  bool by_columns_ = false;
  int64_t stored_ = 0;
  int64_t diagonal_ = 0;         // How many cells of the diagonal there are that are not in the triangle.
  bool diagonal_is_one_ = true;  // Else they are the values.
  std::vector<int64_t> ends_;    // Of columns or rows: where each begins, and the end.
  const RObject* indexes_ = nullptr;  // Of rows, or of columns where the ends are of rows.
  const RObject* columns_ = nullptr;  // Of triplets.
  const RObject* values_ = nullptr;   // nullptr: all are 1.
  RCells cells_ = RCells::kNone;
};

}  // namespace heddle::ops

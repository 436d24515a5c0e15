// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_array.h"

#include <algorithm>

#include "core/values/sizes.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/rds/r_object.h"
#include "ops/io/formats/rds/r_sparse.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsAtOnce = int64_t{1} << 16;

// Where the cells of an array go in the rows [begin, end) of a matrix.
class Target {
 public:
  Target(const RArray& array, int64_t begin, int64_t end, double* out)
      : sizes_(array.sizes),
        columns_(array.shape().columns),
        begin_(begin),
        end_(end),
        out_(out),
        row_index_(array.transposed ? array.sizes.size() - 1 : 0),
        strides_(sizes_.size(), 0) {
    // Of the indexes that count columns the last one in the order in which they are read runs fastest.
    int64_t stride = 1;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const size_t index = array.transposed ? i : sizes_.size() - 1 - i;
      if (index == row_index_) continue;
      strides_[index] = stride;
      stride *= sizes_[index];
    }
  }

  // Cells from `first` on, as they stand in the file.
  void Put(int64_t first, const double* cells, int64_t count) const {
    std::vector<int64_t> place(sizes_.size());
    for (int64_t rest = first, i = 0; i < static_cast<int64_t>(sizes_.size()); ++i) {
      place[static_cast<size_t>(i)] = rest % sizes_[static_cast<size_t>(i)];
      rest /= sizes_[static_cast<size_t>(i)];
    }
    while (count > 0) {
      const int64_t run = std::min(count, sizes_[0] - place[0]);
      PutRun(place, cells, run);
      cells += run;
      count -= run;
      place[0] = 0;
      for (size_t i = 1; i < place.size(); ++i) {
        if (++place[i] < sizes_[i]) break;
        place[i] = 0;
      }
    }
  }

 private:
  // Cells that differ in the first index alone.
  void PutRun(const std::vector<int64_t>& place, const double* cells, int64_t count) const {
    int64_t column = 0;
    for (size_t i = 0; i < place.size(); ++i) column += place[i] * strides_[i];
    if (row_index_ == 0) {
      const int64_t first = std::max(begin_, place[0]), last = std::min(end_, place[0] + count);
      for (int64_t row = first; row < last; ++row)
        out_[(row - begin_) * columns_ + column] = cells[row - place[0]];
      return;
    }
    const int64_t row = place[row_index_];
    if (row < begin_ || row >= end_) return;
    double* const out = out_ + (row - begin_) * columns_ + column;
    for (int64_t k = 0; k < count; ++k) out[k * strides_[0]] = cells[k];
  }

  const std::vector<int64_t>& sizes_;
  const int64_t columns_, begin_, end_;
  double* const out_;
  const size_t row_index_;
  std::vector<int64_t> strides_;
};

}  // namespace

Shape RArray::shape() const {
  const size_t row_index = transposed ? sizes.size() - 1 : 0;
  Shape shape{sizes[row_index], 1};
  for (size_t i = 0; i < sizes.size(); ++i)
    if (i != row_index) shape.columns = SaturatingProduct(shape.columns, sizes[i]);
  return shape;
}

Result<RArray> ArrayOf(const RFile& file, const RObject& object, bool transposed) {
  RArray array{.vector = &object, .transposed = transposed};
  if (object.type == RType::kS4) {
    HEDDLE_ASSIGN_OR_RETURN(array.vector, CellsOfDenseMatrix(file, object));
    if (array.vector == nullptr) return NoTable(file, object);
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfMatrix(file, object));
    if (shape.Cells() != array.vector->length) return file.Damaged("a matrix has other sizes than cells");
    array.sizes = {shape.rows, shape.columns};
  } else {
    HEDDLE_ASSIGN_OR_RETURN(array.sizes, SizesOf(file, object));
  }
  HEDDLE_ASSIGN_OR_RETURN(array.cells, CellsOf(file, *array.vector));
  return array;
}

Result<Matrix> ReadArray(const ReadOptions& options, const RFile& file, const RArray& array, int64_t begin,
                         int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(end - begin, array.shape().columns));
  if (matrix.cells() == 0) return matrix;
  const Target target(array, begin, end, matrix.mutable_data());
  // Which cells are read: pieces of each column where only some of its many rows are asked for, else one
  // range of the file.
  const int64_t rows = array.shape().rows, cells = array.vector->length;
  const bool by_columns = !array.transposed && end - begin < rows && end - begin >= kCellsAtOnce / 8;
  const int64_t inner = array.transposed ? cells / rows : 0;
  const int64_t first = array.transposed ? begin * inner : by_columns ? begin : 0;
  const int64_t length = array.transposed ? (end - begin) * inner : by_columns ? end - begin : cells;
  const int64_t pieces = (length + kCellsAtOnce - 1) / kCellsAtOnce;
  const int64_t ranges = by_columns ? cells / rows : 1;
  FirstFailure failure;
  ParallelFor(ranges * pieces, 1, [&](int64_t first_piece, int64_t last_piece) {
    std::vector<double> numbers(static_cast<size_t>(std::min(kCellsAtOnce, length)));
    for (int64_t p = first_piece; p < last_piece; ++p) {
      if (IsCancelled(options.cancelled)) return;
      const int64_t in_range = p % pieces * kCellsAtOnce;
      const int64_t at = p / pieces * rows + first + in_range;
      const int64_t count = std::min(kCellsAtOnce, length - in_range);
      const Status status = ReadNumbers(file, *array.vector, array.cells, at, at + count, numbers.data());
      if (!status.ok()) return failure.Add(p, status);
      target.Put(at, numbers.data(), count);
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  HEDDLE_RETURN_IF_ERROR(failure.status());
  return matrix;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "core/values/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/values/column_groups.h"
#include "core/values/device_cells.h"
#include "core/values/sizes.h"

namespace heddle {
namespace {

// Where the parts of a CSR matrix begin in their buffer: at multiples of a cache line.
constexpr int64_t kAlignment = 64;

// The product, or -1 when a factor is negative or it does not fit in 63 bits.
int64_t CheckedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return -1;
  return product;
}

Status AbsurdSize(int64_t rows, int64_t columns) {
  return DoesNotFit(fmt::format("a matrix of {} x {} cells", rows, columns), MemoryBudget::Process());
}

// What is given as `count` elements of `bytes` bytes each of a matrix of this size.
Status CheckAdopted(int64_t rows, int64_t columns, const void* array, int64_t bytes, int64_t count) {
  if (rows < 0 || columns < 0 || rows > kMostLength || columns > kMostLength ||
      CheckedProduct(rows, columns) < 0 || CheckedProduct(count, bytes) < 0)
    return InvalidArgument("no matrix has {} x {} cells", rows, columns);
  if (count > 0 && array == nullptr) return InvalidArgument("{} x {} cells at no address", rows, columns);
  if (reinterpret_cast<uintptr_t>(array) % static_cast<uintptr_t>(bytes) != 0)
    return InvalidArgument(
        "the cells are not aligned: an address of elements of {} bytes is a multiple of {}", bytes, bytes);
  return OkStatus();
}

// Calls visit(T{}) with the type of the cells.
template <typename Visit>
auto WithElementType(ElementType type, Visit visit) {
  return type == ElementType::kFloat64 ? visit(double{}) : visit(float{});
}

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Where a zero may be stored or absent its sign means nothing.
bool SameOrZero(double a, double b) { return SameBits(a, b) || (a == 0 && b == 0); }

// Cells of rows [begin, end) of a compressed matrix, one row behind the other.
template <typename T>
std::vector<T> Decoded(const Matrix& matrix, int64_t begin, int64_t end) {
  std::vector<T> cells(static_cast<size_t>((end - begin) * matrix.columns()));
  DecodeRows(matrix.groups(), matrix.first_row() + begin, matrix.first_row() + end, cells.data());
  return cells;
}

// Walks one row in the order of its columns; a row that is not CSR has an entry in each.
class RowCursor {
 public:
  RowCursor(const Matrix& matrix, int64_t row) : matrix_(matrix) {
    if (matrix.IsCompressed()) {
      WithElementType(matrix.element_type(), [&](auto cell) {
        const auto cells = Decoded<decltype(cell)>(matrix, row, row + 1);
        decoded_.assign(cells.begin(), cells.end());
      });
    } else {
      at_ = matrix.IsSparse() ? matrix.row_offsets()[row] : row * matrix.columns();
    }
    begin_ = at_;
    end_ = matrix.IsSparse() ? matrix.row_offsets()[row + 1] : at_ + matrix.columns();
  }
  // Past the last entry: the number of columns.
  int64_t column() const {
    if (at_ == end_) return matrix_.columns();
    return matrix_.IsSparse() ? matrix_.column_indexes()[at_] : at_ - begin_;
  }
  double value() const {
    if (matrix_.IsCompressed()) return decoded_[static_cast<size_t>(at_)];
    return WithElementType(matrix_.element_type(),
                           [this](auto cell) -> double { return matrix_.data<decltype(cell)>()[at_]; });
  }
  void Step() { ++at_; }

 private:
  const Matrix& matrix_;
  int64_t begin_ = 0;
  int64_t at_ = 0;
  int64_t end_ = 0;
  std::vector<double> decoded_;  // The row of a compressed matrix.
};

bool SameRow(const Matrix& a, const Matrix& b, int64_t row) {
  RowCursor left(a, row);
  RowCursor right(b, row);
  const bool has_all_zeros = !a.IsSparse() && !b.IsSparse();
  while (true) {
    const int64_t column = std::min(left.column(), right.column());
    if (column == a.columns()) return true;
    double x = 0;
    double y = 0;
    if (left.column() == column) x = left.value(), left.Step();
    if (right.column() == column) y = right.value(), right.Step();
    if (has_all_zeros ? !SameBits(x, y) : !SameOrZero(x, y)) return false;
  }
}

// Cells of a compressed matrix that are decoded at once.
constexpr int64_t kDecodedCells = 1 << 14;

template <typename T>
void CompressRows(const Matrix& matrix, Matrix* sparse) {
  int64_t* offsets = sparse->mutable_row_offsets();
  int32_t* indexes = sparse->mutable_column_indexes();
  T* values = sparse->mutable_values<T>();
  const int64_t height = std::max<int64_t>(kDecodedCells / std::max<int64_t>(matrix.columns(), 1), 1);
  std::vector<T> decoded;
  int64_t at = 0;
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    if (matrix.IsCompressed() && i % height == 0)
      decoded = Decoded<T>(matrix, i, std::min(i + height, matrix.rows()));
    const T* row = matrix.IsCompressed() ? decoded.data() + i % height * matrix.columns()
                                         : matrix.data<T>() + i * matrix.columns();
    for (int64_t j = 0; j < matrix.columns(); ++j) {
      if (row[j] == 0) continue;
      indexes[at] = static_cast<int32_t>(j);
      values[at] = row[j];
      ++at;
    }
    offsets[i + 1] = at;
  }
}

template <typename T>
void ExpandRows(const Matrix& sparse, Matrix* dense) {
  T* cells = dense->mutable_data<T>();
  std::fill(cells, cells + dense->cells(), T{0});
  for (int64_t i = 0; i < sparse.rows(); ++i)
    for (int64_t k = sparse.row_offsets()[i]; k < sparse.row_offsets()[i + 1]; ++k)
      cells[i * sparse.columns() + sparse.column_indexes()[k]] = sparse.values<T>()[k];
}

}  // namespace

Result<Matrix> Matrix::Dense(int64_t rows, int64_t columns, ElementType type) {
  return DenseWithRoom(rows, columns, 0, type);
}

Result<Matrix> Matrix::DenseWithRoom(int64_t rows, int64_t columns, int64_t room, ElementType type) {
  const int64_t cells = CheckedProduct(rows, columns);
  const int64_t bytes = cells < 0 ? cells : CheckedProduct(SaturatingSum(cells, room), BytesOf(type));
  if (bytes < 0) return AbsurdSize(rows, columns);
  Matrix matrix;
  HEDDLE_ASSIGN_OR_RETURN(matrix.memory_, Buffer::Allocate(bytes));
  matrix.rows_ = rows;
  matrix.columns_ = columns;
  matrix.element_type_ = type;
  matrix.values_pointer_ = matrix.memory_->data();
  return matrix;
}

Result<Matrix> Matrix::Sparse(int64_t rows, int64_t columns, int64_t nonzeros, ElementType type) {
  if (CheckedProduct(rows, columns) < 0) return AbsurdSize(rows, columns);
  const int64_t value_bytes = CheckedProduct(nonzeros, BytesOf(type));
  const int64_t index_bytes = CheckedProduct(nonzeros, sizeof(int32_t));
  const int64_t offset_bytes = CheckedProduct(SaturatingSum(rows, 1), sizeof(int64_t));
  if (value_bytes < 0 || index_bytes < 0 || offset_bytes < 0) return AbsurdSize(rows, columns);
  if (columns > std::numeric_limits<int32_t>::max())
    return AbsurdSize(rows, columns).WithNote("a sparse matrix has at most 2147483647 columns");
  const int64_t indexes_at = SaturatingSum(value_bytes, kAlignment - 1) / kAlignment * kAlignment;
  const int64_t offsets_at =
      SaturatingSum(SaturatingSum(indexes_at, index_bytes), kAlignment - 1) / kAlignment * kAlignment;
  const int64_t bytes = SaturatingSum(offsets_at, offset_bytes);
  if (bytes == std::numeric_limits<int64_t>::max()) return AbsurdSize(rows, columns);
  Matrix matrix;
  HEDDLE_ASSIGN_OR_RETURN(matrix.memory_, Buffer::Allocate(bytes));
  matrix.rows_ = rows;
  matrix.columns_ = columns;
  matrix.storage_ = Storage::kCsr;
  matrix.element_type_ = type;
  char* const begin = static_cast<char*>(matrix.memory_->data());
  matrix.values_pointer_ = begin;
  matrix.column_indexes_pointer_ = reinterpret_cast<int32_t*>(begin + indexes_at);
  matrix.row_offsets_pointer_ = reinterpret_cast<int64_t*>(begin + offsets_at);
  std::fill(matrix.row_offsets_pointer_, matrix.row_offsets_pointer_ + rows + 1, int64_t{0});
  return matrix;
}

Result<Matrix> Matrix::AdoptDense(const void* cells, int64_t rows, int64_t columns, ElementType type,
                                  std::function<void()> release) {
  HEDDLE_RETURN_IF_ERROR(CheckAdopted(rows, columns, cells, BytesOf(type), CheckedProduct(rows, columns)));
  Matrix matrix;
  matrix.memory_ = Buffer::Adopt(cells, rows * columns * BytesOf(type), std::move(release));
  matrix.rows_ = rows;
  matrix.columns_ = columns;
  matrix.element_type_ = type;
  matrix.values_pointer_ = matrix.memory_->data();
  return matrix;
}

Result<Matrix> Matrix::AdoptSparse(const void* values, const int32_t* column_indexes,
                                   const int64_t* row_offsets, int64_t rows, int64_t columns,
                                   ElementType type, std::function<void()> release) {
  if (columns > std::numeric_limits<int32_t>::max())
    return InvalidArgument("a sparse matrix has at most 2147483647 columns, not {}", columns);
  HEDDLE_RETURN_IF_ERROR(CheckAdopted(rows, columns, row_offsets, sizeof(int64_t), SaturatingSum(rows, 1)));
  if (row_offsets[0] < 0) return InvalidArgument("the first row offset is negative: {}", row_offsets[0]);
  for (int64_t i = 0; i < rows; ++i)
    if (row_offsets[i + 1] < row_offsets[i])
      return InvalidArgument("row offsets fall: {} of row {}, {} of the next", row_offsets[i], i + 1,
                             row_offsets[i + 1]);
  const int64_t entries = row_offsets[rows] - row_offsets[0];
  HEDDLE_RETURN_IF_ERROR(CheckAdopted(rows, columns, values, BytesOf(type), entries));
  HEDDLE_RETURN_IF_ERROR(CheckAdopted(rows, columns, column_indexes, sizeof(int32_t), entries));
  for (int64_t i = 0; i < rows; ++i) {
    int64_t before = -1;
    for (int64_t k = row_offsets[i]; k < row_offsets[i + 1]; before = column_indexes[k++])
      if (column_indexes[k] <= before || column_indexes[k] >= columns)
        return InvalidArgument("columns of row {} are not ascending from 0 to {}: {} stands behind {}", i + 1,
                               columns - 1, column_indexes[k], before)
            .WithNote(
                "columns of entries count from 0; sort the entries of each row, and add up double ones");
  }
  Matrix matrix;
  matrix.memory_ = Buffer::Adopt(values, entries * BytesOf(type), std::move(release));
  matrix.rows_ = rows;
  matrix.columns_ = columns;
  matrix.storage_ = Storage::kCsr;
  matrix.element_type_ = type;
  matrix.values_pointer_ = matrix.memory_->data();
  matrix.column_indexes_pointer_ = const_cast<int32_t*>(column_indexes);
  matrix.row_offsets_pointer_ = const_cast<int64_t*>(row_offsets);
  return matrix;
}

Matrix Matrix::OfGroups(std::shared_ptr<const ColumnGroups> groups) {
  Matrix matrix;
  matrix.rows_ = groups->rows;
  matrix.columns_ = groups->columns;
  matrix.storage_ = Storage::kColumnGroups;
  matrix.element_type_ = groups->element_type;
  matrix.first_row_ = 0;
  matrix.groups_pointer_ = groups.get();
  // Its bytes are those of the buffers that the groups have.
  matrix.memory_ = Buffer::Adopt(groups.get(), groups->bytes(), [groups] {});
  return matrix;
}

Matrix Matrix::OfDeviceCells(std::shared_ptr<const DeviceCells> cells) {
  Matrix matrix;
  matrix.rows_ = cells->rows();
  matrix.columns_ = cells->columns();
  matrix.storage_ = Storage::kOnDevice;
  matrix.element_type_ = cells->element_type();
  matrix.first_row_ = 0;
  matrix.device_pointer_ = cells.get();
  matrix.memory_ = Buffer::Adopt(cells.get(), cells->bytes(), [cells] {});
  return matrix;
}

int64_t Matrix::CountNonzeros() const {
  HEDDLE_CHECK(!IsOnDevice(), "cells on a device are brought to the host before somebody looks at them");
  if (IsCompressed()) return heddle::CountNonzeros(groups(), first_row_, first_row_ + rows_);
  // All entries lie side by side, also in a view of rows.
  const int64_t first = IsSparse() && rows_ > 0 ? row_offsets_pointer_[0] : 0;
  return WithElementType(element_type_, [&](auto cell) {
    const auto* entries = data<decltype(cell)>() + first;
    int64_t count = 0;
    for (int64_t k = 0; k < stored(); ++k) count += entries[k] != 0;
    return count;
  });
}

int64_t Matrix::bytes() const {
  if (IsCompressed()) {
    const double share =
        static_cast<double>(rows_) / static_cast<double>(std::max<int64_t>(groups().rows, 1));
    return static_cast<int64_t>(std::ceil(static_cast<double>(memory_->bytes()) * share));
  }
  if (IsOnDevice() && device_cells().IsSparse()) return device_cells().bytes();
  if (!IsSparse()) return cells() * BytesOf(element_type_);
  return stored() * (BytesOf(element_type_) + 4) + (rows_ + 1) * 8;
}

Matrix Matrix::Rows(int64_t begin, int64_t end) const {
  HEDDLE_CHECK(0 <= begin && begin <= end && end <= rows_, "a view lies within its matrix");
  Matrix view = *this;
  view.rows_ = end - begin;
  if (IsCompressed() || IsOnDevice())
    view.first_row_ += begin;
  else if (IsSparse())
    view.row_offsets_pointer_ += begin;
  else if (values_pointer_ != nullptr)
    view.values_pointer_ = static_cast<char*>(values_pointer_) + begin * columns_ * BytesOf(element_type_);
  return view;
}

bool Matrix::HoldsCellsAlone() const {
  if (!(IsDense() || IsSparse()) || memory_.use_count() != 1 || memory_->IsAdopted()) return false;
  // Counts are read without order. Taking part in the counting puts what others did with the cells before
  // what follows.
  const std::shared_ptr<Buffer> counted = memory_;
  return true;
}

bool Matrix::GrowTo(int64_t rows, int64_t columns) {
  const int64_t bytes = CheckedProduct(CheckedProduct(rows, columns), BytesOf(element_type_));
  if (bytes < 0 || memory_ == nullptr || !IsDense() || !HoldsCellsAlone()) return false;
  const int64_t begin = static_cast<char*>(values_pointer_) - static_cast<char*>(memory_->data());
  if (bytes > memory_->bytes() - begin) return false;
  rows_ = rows;
  columns_ = columns;
  return true;
}

Matrix Matrix::Reshaped(int64_t rows, int64_t columns) const {
  HEDDLE_CHECK(IsDense(), "only dense cells lie in row-major order");
  HEDDLE_CHECK(CheckedProduct(rows, columns) == cells(), "a reshape keeps the number of cells");
  Matrix view = *this;
  view.rows_ = rows;
  view.columns_ = columns;
  return view;
}

bool Matrix::IsSameView(const Matrix& other) const {
  if (shape() != other.shape() || storage_ != other.storage_ || element_type_ != other.element_type_ ||
      values_pointer_ != other.values_pointer_)
    return false;
  switch (storage_) {
    case Storage::kDense: return true;
    case Storage::kCsr: return row_offsets_pointer_ == other.row_offsets_pointer_;
    case Storage::kColumnGroups:
      return groups_pointer_ == other.groups_pointer_ && first_row_ == other.first_row_;
    case Storage::kOnDevice:
      return device_pointer_ == other.device_pointer_ && first_row_ == other.first_row_;
  }
  return false;
}

double Matrix::At(int64_t row, int64_t column) const {
  HEDDLE_CHECK(0 <= row && row < rows_ && 0 <= column && column < columns_, "a cell lies within its matrix");
  int64_t at = row * columns_ + column;
  HEDDLE_CHECK(!IsOnDevice(), "cells on a device are brought to the host before somebody looks at them");
  if (IsCompressed())
    return WithElementType(element_type_, [&](auto cell) -> double {
      return Decoded<decltype(cell)>(*this, row, row + 1)[static_cast<size_t>(column)];
    });
  if (IsSparse()) {
    const int32_t* begin = column_indexes_pointer_ + row_offsets_pointer_[row];
    const int32_t* end = column_indexes_pointer_ + row_offsets_pointer_[row + 1];
    const int32_t* found = std::lower_bound(begin, end, static_cast<int32_t>(column));
    if (found == end || *found != column) return 0;
    at = found - column_indexes_pointer_;
  }
  return WithElementType(element_type_, [&](auto cell) -> double { return data<decltype(cell)>()[at]; });
}

bool Matrix::SameCells(const Matrix& a, const Matrix& b) {
  if (a.shape() != b.shape()) return false;
  if (a.IsDense() && b.IsDense() && a.element_type_ == b.element_type_) {
    return WithElementType(a.element_type_, [&](auto cell) {
      const auto* x = a.data<decltype(cell)>();
      const auto* y = b.data<decltype(cell)>();
      for (int64_t k = 0; k < a.cells(); ++k)
        if (!SameBits(x[k], y[k])) return false;
      return true;
    });
  }
  for (int64_t i = 0; i < a.rows_; ++i)
    if (!SameRow(a, b, i)) return false;
  return true;
}

Result<Matrix> FilledMatrix(int64_t rows, int64_t columns, double value) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(rows, columns));
  std::fill(matrix.mutable_data(), matrix.mutable_data() + matrix.cells(), value);
  return matrix;
}

Result<Matrix> ToHost(const Matrix& matrix) {
  if (!matrix.IsOnDevice()) return matrix;
  return matrix.device_cells().ToHost(matrix.first_row(), matrix.first_row() + matrix.rows());
}

Result<Matrix> ToDense(const Matrix& matrix) {
  if (matrix.IsDense()) return matrix;
  if (matrix.IsOnDevice()) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, ToHost(matrix));
    return ToDense(cells);
  }
  if (matrix.IsCompressed())
    return DecodeRows(matrix.groups(), matrix.first_row(), matrix.first_row() + matrix.rows());
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense,
                          Matrix::Dense(matrix.rows(), matrix.columns(), matrix.element_type()));
  WithElementType(matrix.element_type(), [&](auto cell) { ExpandRows<decltype(cell)>(matrix, &dense); });
  return dense;
}

Result<Matrix> ToSparse(const Matrix& matrix) {
  if (matrix.IsSparse()) return matrix;
  if (matrix.IsOnDevice()) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, ToHost(matrix));
    return ToSparse(cells);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(matrix.rows(), matrix.columns(),
                                                        matrix.CountNonzeros(), matrix.element_type()));
  WithElementType(matrix.element_type(), [&](auto cell) { CompressRows<decltype(cell)>(matrix, &sparse); });
  return sparse;
}

Result<Matrix> ToElementType(const Matrix& matrix, ElementType type) {
  if (matrix.element_type() == type) return matrix;
  if (matrix.IsOnDevice()) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, ToHost(matrix));
    return ToElementType(cells, type);
  }
  if (matrix.IsCompressed()) {
    auto groups = std::make_shared<ColumnGroups>(matrix.groups());
    groups->element_type = type;
    for (ColumnGroup& group : groups->groups) {
      if (group.encoding == Encoding::kEmpty) continue;
      HEDDLE_ASSIGN_OR_RETURN(group.dictionary, ToElementType(group.dictionary, type));
    }
    return Matrix::OfGroups(std::move(groups)).Rows(matrix.first_row(), matrix.first_row() + matrix.rows());
  }
  const bool is_sparse = matrix.IsSparse();
  HEDDLE_ASSIGN_OR_RETURN(Matrix converted,
                          is_sparse ? Matrix::Sparse(matrix.rows(), matrix.columns(), matrix.stored(), type)
                                    : Matrix::Dense(matrix.rows(), matrix.columns(), type));
  const int64_t first = is_sparse && matrix.rows() > 0 ? matrix.row_offsets()[0] : 0;
  WithElementType(matrix.element_type(), [&](auto cell) {
    const auto* const from = matrix.data<decltype(cell)>() + first;
    WithElementType(type, [&](auto result) {
      std::transform(from, from + matrix.stored(), converted.mutable_data<decltype(result)>(),
                     [](auto x) { return static_cast<decltype(result)>(x); });
    });
  });
  if (!is_sparse) return converted;
  std::copy_n(matrix.column_indexes() + first, matrix.stored(), converted.mutable_column_indexes());
  for (int64_t i = 0; i <= matrix.rows() && matrix.rows() > 0; ++i)
    converted.mutable_row_offsets()[i] = matrix.row_offsets()[i] - first;
  return converted;
}

}  // namespace heddle

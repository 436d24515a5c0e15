// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/memory/buffer.h"
#include "core/status.h"
#include "core/values/data_type.h"
#include "core/values/shape.h"

namespace heddle {

struct ColumnGroups;  // core/values/column_groups.h
class DeviceCells;    // core/values/device_cells.h

/// A two-dimensional array of numbers, dense row-major, CSR or compressed. A value: copies share memory (one
/// buffer, so that a copy touches one counter), and nobody writes to a matrix that somebody else can see (the
/// maker writes through the mutable_ accessors before handing it on).
///
/// Dense:  cell (i, j) is at data<T>()[i * columns() + j]; rows are contiguous, no padding.
/// CSR:    row i owns entries [row_offsets()[i], row_offsets()[i + 1]) of column_indexes() and values<T>(),
///         columns strictly ascending within a row. The first offset of a row panel is not zero. Explicit
///         zeros are legal to read (docs/numerics.md R2); kernels do not make them.
/// Column groups: row i is row first_row() + i of groups(). It has no cells that a pointer could name.
/// On a device: row i is row first_row() + i of device_cells(), which has no cells that the host could read.
class Matrix {
 public:
  Matrix() = default;  ///< 0 x 0 dense.

  /// Uninitialised dense matrix.
  static Result<Matrix> Dense(int64_t rows, int64_t columns, ElementType type = ElementType::kFloat64);
  /// The same in memory that has room for `room` more cells behind its own (GrowTo).
  static Result<Matrix> DenseWithRoom(int64_t rows, int64_t columns, int64_t room,
                                      ElementType type = ElementType::kFloat64);
  /// CSR with room for `nonzeros` entries; row_offsets (all zero), column_indexes and values uninitialised
  /// otherwise.
  static Result<Matrix> Sparse(int64_t rows, int64_t columns, int64_t nonzeros,
                               ElementType type = ElementType::kFloat64);

  /// Row-major cells in memory of somebody else, as Buffer::Adopt has it; `cells` may be nullptr where there
  /// are none. kInvalidArgument for a negative or unaddressable size and for cells that are not aligned to
  /// their own size; `release` is then not called.
  static Result<Matrix> AdoptDense(const void* cells, int64_t rows, int64_t columns, ElementType type,
                                   std::function<void()> release);
  /// The arrays of a CSR matrix: rows + 1 offsets, and as many column indexes and values as the last offset
  /// says less the first. kInvalidArgument, `release` not called, for arrays that are none: offsets that
  /// fall, columns that are not strictly ascending within their row or not in the matrix. Reads the indexes
  /// once.
  static Result<Matrix> AdoptSparse(const void* values, const int32_t* column_indexes,
                                    const int64_t* row_offsets, int64_t rows, int64_t columns,
                                    ElementType type, std::function<void()> release);
  /// All rows of the groups.
  static Matrix OfGroups(std::shared_ptr<const ColumnGroups> groups);
  /// All rows of them.
  static Matrix OfDeviceCells(std::shared_ptr<const DeviceCells> cells);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Shape shape() const { return {rows_, columns_}; }
  int64_t cells() const { return rows_ * columns_; }
  Storage storage() const { return storage_; }
  bool IsDense() const { return storage_ == Storage::kDense; }
  bool IsSparse() const { return storage_ == Storage::kCsr; }
  bool IsCompressed() const { return storage_ == Storage::kColumnGroups; }
  bool IsOnDevice() const { return storage_ == Storage::kOnDevice; }
  ElementType element_type() const { return element_type_; }

  template <typename T = double>
  const T* data() const {
    return static_cast<const T*>(values_pointer_);
  }
  template <typename T = double>
  T* mutable_data() {
    return static_cast<T*>(values_pointer_);
  }

  const int64_t* row_offsets() const { return row_offsets_pointer_; }
  int64_t* mutable_row_offsets() { return row_offsets_pointer_; }
  const int32_t* column_indexes() const { return column_indexes_pointer_; }
  int32_t* mutable_column_indexes() { return column_indexes_pointer_; }
  template <typename T = double>
  const T* values() const {
    return static_cast<const T*>(values_pointer_);
  }
  template <typename T = double>
  T* mutable_values() {
    return static_cast<T*>(values_pointer_);
  }
  const ColumnGroups& groups() const { return *groups_pointer_; }
  const DeviceCells& device_cells() const { return *device_pointer_; }
  int64_t first_row() const { return first_row_; }
  /// Entries of a CSR matrix (rows x columns for another one).
  int64_t stored() const {
    return IsSparse() ? (rows_ == 0 ? 0 : row_offsets_pointer_[rows_] - row_offsets_pointer_[0]) : cells();
  }
  /// Number of cells that are not zero (counts; NaN is not zero).
  int64_t CountNonzeros() const;
  /// Bytes of its memory that belong to these rows.
  int64_t bytes() const;

  /// Rows [begin, end) as a view that shares memory.
  Matrix Rows(int64_t begin, int64_t end) const;
  /// The same cells read as rows x columns (row-major reshape); dense only, same number of cells.
  Matrix Reshaped(int64_t rows, int64_t columns) const;

  /// True if no other matrix, view or copy, and nobody else (AdoptDense), holds these cells any more, dense
  /// or CSR: dense ones may be overwritten. False of other storage. Only the thread that alone can copy this
  /// matrix may ask.
  bool HoldsCellsAlone() const;

  /// Makes a dense matrix rows x columns, its cells in front of uninitialised ones, where nobody else holds
  /// the cells and their memory has the room. True if so.
  bool GrowTo(int64_t rows, int64_t columns);

  /// True if both are the same rows of the same memory: without a look at a cell. A view of other memory with
  /// the same cells is another one.
  bool IsSameView(const Matrix& other) const;

  /// One cell; slow, for tests, printing and small accesses.
  double At(int64_t row, int64_t column) const;

  /// True if both have the same shape and every cell has the same bytes (NaN equals NaN; storage does not
  /// matter, -0.0 differs from +0.0 only between dense cells).
  static bool SameCells(const Matrix& a, const Matrix& b);

 private:
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  Storage storage_ = Storage::kDense;
  ElementType element_type_ = ElementType::kFloat64;
  void* values_pointer_ = nullptr;  // nullptr of column groups and on a device.
  union {
    int64_t* row_offsets_pointer_ = nullptr;
    int64_t first_row_;  // Of column groups, and of cells on a device.
  };
  union {
    int32_t* column_indexes_pointer_ = nullptr;
    const ColumnGroups* groups_pointer_;
    const DeviceCells* device_pointer_;
  };
  std::shared_ptr<Buffer> memory_;  // Of CSR: values, then column indexes, then row offsets.
};

/// Fills rows*columns dense cells with one value.
Result<Matrix> FilledMatrix(int64_t rows, int64_t columns, double value);
/// Same cells as dense / as CSR (drops zeros). Returns the argument when it is stored so already.
Result<Matrix> ToDense(const Matrix& matrix);
Result<Matrix> ToSparse(const Matrix& matrix);
/// Cells of that type in the same storage: floats are exact as doubles, doubles are rounded to the nearest
/// float. Returns the argument when its cells are of that type already.
Result<Matrix> ToElementType(const Matrix& matrix, ElementType type);

}  // namespace heddle

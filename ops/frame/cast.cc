// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/cast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "core/text/double_text.h"
#include "core/text/utf8.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/frame/arrange.h"
#include "ops/frame/convert.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainCells = int64_t{1} << 14;

template <typename T>
bool IsWhole(double x) {
  constexpr double kBound = -static_cast<double>(std::numeric_limits<T>::min());
  // A double of 2^63 becomes the largest integer, as in Java.
  return std::trunc(x) == x && x >= -kBound && x <= kBound;
}

bool Holds(ColumnType type, double x) {
  switch (type) {
    case ColumnType::kBoolean: return x == 0 || x == 1;
    case ColumnType::kInteger32: return IsWhole<int32_t>(x) && x < 0x1p31;
    case ColumnType::kInteger64: return IsWhole<int64_t>(x);
    case ColumnType::kFloat32: return IsSingle(x);
    case ColumnType::kFloat64:
    case ColumnType::kString:
    case ColumnType::kCharacter: return true;
  }
  HEDDLE_CHECK(false, "every type holds some cells");
}

constexpr ColumnType kByWidth[] = {ColumnType::kBoolean, ColumnType::kInteger32, ColumnType::kInteger64,
                                   ColumnType::kFloat32, ColumnType::kFloat64};

// The first type that holds all cells up to INT64: each holds the cells of those before it. FP32 does not:
// whole numbers before a fraction may be too long for it.
ColumnType WholeNumberTypeOf(const Matrix& matrix, int64_t column) {
  size_t type = 0;
  for (int64_t i = 0; i < matrix.rows() && kByWidth[type] != ColumnType::kFloat32; ++i) {
    const double x = matrix.data()[i * matrix.columns() + column];
    while (kByWidth[type] != ColumnType::kFloat32 && !Holds(kByWidth[type], x)) ++type;
  }
  return kByWidth[type];
}

bool AreSinglesIn(const Matrix& matrix, int64_t column) {
  for (int64_t i = 0; i < matrix.rows(); ++i)
    if (!IsSingle(matrix.data()[i * matrix.columns() + column])) return false;
  return true;
}

// Calls body(j) for every column of the matrix, on all threads.
template <typename Body>
void ForColumns(const Matrix& matrix, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kGrainCells / std::max<int64_t>(matrix.rows(), 1));
  ParallelFor(matrix.columns(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) body(j);
  });
}

void Fill(const Matrix& matrix, int64_t from, Column* column) {
  const double* const cells = matrix.data() + from;
  const int64_t stride = matrix.columns();
  switch (column->storage()) {
    case ColumnStorage::kDoubles: {
      const bool single = column->type() == ColumnType::kFloat32;
      for (int64_t i = 0; i < matrix.rows(); ++i) {
        const double x = cells[i * stride];
        column->mutable_doubles()[i] = single ? static_cast<double>(static_cast<float>(x)) : x;
      }
      return;
    }
    case ColumnStorage::kIntegers:
      for (int64_t i = 0; i < matrix.rows(); ++i)
        column->mutable_integers()[i] = Scalar(cells[i * stride]).AsInteger();
      return;
    case ColumnStorage::kBooleans:
      for (int64_t i = 0; i < matrix.rows(); ++i) column->mutable_booleans()[i] = cells[i * stride] != 0;
      return;
    case ColumnStorage::kTexts: HEDDLE_CHECK(false, "cells of a matrix are numbers");
  }
}

// The cells of rows [begin, end); the first that is no number as its row, else `end`.
int64_t Read(const Column& column, int64_t begin, int64_t end, double* out, int64_t stride) {
  for (int64_t i = begin; i < end; ++i) {
    double& cell = out[i * stride];
    if (column.IsMissing(i)) {
      cell = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    switch (column.storage()) {
      case ColumnStorage::kDoubles: cell = column.doubles()[i]; break;
      case ColumnStorage::kIntegers: cell = static_cast<double>(column.integers()[i]); break;
      case ColumnStorage::kBooleans: cell = column.booleans()[i]; break;
      case ColumnStorage::kTexts: {
        const std::optional<double> number = NumberInText(column.TextAt(i));
        if (!number) return i;
        cell = *number;
        break;
      }
    }
  }
  return end;
}

}  // namespace

ColumnType ColumnTypeOf(ValueType type) {
  switch (type) {
    case ValueType::kDouble: return ColumnType::kFloat64;
    case ValueType::kInteger: return ColumnType::kInteger64;
    case ValueType::kBoolean: return ColumnType::kBoolean;
    case ValueType::kString:
    case ValueType::kUnknown: return ColumnType::kString;
  }
  HEDDLE_CHECK(false, "scalars of every type can be cells");
}

std::vector<ColumnType> WholeNumberTypes(const Matrix& dense) {
  std::vector<ColumnType> types(static_cast<size_t>(dense.columns()));
  ForColumns(dense, [&](int64_t j) { types[static_cast<size_t>(j)] = WholeNumberTypeOf(dense, j); });
  return types;
}

ColumnType WiderNumberType(ColumnType a, ColumnType b) {
  const auto* const width_of_a = std::find(std::begin(kByWidth), std::end(kByWidth), a);
  const auto* const width_of_b = std::find(std::begin(kByWidth), std::end(kByWidth), b);
  return *std::max(width_of_a, width_of_b);
}

std::vector<char> AreSingles(const Matrix& dense, std::span<const ColumnType> types) {
  std::vector<char> are_singles(types.size(), 1);
  ForColumns(dense, [&](int64_t j) {
    const auto column = static_cast<size_t>(j);
    if (types[column] == ColumnType::kFloat32) are_singles[column] = AreSinglesIn(dense, j);
  });
  return are_singles;
}

Result<Frame> FrameOf(const Matrix& dense, std::span<const ColumnType> types) {
  std::vector<Column> columns;
  for (const ColumnType type : types) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(type, dense.rows(), 0, false));
    columns.push_back(std::move(column));
  }
  ForColumns(dense, [&](int64_t j) { Fill(dense, j, &columns[static_cast<size_t>(j)]); });
  return Frame(
      std::make_shared<const Schema>(Schema{{types.begin(), types.end()}, CountedNames(dense.columns())}),
      std::move(columns));
}

Result<Frame> FrameOf(const Matrix& matrix) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(matrix));
  std::vector<ColumnType> types = WholeNumberTypes(dense);
  const std::vector<char> are_singles = AreSingles(dense, types);
  for (size_t j = 0; j < types.size(); ++j)
    if (are_singles[j] == 0) types[j] = ColumnType::kFloat64;
  return FrameOf(dense, types);
}

Result<Frame> FrameOf(const Scalar& scalar) {
  Result<Column> column = Internal("a scalar has a type");
  const std::string text = scalar.ToText();
  switch (StorageOf(ColumnTypeOf(scalar.type()))) {
    case ColumnStorage::kDoubles: column = Column::OfDoubles(std::array{scalar.AsDouble()}); break;
    case ColumnStorage::kIntegers: column = Column::OfIntegers(std::array{scalar.AsInteger()}); break;
    case ColumnStorage::kBooleans: column = Column::OfBooleans(std::array{scalar.AsBoolean()}); break;
    case ColumnStorage::kTexts: column = Column::OfTexts(std::array{std::string_view(text)}); break;
  }
  HEDDLE_RETURN_IF_ERROR(column.status());
  return Frame(std::make_shared<const Schema>(Schema{{column->type()}, CountedNames(1)}),
               {*std::move(column)});
}

Result<Matrix> MatrixOf(const Frame& frame) {
  const int64_t n = frame.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(frame.rows(), n));
  std::mutex mutex;
  std::pair<int64_t, int64_t> first{frame.rows(), 0};  // The first cell that is no number.
  for (int64_t j = 0; j < n; ++j) {
    const Column column = frame.column(j);
    ParallelFor(frame.rows(), kGrainCells, [&](int64_t begin, int64_t end) {
      const int64_t fault = Read(column, begin, end, matrix.mutable_data() + j, n);
      if (fault == end) return;
      const std::lock_guard lock(mutex);
      first = std::min(first, {fault, j});
    });
  }
  if (first.first == frame.rows()) return matrix;
  std::string text;
  frame.AppendText(first.first, first.second, &text);
  return FailedPrecondition("as.matrix: '{}' in column {} of the frame is not a number",
                            ShownInLine(text, 40), frame.schema()->NameOf(first.second));
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/frame.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/double_text.h"

namespace heddle::ops::reference {
namespace {

// The shortest text that names the float names the double.
bool NamesSingle(double x) {
  if (std::isnan(x) || std::isinf(x)) return true;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), static_cast<float>(x)).ptr;
  double back = 0;
  const auto read = std::from_chars(text, end, back);
  return read.ec == std::errc() && read.ptr == end && back == x;
}

}  // namespace

Frame AsFrame(const Matrix& x) {
  Schema schema;
  std::vector<Column> columns;
  for (int64_t j = 0; j < x.columns(); ++j) {
    bool boolean = true, short_whole = true, whole = true, single = true;
    for (int64_t i = 0; i < x.rows(); ++i) {
      const double cell = x.At(i, j);
      boolean = boolean && (cell == 0 || cell == 1);
      whole = whole && cell == std::floor(cell) && std::fabs(cell) <= 0x1p63;
      short_whole = short_whole && whole && cell >= -0x1p31 && cell < 0x1p31;
      single = single && NamesSingle(cell);
    }
    const ColumnType type = boolean       ? ColumnType::kBoolean
                            : short_whole ? ColumnType::kInteger32
                            : whole       ? ColumnType::kInteger64
                            : single      ? ColumnType::kFloat32
                                          : ColumnType::kFloat64;
    Column column = *Column::Make(type, x.rows(), 0, false);
    for (int64_t i = 0; i < x.rows(); ++i) {
      const double cell = x.At(i, j);
      if (boolean)
        column.mutable_booleans()[i] = cell == 1;
      else if (whole)
        column.mutable_integers()[i] =
            cell >= 0x1p63 ? std::numeric_limits<int64_t>::max() : std::llrint(cell);
      else
        column.mutable_doubles()[i] = single ? static_cast<double>(static_cast<float>(cell)) : cell;
    }
    schema.types.push_back(type);
    columns.push_back(std::move(column));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

Matrix AsMatrix(const Frame& frame) {
  Matrix matrix = *Matrix::Dense(frame.rows(), frame.columns());
  for (int64_t i = 0; i < frame.rows(); ++i)
    for (int64_t j = 0; j < frame.columns(); ++j) {
      const Scalar cell = frame.At(i, j);
      double x = cell.AsDouble();
      if (cell.IsString() && cell.AsString() != "")
        x = cell.AsString() == "TRUE" ? 1 : cell.AsString() == "FALSE" ? 0 : *ParseDouble(cell.AsString());
      if (frame.IsMissing(i, j)) x = std::numeric_limits<double>::quiet_NaN();
      matrix.mutable_data()[i * frame.columns() + j] = x;
    }
  return matrix;
}

}  // namespace heddle::ops::reference

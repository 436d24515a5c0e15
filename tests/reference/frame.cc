// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/frame.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"

namespace heddle::ops::reference {
namespace {

// The number is that of a float, and the shortest text that names the float names it, too.
bool NamesSingle(double x) {
  if (std::isnan(x) || std::isinf(x)) return true;
  if (static_cast<double>(static_cast<float>(x)) != x) return false;
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
    int width = 0;  // BOOLEAN, INT32, INT64, FP32, FP64; it never shrinks.
    for (int64_t i = 0; i < x.rows(); ++i) {
      const double cell = x.At(i, j);
      const bool whole = cell == std::floor(cell) && std::fabs(cell) <= 0x1p63;
      if (width == 0 && cell != 0 && cell != 1) width = 1;
      if (width == 1 && !(whole && cell >= -0x1p31 && cell < 0x1p31)) width = 2;
      if (width == 2 && !whole) width = 3;
      if (width == 3 && !NamesSingle(cell)) width = 4;
    }
    for (int64_t i = 0; i < x.rows() && width == 3; ++i)
      if (!NamesSingle(x.At(i, j))) width = 4;
    constexpr ColumnType kTypes[] = {ColumnType::kBoolean, ColumnType::kInteger32, ColumnType::kInteger64,
                                     ColumnType::kFloat32, ColumnType::kFloat64};
    const ColumnType type = kTypes[width];
    Column column = *Column::Make(type, x.rows(), 0, false);
    for (int64_t i = 0; i < x.rows(); ++i) {
      const double cell = x.At(i, j);
      if (width == 0)
        column.mutable_booleans()[i] = cell == 1;
      else if (width <= 2)
        column.mutable_integers()[i] =
            cell >= 0x1p63 ? std::numeric_limits<int64_t>::max() : std::llrint(cell);
      else
        column.mutable_doubles()[i] = width == 3 ? static_cast<double>(static_cast<float>(cell)) : cell;
    }
    schema.types.push_back(type);
    schema.names.push_back("C" + std::to_string(j + 1));
    columns.push_back(std::move(column));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

namespace {

Frame RowOfTexts(const std::vector<std::string>& texts) {
  Schema schema;
  std::vector<Column> columns;
  for (const std::string& text : texts) {
    columns.push_back(*Column::OfTexts(std::vector<std::string_view>{text}));
    schema.types.push_back(ColumnType::kString);
    schema.names.push_back("C" + std::to_string(columns.size()));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

}  // namespace

Frame ColumnNames(const Frame& frame) {
  std::vector<std::string> names;
  for (int64_t j = 0; j < frame.columns(); ++j) names.push_back(frame.schema()->NameOf(j));
  return RowOfTexts(names);
}

Frame TypesOfColumns(const Frame& frame) {
  std::vector<std::string> names;
  for (int64_t j = 0; j < frame.columns(); ++j) names.emplace_back(Name(frame.column(j).type()));
  return RowOfTexts(names);
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

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/double_text.h"
#include "ops/formats/file_format.h"
#include "ops/kernel.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

void AppendInteger(int64_t value, std::string* out) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, error == std::errc() ? end : digits);
}

void AppendCell(double cell, std::string* out) { AppendDouble(cell, out); }
void AppendCell(float cell, std::string* out) { AppendSingle(cell, out); }

template <typename T, typename Visit>
void VisitNonzerosOf(const Matrix& matrix, int64_t row, const Visit& visit) {
  if (matrix.IsSparse()) {
    for (int64_t k = matrix.row_offsets()[row]; k < matrix.row_offsets()[row + 1]; ++k)
      if (matrix.values<T>()[k] != 0) visit(int64_t{matrix.column_indexes()[k]}, matrix.values<T>()[k]);
    return;
  }
  const T* cells = matrix.data<T>() + row * matrix.columns();
  for (int64_t j = 0; j < matrix.columns(); ++j)
    if (cells[j] != 0) visit(j, cells[j]);
}

// Visits the stored cells of a row, doubles or floats, skipping zeros, columns ascending.
template <typename Visit>
void VisitNonzeros(const Matrix& matrix, int64_t row, const Visit& visit) {
  if (matrix.element_type() == ElementType::kFloat64) return VisitNonzerosOf<double>(matrix, row, visit);
  VisitNonzerosOf<float>(matrix, row, visit);
}

void AppendCsvRow(const Matrix& matrix, int64_t row, const WriteOptions& options, std::string* out) {
  int64_t next = 0;
  auto zeros_until = [&](int64_t column) {
    for (; next < column; ++next) {
      if (next > 0) *out += options.separator;
      if (!options.sparse) *out += '0';
    }
  };
  VisitNonzeros(matrix, row, [&](int64_t column, auto value) {
    zeros_until(column);
    if (column > 0) *out += options.separator;
    AppendCell(value, out);
    next = column + 1;
  });
  zeros_until(matrix.columns());
  *out += '\n';
}

void AppendCellRow(const Matrix& matrix, int64_t row, std::string* out) {
  VisitNonzeros(matrix, row, [&](int64_t column, auto value) {
    AppendInteger(row + 1, out);
    *out += ' ';
    AppendInteger(column + 1, out);
    *out += ' ';
    AppendCell(value, out);
    *out += '\n';
  });
}

void AppendLibsvmRow(const Matrix& matrix, int64_t row, const WriteOptions& options, std::string* out) {
  std::string pairs, label;
  VisitNonzeros(matrix, row, [&](int64_t column, auto value) {
    if (column == matrix.columns() - 1) return AppendCell(value, &label);
    pairs += options.separator;
    AppendInteger(column + 1, &pairs);
    pairs += options.index_separator;
    AppendCell(value, &pairs);
  });
  *out += label.empty() ? "0.0" : label;
  *out += pairs;
  *out += '\n';
}

// Rows in parallel, in row order; some are missing when cancelled.
std::string AppendRows(const Matrix& matrix, const WriteOptions& options,
                       const std::function<void(int64_t row, std::string* out)>& append) {
  const int64_t rows_per_piece = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, matrix.columns()));
  const int64_t pieces = (matrix.rows() + rows_per_piece - 1) / rows_per_piece;
  std::vector<std::string> texts(static_cast<size_t>(pieces));
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !IsCancelled(options.cancelled); ++i)
      for (int64_t row = i * rows_per_piece; row < std::min(matrix.rows(), (i + 1) * rows_per_piece); ++row)
        append(row, &texts[static_cast<size_t>(i)]);
  });
  size_t size = 0;
  for (const std::string& text : texts) size += text.size();
  std::string all;
  all.reserve(size + 128);
  for (std::string& text : texts) {
    all += text;
    std::string().swap(text);
  }
  return all;
}

std::string MatrixBytes(const Matrix& matrix, const WriteOptions& options) {
  switch (options.format) {
    case FileFormat::kCsv: {
      std::string header;
      if (options.header) {
        for (int64_t j = 1; j <= matrix.columns(); ++j)
          header += fmt::format("{}C{}", j > 1 ? options.separator : "", j);
        header += '\n';
      }
      return header + AppendRows(matrix, options, [&](int64_t row, std::string* out) {
               AppendCsvRow(matrix, row, options, out);
             });
    }
    case FileFormat::kLibsvm:
      return AppendRows(matrix, options,
                        [&](int64_t row, std::string* out) { AppendLibsvmRow(matrix, row, options, out); });
    case FileFormat::kMatrixMarket:
      return fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", matrix.rows(),
                         matrix.columns(), matrix.CountNonzeros()) +
             AppendRows(matrix, options,
                        [&](int64_t row, std::string* out) { AppendCellRow(matrix, row, out); });
    case FileFormat::kText: {
      std::string cells = AppendRows(matrix, options,
                                     [&](int64_t row, std::string* out) { AppendCellRow(matrix, row, out); });
      return cells.empty() ? "0 0 0\n" : cells;
    }
  }
  return {};
}

std::string Metadata(const Value& value, const WriteOptions& options) {
  nlohmann::ordered_json json;
  json["data_type"] = value.IsMatrix() ? "matrix" : "scalar";
  if (value.IsMatrix()) {
    json["value_type"] = "double";
    json["rows"] = value.matrix().rows();
    // In a libsvm file the label is not one of the columns.
    json["cols"] = value.matrix().columns() - (options.format == FileFormat::kLibsvm ? 1 : 0);
    json["nnz"] = value.matrix().CountNonzeros();
    json["format"] = Name(options.format);
  } else {
    const ValueType type = value.scalar().type();
    json["value_type"] = type == ValueType::kInteger ? "int" : std::string(Name(type));
    json["format"] = "text";
  }
  if (!options.description.empty()) json["description"] = options.description;
  if (value.IsMatrix() && options.format == FileFormat::kCsv) {
    json["header"] = options.header;
    json["sep"] = options.separator;
  }
  if (value.IsMatrix() && options.format == FileFormat::kLibsvm) json["indSep"] = options.index_separator;
  // A path or description that is no UTF-8 must not stop the write.
  return json.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Status WriteValue(const Value& value, const std::string& path, const WriteOptions& options, Files& files) {
  if (path.empty()) return NotFound("cannot write '': the path is empty");
  if (value.IsMatrix() && options.format == FileFormat::kLibsvm && value.matrix().columns() < 1)
    return FailedPrecondition("write: a libsvm file needs a label column, the matrix is {}",
                              value.matrix().shape());
  const std::string bytes =
      value.IsMatrix() ? MatrixBytes(value.matrix(), options) : value.scalar().ToText() + "\n";
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  HEDDLE_RETURN_IF_ERROR(files.Replace(path, bytes));
  if (value.IsMatrix() && options.format == FileFormat::kMatrixMarket)
    return files.Remove(path +
                        ".mtd");  // the header says it all; metadata of an older output would contradict it
  return files.Replace(path + ".mtd", Metadata(value, options));
}

}  // namespace heddle::ops

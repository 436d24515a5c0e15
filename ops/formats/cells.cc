// SPDX-License-Identifier: Apache-2.0
// Formats with one cell per line: "row column value" (text), and MatrixMarket.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "core/double_text.h"
#include "ops/formats/lines.h"
#include "ops/formats/readers.h"
#include "ops/kernel.h"

namespace heddle::ops {
namespace {

enum class Symmetry : uint8_t { kGeneral, kSymmetric, kSkew };

// Doubles count rows exactly up to here.
constexpr int64_t kMostRows = int64_t{1} << 53;
constexpr int64_t kLinesBetweenPolls = 1 << 16;

struct Header {
  bool coordinates = true;  // else an array, column by column
  bool pattern = false;
  Symmetry symmetry = Symmetry::kGeneral;
  Shape shape;
  int64_t entries = kUnknown;
  std::string_view body;
  int64_t lines = 0;  // before the body
};

std::string_view TakeWord(std::string_view* line) {
  *line = Trim(*line);
  size_t end = 0;
  while (end < line->size() && !IsBlank((*line)[end])) ++end;
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

bool TakeInteger(std::string_view* line, int64_t* value) {
  const std::string_view word = TakeWord(line);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

Result<Header> ReadHeader(const ReadOptions& options, std::string_view text) {
  Header header;
  header.shape = {options.rows, options.columns};
  header.body = text;
  if (options.format != FileFormat::kMatrixMarket) return header;
  std::string_view line = TakeLine(&header.body);
  header.lines = 1;
  if (TakeWord(&line) != "%%MatrixMarket" || TakeWord(&line) != "matrix")
    return DataLoss("cannot read '{}': line 1 is not a MatrixMarket header", options.path);
  const std::string_view layout = TakeWord(&line);
  const std::string_view field = TakeWord(&line);
  const std::string_view symmetry = TakeWord(&line);
  header.coordinates = layout == "coordinate";
  header.pattern = field == "pattern";
  if ((layout != "coordinate" && layout != "array") ||
      (field != "real" && field != "integer" && field != "pattern" && field != "double") ||
      (header.pattern && !header.coordinates))
    return DataLoss("cannot read '{}': MatrixMarket '{} {}' is not a matrix of real numbers", options.path,
                    layout, field);
  if (symmetry == "symmetric")
    header.symmetry = Symmetry::kSymmetric;
  else if (symmetry == "skew-symmetric")
    header.symmetry = Symmetry::kSkew;
  else if (symmetry != "general" && !symmetry.empty())
    return DataLoss("cannot read '{}': MatrixMarket symmetry '{}' is not known", options.path, symmetry);
  do {
    if (header.body.empty()) return DataLoss("cannot read '{}': the size line is missing", options.path);
    line = TakeLine(&header.body);
    ++header.lines;
  } while (Trim(line).empty() || Trim(line).front() == '%');
  Shape shape;
  if (!TakeInteger(&line, &shape.rows) || !TakeInteger(&line, &shape.columns) || shape.rows < 0 ||
      shape.columns < 0 || (header.coordinates && !TakeInteger(&line, &header.entries)))
    return DataLoss("cannot read '{}': line {} is not a size line", options.path, header.lines);
  if (header.symmetry != Symmetry::kGeneral && shape.rows != shape.columns)
    return DataLoss("cannot read '{}': a {} matrix is square, the file says {}", options.path, symmetry,
                    shape);
  if (!header.coordinates) {
    // Of a symmetric array the file has the lower triangle, of a skew-symmetric one without the diagonal.
    int64_t cells = shape.Cells();
    if (header.symmetry == Symmetry::kSymmetric && cells != INT64_MAX) cells = (cells + shape.rows) / 2;
    if (header.symmetry == Symmetry::kSkew && cells != INT64_MAX) cells = (cells - shape.rows) / 2;
    header.entries = cells;
  }
  if ((options.rows != kUnknown && options.rows != shape.rows) ||
      (options.columns != kUnknown && options.columns != shape.columns))
    return DataLoss("cannot read '{}': {}x{} was asked for, the file says {}", options.path, options.rows,
                    options.columns, shape);
  header.shape = shape;
  return header;
}

// Calls visit(row, column, value), counted from 0, for every cell in the file (mirrored ones too).
template <typename Visit>
Status VisitCells(const ReadOptions& options, const Header& header, const Visit& visit) {
  std::string_view rest = header.body;
  int64_t line_number = header.lines;
  int64_t seen = 0;
  auto emit = [&](int64_t row, int64_t column, double value) {
    visit(row, column, value);
    if (header.symmetry != Symmetry::kGeneral && row != column)
      visit(column, row, header.symmetry == Symmetry::kSkew ? -value : value);
  };
  int64_t array_row = header.symmetry == Symmetry::kSkew ? 1 : 0;
  int64_t array_column = 0;
  while (!rest.empty()) {
    std::string_view line = TakeLine(&rest);
    ++line_number;
    if (line_number % kLinesBetweenPolls == 0 && IsCancelled(options.cancelled))
      return Cancelled("cancelled");
    const std::string_view whole = Trim(line);
    if (whole.empty() || whole.front() == '%') continue;
    int64_t row = 0;
    int64_t column = 0;
    double value = 1;
    bool good = true;
    if (header.coordinates) {
      good = TakeInteger(&line, &row) && TakeInteger(&line, &column);
    } else {
      row = array_row + 1;
      column = array_column + 1;
      if (++array_row == header.shape.rows) {
        ++array_column;
        array_row =
            header.symmetry == Symmetry::kGeneral ? 0 : array_column + (header.symmetry == Symmetry::kSkew);
      }
    }
    if (good && !header.pattern) {
      const std::optional<double> number = ParseDouble(TakeWord(&line));
      good = number.has_value();
      value = number.value_or(0);
    }
    if (!good || !Trim(line).empty())
      return DataLoss("cannot read '{}': line {}: '{}' is not {}", options.path, line_number,
                      whole.substr(0, 60),
                      !header.coordinates ? "a number"
                      : header.pattern    ? "row column"
                                          : "row column value");
    ++seen;
    if (row == 0 && column == 0 && value == 0 && options.format == FileFormat::kText)
      continue;  // an all-zero matrix
    const bool inside = row >= 1 && column >= 1 &&
                        (header.shape.rows == kUnknown || row <= header.shape.rows) &&
                        (header.shape.columns == kUnknown || column <= header.shape.columns) &&
                        row <= kMostRows && column < std::numeric_limits<int32_t>::max();
    if (!inside)
      return DataLoss("cannot read '{}': line {}: cell ({}, {}) is outside of the {} matrix", options.path,
                      line_number, row, column, header.shape);
    emit(row - 1, column - 1, value);
  }
  if (header.entries != kUnknown && seen != header.entries)
    return DataLoss("cannot read '{}': its header says {} entries, it has {}", options.path, header.entries,
                    seen);
  return OkStatus();
}

}  // namespace

Result<FileSummary> SummarizeCells(const ReadOptions& options, std::string_view text) {
  HEDDLE_ASSIGN_OR_RETURN(const Header header, ReadHeader(options, text));
  FileSummary summary;
  summary.shape = header.shape;
  summary.stored = 0;
  Shape largest{0, 0};
  HEDDLE_RETURN_IF_ERROR(VisitCells(options, header, [&](int64_t row, int64_t column, double value) {
    largest.rows = std::max(largest.rows, row + 1);
    largest.columns = std::max(largest.columns, column + 1);
    summary.stored += value != 0;
  }));
  if (summary.shape.rows == kUnknown) summary.shape.rows = largest.rows;
  if (summary.shape.columns == kUnknown) summary.shape.columns = largest.columns;
  if (summary.shape.Cells() == 0 && options.format == FileFormat::kText)
    return DataLoss("cannot read '{}': it holds no cells and its size is not known", options.path)
        .WithNote("give rows= and cols=");
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadCells(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                         int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const Header header, ReadHeader(options, text));
  const int64_t rows = row_end - row_begin;
  const int64_t columns = summary.shape.columns;
  // Count the cells of each row, then place them, then order each row by column. A small file may name a huge
  // row: what grows with the rows comes from the budget.
  struct Cell {
    int32_t column;
    double value;
  };
  HEDDLE_ASSIGN_OR_RETURN(Matrix counted, Matrix::Sparse(rows, columns, 0));
  int64_t* const starts = counted.mutable_row_offsets();
  const auto is_mine = [&](int64_t row, double value) {
    return row >= row_begin && row < row_end && value != 0;
  };
  bool fits = true;
  HEDDLE_RETURN_IF_ERROR(VisitCells(options, header, [&](int64_t row, int64_t column, double value) {
    fits &= column < columns;
    if (is_mine(row, value)) ++starts[row - row_begin + 1];
  }));
  if (!fits) return DataLoss("cannot read '{}': it changed while it was read", options.path);
  for (int64_t i = 0; i < rows; ++i) starts[i + 1] += starts[i];
  std::vector<Cell> cells(static_cast<size_t>(starts[rows]));
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(rows, columns, starts[rows]));
  int64_t* offsets = sparse.mutable_row_offsets();
  std::copy_n(starts, rows + 1, offsets);  // For now, where the next cell of each row goes.
  HEDDLE_RETURN_IF_ERROR(VisitCells(options, header, [&](int64_t row, int64_t column, double value) {
    if (is_mine(row, value))
      cells[static_cast<size_t>(offsets[row - row_begin]++)] = {static_cast<int32_t>(column), value};
  }));
  int64_t at = 0;
  offsets[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto begin = cells.begin() + starts[i];
    const auto end = cells.begin() + starts[i + 1];
    std::stable_sort(begin, end, [](const Cell& a, const Cell& b) { return a.column < b.column; });
    for (auto cell = begin; cell != end; ++cell) {
      // A cell given twice is added up, as MatrixMarket readers do.
      if (at > offsets[i] && sparse.column_indexes()[at - 1] == cell->column) {
        sparse.mutable_values()[at - 1] += cell->value;
        continue;
      }
      sparse.mutable_column_indexes()[at] = cell->column;
      sparse.mutable_values()[at] = cell->value;
      ++at;
    }
    offsets[i + 1] = at;
  }
  return summary.format == Format::kSparse ? Result<Matrix>(std::move(sparse)) : ToDense(sparse);
}

}  // namespace heddle::ops

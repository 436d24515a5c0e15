// SPDX-License-Identifier: Apache-2.0
// Formats with one cell per line: "row column value" (text), and MatrixMarket.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "core/text/utf8.h"
#include "ops/formats/fields.h"
#include "ops/formats/lines.h"
#include "ops/formats/matrix_market.h"
#include "ops/formats/readers.h"
#include "ops/kernel.h"

namespace heddle::ops {
namespace {

// Doubles count rows exactly up to here.
constexpr int64_t kMostRows = int64_t{1} << 53;
constexpr int64_t kLinesBetweenPolls = 1 << 16;

Result<MatrixMarketHeader> ReadHeader(const ReadOptions& options, const TextFile& text) {
  if (options.format == FileFormat::kMatrixMarket) return ReadMatrixMarketHeader(options, text);
  MatrixMarketHeader header;
  header.shape = {options.rows, options.columns};
  return header;
}

// Where the values of an array go: down its columns, from the diagonal on where the matrix is symmetric.
class ArrayPlace {
 public:
  explicit ArrayPlace(const MatrixMarketHeader& header) : header_(header) { row_ = FirstRow(); }
  int64_t row() const { return row_; }
  int64_t column() const { return column_; }
  void Advance() {
    if (++row_ < header_.shape.rows) return;
    ++column_;
    row_ = FirstRow();
  }

 private:
  int64_t FirstRow() const {
    return header_.symmetry == Symmetry::kGeneral ? 0 : column_ + (header_.symmetry == Symmetry::kSkew);
  }

  const MatrixMarketHeader& header_;
  int64_t row_ = 0;
  int64_t column_ = 0;
};

// A cell as a line gives it: counted from 1.
struct Cell {
  int64_t row = 0;
  int64_t column = 0;
  double value = 1;
};

// "row column value" as most lines have it; false leaves the line to ReadCell.
bool ReadPlainCell(std::string_view line, Cell* cell) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (int64_t* index : {&cell->row, &cell->column}) {
    const auto [next, error] = std::from_chars(at, end, *index);
    if (error != std::errc() || next == end || *next != ' ') return false;
    at = next + 1;
  }
  return TakePlainNumber(&at, end, &cell->value) && at == end;
}

// The cell of a line that is not blank; false if it holds something else.
bool ReadCell(const MatrixMarketHeader& header, std::string_view line, ArrayPlace* place, Cell* cell) {
  if (!header.coordinates) {
    cell->row = place->row() + 1;
    cell->column = place->column() + 1;
    place->Advance();
  } else if (!TakeInteger(&line, &cell->row) || !TakeInteger(&line, &cell->column)) {
    return false;
  }
  if (!header.pattern) {
    const std::optional<double> number = ParseFortranNumber(TakeBlankWord(&line));
    if (!number) return false;
    cell->value = *number;
  }
  return Trim(line).empty();
}

Status Malformed(const ReadOptions& options, const MatrixMarketHeader& header, int64_t line_number,
                 std::string_view line) {
  const Status status = DataLoss("cannot read '{}': line {}: '{}' is not {}", options.path, line_number,
                                 CutAtCharacter(line, 60),
                                 !header.coordinates ? "a number"
                                 : header.pattern    ? "row column"
                                                     : "row column value");
  return options.guessed ? status.WithNote("if it is a table, say format=\"csv\"") : status;
}

// Calls visit(row, column, value), counted from 0, for every cell in the file (mirrored ones too).
template <typename Visit>
Status VisitCells(const ReadOptions& options, const MatrixMarketHeader& header, const TextFile& text,
                  const Visit& visit) {
  const bool is_text = options.format == FileFormat::kText;
  const bool plain = header.coordinates && !header.pattern;
  LineReader lines(text, header.body);
  int64_t line_number = header.lines;
  int64_t seen = 0;
  ArrayPlace place(header);
  for (std::string_view line; lines.Next(&line);) {
    ++line_number;
    if (line_number % kLinesBetweenPolls == 0 && IsCancelled(options.cancelled))
      return Cancelled("cancelled");
    Cell cell;
    if (!plain || !ReadPlainCell(line, &cell)) {
      const std::string_view whole = Trim(line);
      if (whole.empty() || whole.front() == '%') continue;
      if (!ReadCell(header, whole, &place, &cell)) return Malformed(options, header, line_number, whole);
    }
    const auto [row, column, value] = cell;
    ++seen;
    if (row == 0 && column == 0 && value == 0 && is_text) continue;  // an all-zero matrix
    const bool inside = row >= 1 && column >= 1 &&
                        (header.shape.rows == kUnknown || row <= header.shape.rows) &&
                        (header.shape.columns == kUnknown || column <= header.shape.columns) &&
                        row <= kMostRows && column < std::numeric_limits<int32_t>::max();
    if (!inside)
      return DataLoss("cannot read '{}': line {}: cell ({}, {}) is outside of the {} matrix", options.path,
                      line_number, row, column, header.shape);
    if (header.symmetry == Symmetry::kSkew && row == column && value != 0)
      return DataLoss("cannot read '{}': line {}: a skew-symmetric matrix has zeros on its diagonal",
                      options.path, line_number);
    visit(row - 1, column - 1, value);
    if (header.symmetry != Symmetry::kGeneral && row != column)
      visit(column - 1, row - 1, header.symmetry == Symmetry::kSkew ? -value : value);
  }
  HEDDLE_RETURN_IF_ERROR(lines.status());
  if (header.entries != kUnknown && seen != header.entries)
    return DataLoss("cannot read '{}': its header says {} entries, it has {}", options.path, header.entries,
                    seen);
  return OkStatus();
}

}  // namespace

Result<FileSummary> SummarizeCells(const ReadOptions& options, const TextFile& text) {
  HEDDLE_ASSIGN_OR_RETURN(const MatrixMarketHeader header, ReadHeader(options, text));
  FileSummary summary;
  summary.shape = header.shape;
  summary.stored = 0;
  Shape largest{0, 0};
  HEDDLE_RETURN_IF_ERROR(VisitCells(options, header, text, [&](int64_t row, int64_t column, double value) {
    largest.rows = std::max(largest.rows, row + 1);
    largest.columns = std::max(largest.columns, column + 1);
    summary.stored += value != 0;
  }));
  if (summary.shape.rows == kUnknown) summary.shape.rows = largest.rows;
  if (summary.shape.columns == kUnknown) summary.shape.columns = largest.columns;
  const bool is_given = header.shape.rows != kUnknown && header.shape.columns != kUnknown;
  if (summary.shape.Cells() == 0 && !is_given && options.format == FileFormat::kText)
    return DataLoss("cannot read '{}': it holds no cells and its size is not known", options.path)
        .WithNote("give rows= and cols=");
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadCells(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                         int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const MatrixMarketHeader header, ReadHeader(options, text));
  const int64_t rows = row_end - row_begin;
  const int64_t columns = summary.shape.columns;
  // Count the cells of each row, then place them, then order each row by column. A small file may name a huge
  // row: what grows with the rows comes from the budget.
  struct Placed {
    int32_t column;
    double value;
  };
  HEDDLE_ASSIGN_OR_RETURN(Matrix counted, Matrix::Sparse(rows, columns, 0));
  int64_t* const starts = counted.mutable_row_offsets();
  const auto is_mine = [&](int64_t row, double value) {
    return row >= row_begin && row < row_end && value != 0;
  };
  bool fits = true;
  HEDDLE_RETURN_IF_ERROR(VisitCells(options, header, text, [&](int64_t row, int64_t column, double value) {
    fits &= column < columns;
    if (is_mine(row, value)) ++starts[row - row_begin + 1];
  }));
  if (!fits) return ItChanged(options);
  for (int64_t i = 0; i < rows; ++i) starts[i + 1] += starts[i];
  std::vector<Placed> cells(static_cast<size_t>(starts[rows]));
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(rows, columns, starts[rows]));
  int64_t* offsets = sparse.mutable_row_offsets();
  std::copy_n(starts, rows + 1, offsets);  // Until all are placed: where the next cell of each row goes.
  HEDDLE_RETURN_IF_ERROR(VisitCells(options, header, text, [&](int64_t row, int64_t column, double value) {
    if (!is_mine(row, value)) return;
    int64_t& next = offsets[row - row_begin];
    fits &= column < columns && next < starts[row - row_begin + 1];
    if (fits) cells[static_cast<size_t>(next++)] = {static_cast<int32_t>(column), value};
  }));
  for (int64_t i = 0; i < rows; ++i) fits &= offsets[i] == starts[i + 1];
  if (!fits) return ItChanged(options);
  int64_t at = 0;
  offsets[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto begin = cells.begin() + starts[i];
    const auto end = cells.begin() + starts[i + 1];
    std::stable_sort(begin, end, [](const Placed& a, const Placed& b) { return a.column < b.column; });
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

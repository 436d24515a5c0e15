// SPDX-License-Identifier: Apache-2.0
// Formats with one cell per line: "row column value" (text), and MatrixMarket.
#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/io/formats/chunk_looks.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/matrix_market.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/text/cell_exchange.h"
#include "ops/io/formats/text/cell_placer.h"

namespace heddle::ops {
namespace {

// Doubles count rows exactly up to here.
constexpr int64_t kMostRows = int64_t{1} << 53;
// Columns of sparse matrices are 32-bit numbers.
constexpr int64_t kMostColumns = std::numeric_limits<int32_t>::max() - 1;

// Sizes that the file says, or a place in it, are those of a matrix that can be.
Status CheckSizes(const ReadOptions& options, std::string_view where, int64_t rows, int64_t columns) {
  if (rows <= kMostRows && columns <= kMostColumns) return OkStatus();
  return DataLoss(
      "cannot read '{}': {} is too large; matrices in such files have {} rows and {} columns at most",
      options.path, where, kMostRows, kMostColumns);
}

Result<MatrixMarketHeader> ReadHeader(const ReadOptions& options, const TextFile& text) {
  if (options.format == FileFormat::kMatrixMarket) {
    HEDDLE_ASSIGN_OR_RETURN(const MatrixMarketHeader header, ReadMatrixMarketHeader(options, text));
    HEDDLE_RETURN_IF_ERROR(CheckSizes(options, fmt::format("its size of {}", header.shape), header.shape.rows,
                                      header.shape.columns));
    return header;
  }
  MatrixMarketHeader header;
  header.shape = {options.rows, options.columns};
  return header;
}

// Where the values of an array go: down its columns, from the diagonal on where the matrix is symmetric.
class ArrayPlace {
 public:
  explicit ArrayPlace(const MatrixMarketHeader& header)
      : rows_(header.shape.rows),
        from_diagonal_(header.symmetry != Symmetry::kGeneral),
        skips_diagonal_(header.symmetry == Symmetry::kSkew) {
    row_ = FirstRow();
  }
  int64_t row() const { return row_; }
  int64_t column() const { return column_; }
  void Advance(int64_t values) {
    while (values > 0) {
      const int64_t of_column = std::min(values, std::max<int64_t>(1, rows_ - row_));
      values -= of_column;
      row_ += of_column;
      if (row_ < rows_) return;
      ++column_;
      row_ = FirstRow();
    }
  }

 private:
  int64_t FirstRow() const { return from_diagonal_ ? column_ + skips_diagonal_ : 0; }

  int64_t rows_;
  bool from_diagonal_;
  bool skips_diagonal_;
  int64_t row_ = 0;
  int64_t column_ = 0;
};

// A cell as a line gives it: counted from 1.
struct Cell {
  int64_t row = 0;
  int64_t column = 0;
  double value = 1;
};

// Takes "row column value" as most lines have it, with its newline; false leaves the line to ReadCell.
bool TakePlainCell(std::string_view* rest, Cell* cell) {
  const char* at = rest->data();
  const char* const end = at + rest->size();
  for (int64_t* index : {&cell->row, &cell->column}) {
    if (!TakePlainInteger(&at, end, index) || at == end || *at != ' ') return false;
    ++at;
  }
  if (!TakePlainNumber(&at, end, &cell->value) || (at != end && *at != '\n')) return false;
  rest->remove_prefix(static_cast<size_t>(at - rest->data()) + (at != end));
  return true;
}

// The cell of a line that is not blank; false if it holds something else.
bool ReadCell(const MatrixMarketHeader& header, std::string_view line, ArrayPlace* place, Cell* cell) {
  if (!header.coordinates) {
    cell->row = place->row() + 1;
    cell->column = place->column() + 1;
    place->Advance(1);
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
  const Status status =
      DataLoss("cannot read '{}': line {}: '{}' is not {}", options.path, line_number, ShownInLine(line, 60),
               !header.coordinates ? "a number"
               : header.pattern    ? "row column"
                                   : "row column value");
  return options.guessed ? status.WithNote("if it is a table, say format=\"csv\"") : status;
}

// The lines of a file behind its header, in chunks that are read in parallel.
struct CellLines {
  MatrixMarketHeader header;
  LineChunks chunks;
  std::vector<ArrayPlace> places;  // Of an array: where the first value of each chunk goes.

  ArrayPlace PlaceOf(size_t chunk) const { return places.empty() ? ArrayPlace(header) : places[chunk]; }
};

// Of a line that is trimmed.
bool HoldsNoCell(std::string_view line) { return line.empty() || line.front() == '%'; }

// Finds the places of an array whose chunks are known.
Status FindPlaces(const ReadOptions& options, const TextFile& text, CellLines* lines) {
  if (lines->header.coordinates) return OkStatus();
  std::vector<int64_t> values(lines->chunks.offsets.size() - 1);
  HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
      options, text, lines->chunks, ChunkOrder::kAny, [](size_t) { return true; },
      [&](size_t chunk, std::string_view rest, int64_t*) {
        while (!rest.empty()) values[chunk] += !HoldsNoCell(Trim(TakeLine(&rest)));
        return OkStatus();
      }));
  ArrayPlace place(lines->header);
  for (const int64_t of_chunk : values) {
    lines->places.push_back(place);
    place.Advance(of_chunk);
  }
  return OkStatus();
}

bool IsInside(const MatrixMarketHeader& header, const Cell& cell) {
  return cell.row >= 1 && cell.column >= 1 &&
         (header.shape.rows == kUnknown || cell.row <= header.shape.rows) &&
         (header.shape.columns == kUnknown || cell.column <= header.shape.columns);
}

// Calls visit(row, column, value), counted from 0, for every cell in a chunk of the file (mirrored ones too).
// `lines` counts lines of the whole file, `seen` lines with a cell.
template <typename Visit>
Status VisitChunk(const ReadOptions& options, const MatrixMarketHeader& header, ArrayPlace place,
                  std::string_view text, int64_t* lines, int64_t* seen, const Visit& visit) {
  const bool is_text = options.format == FileFormat::kText;
  const bool plain = header.coordinates && !header.pattern;
  while (!text.empty()) {
    ++*lines;
    Cell cell;
    if (!plain || !TakePlainCell(&text, &cell)) {
      const std::string_view whole = Trim(TakeLine(&text));
      if (HoldsNoCell(whole)) continue;
      if (!ReadCell(header, whole, &place, &cell)) return Malformed(options, header, *lines, whole);
    }
    const auto [row, column, value] = cell;
    ++*seen;
    if (row == 0 && column == 0 && value == 0 && is_text) continue;  // an all-zero matrix
    if (!IsInside(header, cell))
      return DataLoss("cannot read '{}': line {}: cell ({}, {}) is outside of the {} matrix", options.path,
                      *lines, row, column, header.shape);
    if (row > kMostRows || column > kMostColumns)
      return CheckSizes(options, fmt::format("line {}: cell ({}, {})", *lines, row, column), row, column);
    if (header.symmetry == Symmetry::kSkew && row == column && value != 0)
      return DataLoss("cannot read '{}': line {}: a skew-symmetric matrix has zeros on its diagonal",
                      options.path, *lines);
    visit(row - 1, column - 1, value);
    if (header.symmetry != Symmetry::kGeneral && row != column)
      visit(column - 1, row - 1, header.symmetry == Symmetry::kSkew ? -value : value);
  }
  return OkStatus();
}

// Calls take(chunk, row, column, value), counted from 0, for the cells of the chunks that are wanted.
template <typename Wanted, typename Take>
Status VisitCells(const ReadOptions& options, const TextFile& text, const CellLines& lines, ChunkOrder order,
                  const Wanted& wanted, const Take& take) {
  return VisitLineChunks(
      options, text, lines.chunks, order, wanted, [&](size_t chunk, std::string_view piece, int64_t* taken) {
        const int64_t before = lines.chunks.lines[chunk];
        int64_t line_number = before, seen = 0;
        const Status status =
            VisitChunk(options, lines.header, lines.PlaceOf(chunk), piece, &line_number, &seen,
                       [&](int64_t row, int64_t column, double value) { take(chunk, row, column, value); });
        *taken = line_number - before;
        return status;
      });
}

// The cells of a file that are in some rows, rows counted from the first of these: only chunks that have
// cells in them are read (ops/io/formats/text/cell_placer.h).
class FileCells {
 public:
  FileCells(const ReadOptions& options, const FileSummary& summary, const CellLines& lines,
            const TextFile& text, const Shape& shape, int64_t row_begin)
      : options_(options),
        summary_(summary),
        lines_(lines),
        text_(text),
        shape_(shape),
        row_begin_(row_begin) {}

  template <typename Take>
  Status ForCells(ChunkOrder order, const Take& take) const {
    std::atomic<bool> fits = true;
    HEDDLE_RETURN_IF_ERROR(VisitCells(
        options_, text_, lines_, order, [&](size_t chunk) { return HasRows(chunk); },
        [&](size_t, int64_t row, int64_t column, double value) {
          row -= row_begin_;
          if (row < 0 || row >= shape_.rows || value == 0) return;
          if (column >= shape_.columns || !take(row, column, value)) fits = false;
        }));
    return fits ? OkStatus() : ItChanged(options_);
  }

 private:
  // Whether some cell of a chunk may be in the rows.
  bool HasRows(size_t chunk) const {
    const RowRange& rows = summary_.chunk_row_ranges[chunk];
    return rows.begin < row_begin_ + shape_.rows && rows.end > row_begin_;
  }

  const ReadOptions& options_;
  const FileSummary& summary_;
  const CellLines& lines_;
  const TextFile& text_;
  const Shape shape_;
  const int64_t row_begin_;
};

Result<CellLines> LinesOf(const ReadOptions& options, const FileSummary& summary, const TextFile& text) {
  CellLines lines;
  HEDDLE_ASSIGN_OR_RETURN(lines.header, ReadHeader(options, text));
  lines.chunks = {summary.chunk_offsets, summary.chunk_lines};
  HEDDLE_RETURN_IF_ERROR(FindPlaces(options, text, &lines));
  return lines;
}

}  // namespace

Result<FileSummary> SummarizeCells(const ReadOptions& options, const TextFile& text, ChunkLooks& looks) {
  FileSummary summary;
  CellLines lines;
  HEDDLE_ASSIGN_OR_RETURN(lines.header, ReadHeader(options, text));
  const MatrixMarketHeader& header = lines.header;
  if (!header.coordinates) {
    // A value is where the values before it are not: nobody can look at a share.
    if (!looks.looks_at_all()) return Unimplemented("an array in text is looked at by each worker");
    HEDDLE_ASSIGN_OR_RETURN(lines.chunks, CutLines(text, header.body, options.chunk_bytes));
    HEDDLE_RETURN_IF_ERROR(FindPlaces(options, text, &lines));
  }
  struct ChunkCells {
    RowRange rows;  // Of its cells, mirrored ones too.
    int64_t columns = 0;
    int64_t seen = 0;    // Lines with a cell.
    int64_t stored = 0;  // Cells that are not zero.
  };
  const auto look_at_chunk = [&](size_t chunk, std::string_view piece, int64_t lines_before,
                                 ChunkCells* found, int64_t* taken) {
    int64_t line_number = lines_before;
    const Status status = VisitChunk(options, header, lines.PlaceOf(chunk), piece, &line_number, &found->seen,
                                     [&](int64_t row, int64_t column, double value) {
                                       found->rows.Add(row);
                                       found->columns = std::max(found->columns, column + 1);
                                       found->stored += value != 0;
                                     });
    *taken = line_number - lines_before;
    return status;
  };
  HEDDLE_ASSIGN_OR_RETURN(
      ChunkLooks::Lines<ChunkCells> looked,
      looks.LookAtLines<ChunkCells>(options, text, header.body, header.lines, look_at_chunk));
  ChunkCells all;
  summary.stored = 0;
  for (const ChunkCells& chunk : looked.records) {
    summary.chunk_row_ranges.push_back(chunk.rows);
    all.rows.end = std::max(all.rows.end, chunk.rows.end);
    all.columns = std::max(all.columns, chunk.columns);
    all.seen += chunk.seen;
    summary.stored += chunk.stored;
  }
  if (header.entries != kUnknown && all.seen != header.entries)
    return DataLoss("cannot read '{}': its header says {} entries, it has {}", options.path, header.entries,
                    all.seen);
  summary.chunk_offsets = std::move(looked.chunks.offsets);
  summary.chunk_lines = std::move(looked.chunks.lines);
  summary.is_unordered = true;
  summary.shape = header.shape;
  if (summary.shape.rows == kUnknown) summary.shape.rows = all.rows.end;
  if (summary.shape.columns == kUnknown) summary.shape.columns = all.columns;
  const bool is_given = header.shape.rows != kUnknown && header.shape.columns != kUnknown;
  if (summary.shape.Cells() == 0 && !is_given && options.format == FileFormat::kText)
    return DataLoss("cannot read '{}': it holds no cells and its size is not known", options.path)
        .WithNote("give rows= and cols=");
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadCells(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                         int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const CellLines lines, LinesOf(options, summary, text));
  const Shape shape = {row_end - row_begin, summary.shape.columns};
  const FileCells cells(options, summary, lines, text, shape, row_begin);
  return PlaceCells(cells, shape, summary.format, options);
}

Result<std::vector<Matrix>> CellsByRank(const ReadOptions& options, const FileSummary& summary,
                                        const TextFile& text, const ShareOfChunks& share,
                                        std::span<const int64_t> cuts) {
  HEDDLE_ASSIGN_OR_RETURN(const CellLines lines, LinesOf(options, summary, text));
  const auto chunks = std::ssize(lines.chunks.offsets) - 1;
  CellSorter sorter(options, cuts, summary.shape.columns, static_cast<size_t>(chunks));
  HEDDLE_RETURN_IF_ERROR(VisitCells(
      options, text, lines, ChunkOrder::kAny,
      [&](size_t chunk) { return static_cast<int64_t>(chunk) * share.shares / chunks == share.number; },
      [&](size_t chunk, int64_t row, int64_t column, double value) {
        if (value != 0) sorter.Add(chunk, row, column, value);
      }));
  return std::move(sorter).Take();
}

}  // namespace heddle::ops

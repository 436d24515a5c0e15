// SPDX-License-Identifier: Apache-2.0
// Formats with one cell per line: "row column value" (text), and MatrixMarket.
#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/io/formats/chunk_looks.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/matrix_market.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/text/cell_set.h"

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

// The cells of a file that this rank keeps, and are no zeros: only chunks that have cells in its rows are
// read. A cell that comes twice is added up in the order of the file, as MatrixMarket readers do: such files
// are read once more, from front to back.
class CellReader {
 public:
  CellReader(const ReadOptions& options, const FileSummary& summary, const CellLines& lines,
             const TextFile& text, const Shape& shape, int64_t row_begin)
      : options_(options),
        summary_(summary),
        lines_(lines),
        text_(text),
        shape_(shape),
        row_begin_(row_begin) {}

  Result<Matrix> ReadDense();
  Result<Matrix> ReadSparse();

 private:
  // Calls take(row, column, value) for them, rows counted from the first that is kept.
  template <typename Take>
  Status ForCells(ChunkOrder order, const Take& take) {
    std::atomic<bool> fits = true;
    HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
        options_, text_, lines_.chunks, order, [&](size_t chunk) { return HasRows(chunk); },
        [&](size_t chunk, std::string_view piece, int64_t* taken) {
          const int64_t before = lines_.chunks.lines[chunk];
          int64_t line_number = before, seen = 0;
          const Status status =
              VisitChunk(options_, lines_.header, lines_.PlaceOf(chunk), piece, &line_number, &seen,
                         [&](int64_t row, int64_t column, double value) {
                           row -= row_begin_;
                           if (row < 0 || row >= shape_.rows || value == 0) return;
                           if (column >= shape_.columns || !take(row, column, value)) fits = false;
                         });
          *taken = line_number - before;
          return status;
        }));
    return fits ? OkStatus() : ItChanged(options_);
  }
  // Whether some cell of a chunk may be in the rows that are kept.
  bool HasRows(size_t chunk) const {
    const RowRange& rows = summary_.chunk_row_ranges[chunk];
    return rows.begin < row_begin_ + shape_.rows && rows.end > row_begin_;
  }
  Result<Matrix> PlaceCells();
  Status AddUp(std::vector<int64_t> rows, Matrix* sparse);

  const ReadOptions& options_;
  const FileSummary& summary_;
  const CellLines& lines_;
  const TextFile& text_;
  const Shape shape_;  // Of the rows that are kept.
  const int64_t row_begin_;
};

Result<Matrix> CellReader::ReadDense() {
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense, FilledMatrix(shape_.rows, shape_.columns, 0));
  double* const cells = dense.mutable_data();
  HEDDLE_ASSIGN_OR_RETURN(CellSet met, CellSet::Make(shape_.rows, shape_.columns, options_.path));
  std::atomic<bool> any_twice = false;
  HEDDLE_RETURN_IF_ERROR(ForCells(ChunkOrder::kAny, [&](int64_t row, int64_t column, double value) {
    if (met.Add(row, column))
      cells[row * shape_.columns + column] = value;
    else
      any_twice = true;
    return true;
  }));
  if (!any_twice) return dense;
  std::fill_n(cells, shape_.rows * shape_.columns, 0.0);
  HEDDLE_ASSIGN_OR_RETURN(met, CellSet::Make(shape_.rows, shape_.columns, options_.path));
  HEDDLE_RETURN_IF_ERROR(ForCells(ChunkOrder::kOfFile, [&](int64_t row, int64_t column, double value) {
    double& cell = cells[row * shape_.columns + column];
    cell = met.Add(row, column) ? value : cell + value;
    return true;
  }));
  return dense;
}

// The cells of each row in any order: they are counted, then placed.
Result<Matrix> CellReader::PlaceCells() {
  // A small file may name a huge row: what grows with the rows comes from the budget.
  HEDDLE_ASSIGN_OR_RETURN(Matrix counted, Matrix::Sparse(shape_.rows, shape_.columns, 0));
  int64_t* const counts = counted.mutable_row_offsets();
  HEDDLE_RETURN_IF_ERROR(ForCells(ChunkOrder::kAny, [&](int64_t row, int64_t, double) {
    std::atomic_ref(counts[row + 1]).fetch_add(1, std::memory_order_relaxed);
    return true;
  }));
  for (int64_t i = 0; i < shape_.rows; ++i) counts[i + 1] += counts[i];
  const int64_t stored = counts[shape_.rows];
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(shape_.rows, shape_.columns, stored));
  int64_t* const offsets = sparse.mutable_row_offsets();
  std::copy_n(counts, shape_.rows + 1, offsets);
  counted = Matrix();
  // While cells are placed offsets[i] is where the next of row i goes; in the end that is where row i + 1
  // begins. The sum tells whether it is.
  const auto weighted_sum = [&](const int64_t* ends) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < shape_.rows; ++i)
      sum += static_cast<uint64_t>(ends[i]) * (2 * static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ULL;
    return sum;
  };
  const uint64_t expected = weighted_sum(offsets + 1);
  int32_t* const columns = sparse.mutable_column_indexes();
  double* const values = sparse.mutable_values();
  HEDDLE_RETURN_IF_ERROR(ForCells(ChunkOrder::kAny, [&](int64_t row, int64_t column, double value) {
    const int64_t place = std::atomic_ref(offsets[row]).fetch_add(1, std::memory_order_relaxed);
    if (place >= stored) return false;
    columns[place] = static_cast<int32_t>(column);
    values[place] = value;
    return true;
  }));
  if (weighted_sum(offsets) != expected) return ItChanged(options_);
  std::copy_backward(offsets, offsets + shape_.rows, offsets + shape_.rows + 1);
  offsets[0] = 0;
  return sparse;
}

// Orders the entries of a row by column. False if two are in the same one.
bool SortRow(int64_t entries, int32_t* columns, double* values) {
  if (std::adjacent_find(columns, columns + entries, std::greater_equal<>()) == columns + entries)
    return true;
  std::vector<std::pair<int32_t, double>> sorted;
  for (int64_t k = 0; k < entries; ++k) sorted.emplace_back(columns[k], values[k]);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int64_t k = 0; k < entries; ++k) std::tie(columns[k], values[k]) = sorted[static_cast<size_t>(k)];
  return std::adjacent_find(columns, columns + entries) == columns + entries;
}

Result<Matrix> CellReader::ReadSparse() {
  constexpr int64_t kRowsAtOnce = 1 << 12;
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, PlaceCells());
  std::mutex mutex;
  std::vector<int64_t> rows_to_add;
  ParallelFor(shape_.rows, kRowsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = sparse.row_offsets()[i];
      if (SortRow(sparse.row_offsets()[i + 1] - first, sparse.mutable_column_indexes() + first,
                  sparse.mutable_values() + first))
        continue;
      const std::lock_guard lock(mutex);
      rows_to_add.push_back(i);
    }
  });
  if (!rows_to_add.empty()) HEDDLE_RETURN_IF_ERROR(AddUp(std::move(rows_to_add), &sparse));
  return sparse;
}

// Makes one entry of those of these rows that are in one column, and adds their cells up anew.
Status CellReader::AddUp(std::vector<int64_t> rows, Matrix* sparse) {
  std::sort(rows.begin(), rows.end());
  const auto is_added = [&](int64_t row) { return std::binary_search(rows.begin(), rows.end(), row); };
  int64_t* const offsets = sparse->mutable_row_offsets();
  int32_t* const columns = sparse->mutable_column_indexes();
  double* const values = sparse->mutable_values();
  int64_t at = 0, begin = 0;
  for (int64_t i = 0; i < shape_.rows; ++i) {
    const int64_t end = offsets[i + 1];
    const bool adds = is_added(i);
    for (int64_t k = begin; k < end; ++k) {
      if (adds && k > begin && columns[k] == columns[k - 1]) continue;
      columns[at] = columns[k];
      values[at++] = adds ? -0.0 : values[k];  // What it is added to stays as it is, also -0.0.
    }
    begin = end;
    offsets[i + 1] = at;
  }
  return ForCells(ChunkOrder::kOfFile, [&](int64_t row, int64_t column, double value) {
    if (!is_added(row)) return true;
    int32_t* const end = columns + offsets[row + 1];
    const int32_t* const found = std::lower_bound(columns + offsets[row], end, column);
    if (found == end || *found != column) return false;
    values[found - columns] += value;
    return true;
  });
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
  CellLines lines;
  HEDDLE_ASSIGN_OR_RETURN(lines.header, ReadHeader(options, text));
  lines.chunks = {summary.chunk_offsets, summary.chunk_lines};
  HEDDLE_RETURN_IF_ERROR(FindPlaces(options, text, &lines));
  CellReader reader(options, summary, lines, text, {row_end - row_begin, summary.shape.columns}, row_begin);
  return summary.format == Format::kSparse ? reader.ReadSparse() : reader.ReadDense();
}

}  // namespace heddle::ops

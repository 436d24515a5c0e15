// SPDX-License-Identifier: Apache-2.0
// Frames in format text: "row column cell", the cells in any order (language reference 4.2). A cell may stand
// in double quotes, as a field of csv.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "core/memory/block_pool.h"
#include "core/text/utf8.h"
#include "core/values/sizes.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/frame_cells.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/matrix_market.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"
#include "ops/io/formats/text/cell_set.h"

namespace heddle::ops {
namespace {

// One record; row and column count from 0.
struct FrameCell {
  int64_t line = 0;
  int64_t row = 0;
  int64_t column = 0;
  std::string_view text;  // As it stands in the file: a quoted one with its quotes.
};

// SystemDS writes what it knows of column j of a frame as cells (-1, j), its number of distinct cells, and
// (-2, j), what replaces missing ones.
bool TellsOfColumn(std::string_view record) {
  int64_t row = 0;
  return TakeInteger(&record, &row) && (row == -1 || row == -2);
}

// Takes the place off the record of a cell, whose rest becomes its text.
Status TakePlace(const ReadOptions& options, const Shape& shape, std::string_view line, FrameCell* cell) {
  cell->text = line;
  if (cell->text.ends_with('\r')) cell->text.remove_suffix(1);
  const bool has_place = TakeInteger(&cell->text, &cell->row) && TakeInteger(&cell->text, &cell->column) &&
                         (cell->text.empty() || IsBlank(cell->text.front()));
  if (!has_place)
    return DataLoss("cannot read '{}': line {}: '{}' is not row column text", options.path, cell->line,
                    ShownInLine(Trim(line), 60))
        .WithNote("if it is a table, say format=\"csv\"");
  // One blank separates; those behind it belong to the cell.
  if (!cell->text.empty()) cell->text.remove_prefix(1);
  const bool inside = cell->row >= 1 && cell->column >= 1 &&
                      cell->row <= (shape.rows == kUnknown ? kMostLength : shape.rows) &&
                      cell->column <= (shape.columns == kUnknown ? INT32_MAX : shape.columns);
  if (!inside)
    return DataLoss("cannot read '{}': line {}: cell ({}, {}) is outside of the {} frame", options.path,
                    cell->line, cell->row, cell->column, shape);
  --cell->row;
  --cell->column;
  return OkStatus();
}

// A file in records, in chunks that are read in parallel.
struct CellRecords {
  QuoteGrammar grammar = QuoteGrammar::OfCells();
  LineChunks chunks;  // Of records: how many lines stand before each chunk.
};

Result<CellRecords> CutCellRecords(const ReadOptions& options, const TextFile& text) {
  CellRecords records;
  ChunkLooks looks;
  HEDDLE_ASSIGN_OR_RETURN(RecordChunks chunks, CutRecords(options, text, 0, records.grammar, looks));
  records.chunks = {std::move(chunks.offsets), std::move(chunks.lines)};
  return records;
}

// Calls visit(chunk, cell), which returns a Status, for every record of the file; blank lines are skipped.
template <typename Visit>
Status VisitFrameCells(const ReadOptions& options, const Shape& shape, const TextFile& text,
                       const CellRecords& records, ChunkOrder order, const Visit& visit) {
  return VisitLineChunks(
      options, text, records.chunks, order, [](size_t) { return true; },
      [&](size_t chunk, std::string_view rest, int64_t* lines) {
        FrameCell cell;
        // Most files have no cell in quotes: there every line is a record.
        const bool has_quote = rest.find('"') != std::string_view::npos;
        while (!rest.empty()) {
          const std::string_view record = has_quote ? TakeRecord(&rest, records.grammar) : TakeLine(&rest);
          cell.line = records.chunks.lines[chunk] + ++*lines;
          if (has_quote) *lines += CountNewlines(record);
          const std::string_view content = Trim(record);
          if (content.empty() || (content.front() == '-' && TellsOfColumn(content))) continue;
          HEDDLE_RETURN_IF_ERROR(TakePlace(options, shape, record, &cell));
          HEDDLE_RETURN_IF_ERROR(visit(chunk, cell));
        }
        return OkStatus();
      });
}

// A column whose cells are found in any order. It is gone through twice: first numbers are taken and the
// lengths of texts, then there is room for the texts. Of a cell that comes twice the last one holds.
class ScatteredColumn {
 public:
  static Result<ScatteredColumn> Make(ColumnType type, int64_t rows) {
    ScatteredColumn column;
    HEDDLE_ASSIGN_OR_RETURN(column.cells_, Column::Make(type, rows, 0, column.HasTexts(type)));
    const bool booleans = StorageOf(type) == ColumnStorage::kBooleans;
    const int64_t bytes = booleans ? rows : (rows + column.HasTexts(type)) * 8;
    std::memset(booleans ? static_cast<void*>(column.cells_.mutable_booleans())
                         : static_cast<void*>(column.cells_.mutable_integers()),
                0, static_cast<size_t>(bytes));
    if (column.HasTexts(type)) std::memset(column.cells_.mutable_missing(), 1, static_cast<size_t>(rows));
    return column;
  }

  // False if the text, which may be quoted, is no cell of the column. A row that is not `wanted` is looked at
  // all the same.
  bool Add(int64_t row, bool wanted, std::string_view text) {
    if (!IsQuoted(text)) return AddContent(row, wanted, text);
    std::string room;
    return AddContent(row, wanted, WithoutQuotes(text, &room));
  }

  // Between the two times.
  Status MakeRoomForTexts() {
    if (!HasTexts(cells_.type())) return OkStatus();
    const int64_t rows = cells_.rows();
    int64_t* const offsets = cells_.mutable_offsets();
    for (int64_t i = 0; i < rows; ++i) offsets[i + 1] += offsets[i];
    const bool may_miss = std::count(cells_.missing(), cells_.missing() + rows, 1) > 0;
    HEDDLE_ASSIGN_OR_RETURN(Column whole, Column::Make(cells_.type(), rows, offsets[rows], may_miss));
    std::copy_n(offsets, rows + 1, whole.mutable_offsets());
    if (may_miss) std::copy_n(cells_.missing(), rows, whole.mutable_missing());
    cells_ = std::move(whole);
    return OkStatus();
  }

  // Of a text, which may be quoted.
  void AddText(int64_t row, std::string_view text) {
    if (!HasTexts(cells_.type())) return;
    if (!IsQuoted(text)) return PutText(row, text);
    std::string room;
    PutText(row, WithoutQuotes(text, &room));
  }

  Column Finish() && { return std::move(cells_); }

 private:
  static bool HasTexts(ColumnType type) { return StorageOf(type) == ColumnStorage::kTexts; }

  bool AddContent(int64_t row, bool wanted, std::string_view text) {
    const ColumnType type = cells_.type();
    const std::string_view word = Trim(text);
    switch (cells_.storage()) {
      case ColumnStorage::kDoubles: {
        const std::optional<double> x = word.empty() ? 0 : DoubleInText(word, type);
        if (x && wanted) cells_.mutable_doubles()[row] = *x;
        return x.has_value();
      }
      case ColumnStorage::kIntegers: {
        const std::optional<int64_t> x = word.empty() ? 0 : IntegerInText(word, type);
        if (x && wanted) cells_.mutable_integers()[row] = *x;
        return x.has_value();
      }
      case ColumnStorage::kBooleans: {
        const std::optional<bool> x = word.empty() ? false : BooleanInText(word);
        if (x && wanted) cells_.mutable_booleans()[row] = *x;
        return x.has_value();
      }
      case ColumnStorage::kTexts:
        if (type == ColumnType::kCharacter && !IsOneCharacter(text)) return false;
        if (wanted) {
          cells_.mutable_offsets()[row + 1] = static_cast<int64_t>(text.size());
          cells_.mutable_missing()[row] = 0;
        }
        return true;
    }
    return false;
  }

  void PutText(int64_t row, std::string_view text) {
    const int64_t begin = cells_.offsets()[row], end = cells_.offsets()[row + 1];
    // One that is written over may be longer.
    std::copy_n(text.data(), std::min<int64_t>(end - begin, static_cast<int64_t>(text.size())),
                cells_.mutable_texts() + begin);
  }

  Column cells_;
};

// The lengths of a column took less memory than a column does that is still to be made: nobody would use it
// again. It is given back in pieces, since looking for it costs as much as thousands of small columns.
Status MakeRoomForTexts(std::vector<ScatteredColumn>* columns, int64_t rows) {
  constexpr int64_t kPieceBytes = int64_t{4} << 20;
  int64_t unused_bytes = 0;
  for (ScatteredColumn& column : *columns) {
    HEDDLE_RETURN_IF_ERROR(column.MakeRoomForTexts());
    unused_bytes += (rows + 1) * 9;
    if (unused_bytes < kPieceBytes) continue;
    BlockPool::Process().Trim(unused_bytes);
    unused_bytes = 0;
  }
  return OkStatus();
}

}  // namespace

Result<FileSummary> SummarizeTextFrame(const ReadOptions& options, const TextFile& text, ChunkLooks&) {
  FileSummary summary;
  auto schema = std::make_shared<Schema>();
  if (!options.schema.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(schema->types, ParseSchema(options.schema));
  }
  // One type may be that of all columns.
  const int64_t typed = schema->columns() > 1 ? schema->columns() : kUnknown;
  if (typed != kUnknown && options.columns != kUnknown && typed != options.columns)
    return DataLoss("cannot read '{}': the schema has {} types, the file has {} columns", options.path, typed,
                    options.columns);
  summary.shape = {options.rows, options.columns == kUnknown ? typed : options.columns};
  HEDDLE_ASSIGN_OR_RETURN(const CellRecords records, CutCellRecords(options, text));
  std::vector<Shape> of_chunks(records.chunks.offsets.size(), Shape{0, 0});
  HEDDLE_RETURN_IF_ERROR(VisitFrameCells(options, summary.shape, text, records, ChunkOrder::kAny,
                                         [&](size_t chunk, const FrameCell& cell) {
                                           Shape& largest = of_chunks[chunk];
                                           largest.rows = std::max(largest.rows, cell.row + 1);
                                           largest.columns = std::max(largest.columns, cell.column + 1);
                                           return OkStatus();
                                         }));
  Shape largest{0, 0};
  for (const Shape& of_chunk : of_chunks)
    largest = {std::max(largest.rows, of_chunk.rows), std::max(largest.columns, of_chunk.columns)};
  if (summary.shape.rows == kUnknown) summary.shape.rows = largest.rows;
  if (summary.shape.columns == kUnknown) summary.shape.columns = largest.columns;
  if (summary.shape.Cells() == 0)
    return DataLoss("cannot read '{}': it holds no cells and its size is not known", options.path)
        .WithNote("give rows= and cols=");
  const ColumnType type = schema->types.empty() ? ColumnType::kString : schema->types[0];
  if (typed == kUnknown) schema->types.assign(static_cast<size_t>(summary.shape.columns), type);
  summary.schema = std::move(schema);
  return summary;
}

Result<Frame> ReadTextFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                            int64_t row_begin, int64_t row_end) {
  const int64_t rows = row_end - row_begin;
  HEDDLE_ASSIGN_OR_RETURN(const CellRecords records, CutCellRecords(options, text));
  const auto is_wanted = [&](const FrameCell& cell) { return cell.row >= row_begin && cell.row < row_end; };
  const auto is_missing = [&](const FrameCell& cell) { return IsMissing(Trim(cell.text), options); };
  std::vector<ScatteredColumn> columns;
  const auto make_columns = [&]() -> Status {
    columns.clear();
    for (const ColumnType type : summary.schema->types) {
      HEDDLE_ASSIGN_OR_RETURN(ScatteredColumn column, ScatteredColumn::Make(type, rows));
      columns.push_back(std::move(column));
    }
    return OkStatus();
  };
  // Every rank looks at all cells, so that all tell the same fault. `puts(cell)` says whether a cell is put
  // into its place.
  const auto put_cells = [&](ChunkOrder order, const auto& puts) {
    return VisitFrameCells(options, summary.shape, text, records, order, [&](size_t, const FrameCell& cell) {
      const auto j = static_cast<size_t>(cell.column);
      if (is_missing(cell) || columns[j].Add(cell.row - row_begin, is_wanted(cell) && puts(cell), cell.text))
        return OkStatus();
      return DataLoss("cannot read '{}': line {}: '{}' is no {}", options.path, cell.line,
                      ShownInLine(cell.text, 40), Name(summary.schema->types[j]))
          .WithNote("schema= says the types of the columns; STRING takes any text");
    });
  };
  HEDDLE_RETURN_IF_ERROR(make_columns());
  HEDDLE_ASSIGN_OR_RETURN(CellSet met, CellSet::Make(rows, summary.shape.columns, options.path));
  std::atomic<bool> any_twice = false;
  HEDDLE_RETURN_IF_ERROR(put_cells(ChunkOrder::kAny, [&](const FrameCell& cell) {
    const bool is_first = met.Add(cell.row - row_begin, cell.column);
    if (!is_first) any_twice = true;
    return is_first;
  }));
  ChunkOrder order = ChunkOrder::kAny;
  if (any_twice) {
    order = ChunkOrder::kOfFile;
    HEDDLE_RETURN_IF_ERROR(make_columns());
    HEDDLE_RETURN_IF_ERROR(put_cells(order, [](const FrameCell&) { return true; }));
  }
  HEDDLE_RETURN_IF_ERROR(MakeRoomForTexts(&columns, rows));
  HEDDLE_RETURN_IF_ERROR(
      VisitFrameCells(options, summary.shape, text, records, order, [&](size_t, const FrameCell& cell) {
        if (is_wanted(cell) && !is_missing(cell))
          columns[static_cast<size_t>(cell.column)].AddText(cell.row - row_begin, cell.text);
        return OkStatus();
      }));
  std::vector<Column> cells;
  for (ScatteredColumn& column : columns) cells.push_back(std::move(column).Finish());
  return Frame(summary.schema, std::move(cells));
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/arrow_table.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/memory/counted_heap.h"
#include "core/text/utf8.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/io/formats/libraries/arrow_open.h"
#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kRowsOfGroup = int64_t{1} << 17;
constexpr int64_t kCellsOfGroup = int64_t{1} << 22;

// Rows [from, to) of a column of a group.
Result<Column> CutColumn(const ModuleColumn& cells, ColumnType type, int64_t from, int64_t to) {
  const bool texts = StorageOf(type) == ColumnStorage::kTexts;
  const auto end_of = [&](int64_t row) {
    return row == 0 ? 0 : cells.integers[static_cast<size_t>(row) - 1];
  };
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(type, to - from, texts ? end_of(to) - end_of(from) : 0,
                                                      !cells.missing.empty()));
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      std::copy(cells.doubles.begin() + from, cells.doubles.begin() + to, column.mutable_doubles());
      break;
    case ColumnStorage::kIntegers:
      std::copy(cells.integers.begin() + from, cells.integers.begin() + to, column.mutable_integers());
      break;
    case ColumnStorage::kBooleans:
      std::copy(cells.booleans.begin() + from, cells.booleans.begin() + to, column.mutable_booleans());
      break;
    case ColumnStorage::kTexts:
      for (int64_t row = from; row <= to; ++row)
        column.mutable_offsets()[row - from] = end_of(row) - end_of(from);
      std::copy(cells.texts.begin() + end_of(from), cells.texts.begin() + end_of(to), column.mutable_texts());
      break;
  }
  if (!cells.missing.empty())
    std::copy(cells.missing.begin() + from, cells.missing.begin() + to, column.mutable_missing());
  return column;
}

// Groups of a table that have rows of [begin, end): from the first one to before the last one.
struct GroupRange {
  size_t first = 0, last = 0;
};

GroupRange GroupsOf(const std::vector<int64_t>& begins, int64_t begin, int64_t end) {
  if (begin >= end) return {};
  const auto after = std::upper_bound(begins.begin(), begins.end(), begin);
  const auto behind = std::lower_bound(after, begins.end(), end);
  return {static_cast<size_t>(after - begins.begin()) - 1, static_cast<size_t>(behind - begins.begin())};
}

// Calls take(group, column, cells, from, to) for the columns of the groups that have rows of
// [row_begin, row_end), several groups at once; those are rows [from, to) of the group.
template <typename Take>
Status VisitGroups(const ReadOptions& options, const ArrowTable& table, int64_t row_begin, int64_t row_end,
                   bool as_doubles, const Take& take) {
  const std::vector<int64_t>& begins = table.begins();
  const GroupRange groups = GroupsOf(begins, row_begin, row_end);
  FirstFailure failure;
  ParallelFor(static_cast<int64_t>(groups.last - groups.first), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      if (IsCancelled(options.cancelled)) return;
      const size_t g = groups.first + static_cast<size_t>(i);
      const int64_t from = std::max(row_begin, begins[g]), to = std::min(row_end, begins[g + 1]);
      if (from >= to) continue;
      const Status status = WithArrow(options.path, [&] {
        return table.Read(g, as_doubles, [&](size_t column, const ModuleColumn& cells) {
          return take(g, column, cells, from - begins[g], to - begins[g]);
        });
      });
      if (!status.ok()) return failure.Add(static_cast<int64_t>(g), status);
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

Status Write(const ArrowSource& source, const WriteOptions& options, const ByteSink& sink) {
  const Result<const ArrowModule*> module = OpenArrowModule();
  if (!module.ok())
    return ArrowIsMissing("write", fmt::format("in format {}", Name(options.format)), Name(options.format),
                          module.status());
  const Status status = (*module)->write(ArrowKindOf(options.format), source, [&](std::string_view bytes) {
    if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
    return sink(bytes);
  });
  return MemoryWasRefused(status) ? HeapRefused("write", false) : status;
}

ModuleColumn CellsOf(const Column& column) {
  ModuleColumn cells;
  const int64_t rows = column.rows();
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      cells.doubles.resize(static_cast<size_t>(rows));
      std::transform(column.doubles(), column.doubles() + rows, cells.doubles.begin(), CanonicalCell);
      break;
    case ColumnStorage::kIntegers: cells.integers.assign(column.integers(), column.integers() + rows); break;
    case ColumnStorage::kBooleans: cells.booleans.assign(column.booleans(), column.booleans() + rows); break;
    case ColumnStorage::kTexts:
      cells.texts.assign(column.texts() + column.offsets()[0], static_cast<size_t>(column.text_bytes()));
      for (int64_t i = 0; i < rows; ++i)
        cells.integers.push_back(column.offsets()[i + 1] - column.offsets()[0]);
      break;
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (!column.IsMissing(i)) continue;
    cells.missing.resize(static_cast<size_t>(rows), 0);
    cells.missing[static_cast<size_t>(i)] = 1;
  }
  return cells;
}

// Arrow's texts and names are UTF-8.
Status CheckTexts(const Frame& frame, std::string_view format) {
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (!IsUtf8(frame.schema()->NameOf(j)))
      return FailedPrecondition("write: the name of column {} is no UTF-8, which {} cannot hold", j + 1,
                                format)
          .WithNote("format binary holds any bytes");
    const Column column = frame.column(j);
    if (column.storage() != ColumnStorage::kTexts) continue;
    for (int64_t i = 0; i < column.rows(); ++i)
      if (!IsUtf8(column.TextAt(i)))
        return FailedPrecondition("write: row {}, column {}: the text is no UTF-8, which {} cannot hold",
                                  i + 1, j + 1, format)
            .WithNote("format binary holds any bytes");
  }
  return OkStatus();
}

// A matrix has numbers only.
Status CheckNumbers(const ReadOptions& options, const ArrowTable& table, size_t column) {
  if (StorageOf(table.schema().types[column]) != ColumnStorage::kTexts) return OkStatus();
  const std::string name = ShownInLine(table.schema().NameOf(static_cast<int64_t>(column)), 40);
  const std::string& type = table.types()[column];
  const bool is_text = type.find("string") != std::string::npos;
  return DataLoss("cannot read '{}': column '{}' holds {}", options.path, name,
                  is_text ? "texts" : ShownInLine(type, 80) + ", which are read as texts")
      .WithNote("say data_type=\"frame\"; transformencode makes numbers of texts");
}

bool HasChanged(const OpenedArrow& opened, const FileSummary& summary) {
  return opened.file->size() != summary.text_bytes || opened.table->begins() != summary.chunk_rows;
}

int64_t RowsOfGroup(int64_t columns) {
  return std::clamp<int64_t>(kCellsOfGroup / std::max<int64_t>(1, columns), 1, kRowsOfGroup);
}

// Columns of an index of pandas are not read.
std::string IndexLeftOut(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + ShownInLine(name, 40) + "'";
  return fmt::format(
      "the index of pandas is left out, column{} {}; reset_index() before the file is written keeps it",
      names.size() == 1 ? "" : "s", list);
}

}  // namespace

Result<FileSummary> SummarizeArrow(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedArrow opened, OpenArrowTable(options, files, {}));
  auto schema = std::make_shared<Schema>(opened.table->schema());
  FileSummary summary;
  summary.shape = {opened.rows(), schema->columns()};
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.text_bytes = opened.file->size();
  summary.chunk_rows = opened.table->begins();
  for (size_t g = 0; g + 1 < summary.chunk_rows.size(); ++g)
    summary.rows_of_group =
        std::max(summary.rows_of_group, summary.chunk_rows[g + 1] - summary.chunk_rows[g]);
  if (!opened.table->left_out().empty()) summary.warnings.push_back(IndexLeftOut(opened.table->left_out()));
  if (AreCounted(schema->names)) schema->names.clear();
  if (options.data_type != DataType::kFrame) {
    for (int64_t j = 0; j < schema->columns(); ++j)
      HEDDLE_RETURN_IF_ERROR(CheckNumbers(options, *opened.table, static_cast<size_t>(j)));
    summary.table = TableOfMatrix(std::move(schema));
    summary.stored = options.nonzeros;
    summary.format = ChooseFormat(summary.shape, summary.stored);
    return summary;
  }
  HEDDLE_RETURN_IF_ERROR(CheckSaidTypes(options, *schema));
  summary.schema = std::move(schema);
  return summary;
}

Result<Matrix> ReadArrowMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                               int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedArrow opened, OpenArrowTable(options, files, summary.chunk_rows));
  const int64_t columns = summary.shape.columns;
  if (HasChanged(opened, summary) || opened.table->schema().columns() != columns) return ItChanged(options);
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(row_end - row_begin, columns));
  const std::vector<int64_t>& begins = summary.chunk_rows;
  HEDDLE_RETURN_IF_ERROR(VisitGroups(
      options, *opened.table, row_begin, row_end, /*as_doubles=*/true,
      [&](size_t group, size_t column, const ModuleColumn& cells, int64_t from, int64_t to) {
        double* out = matrix.mutable_data() + (begins[group] + from - row_begin) * columns + column;
        for (int64_t i = from; i < to; ++i, out += columns) {
          const auto at = static_cast<size_t>(i);
          // A number that is missing is none, as other programs have it.
          const bool is_missing = !cells.missing.empty() && cells.missing[at] != 0;
          *out = is_missing ? std::numeric_limits<double>::quiet_NaN() : cells.doubles[at];
        }
        return OkStatus();
      }));
  return summary.format == Format::kSparse ? ToSparse(matrix) : Result<Matrix>(std::move(matrix));
}

Result<Frame> ReadArrowFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                             int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedArrow opened, OpenArrowTable(options, files, summary.chunk_rows));
  const std::vector<ColumnType>& types = summary.schema->types;
  if (HasChanged(opened, summary) || opened.table->schema().types != types) return ItChanged(options);
  const GroupRange groups = GroupsOf(summary.chunk_rows, row_begin, row_end);
  std::vector<std::vector<Column>> pieces(groups.last - groups.first, std::vector<Column>(types.size()));
  HEDDLE_RETURN_IF_ERROR(VisitGroups(
      options, *opened.table, row_begin, row_end, /*as_doubles=*/false,
      [&](size_t group, size_t column, const ModuleColumn& cells, int64_t from, int64_t to) -> Status {
        HEDDLE_ASSIGN_OR_RETURN(pieces[group - groups.first][column],
                                CutColumn(cells, types[column], from, to));
        return OkStatus();
      }));
  std::vector<Frame> frames;
  for (std::vector<Column>& columns : pieces)
    if (!columns.empty() && columns[0].rows() > 0) frames.emplace_back(summary.schema, std::move(columns));
  if (!frames.empty()) return StackRows(frames);
  std::vector<Column> columns;
  for (const ColumnType type : types) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(type, 0, 0, false));
    if (column.storage() == ColumnStorage::kTexts) column.mutable_offsets()[0] = 0;
    columns.push_back(std::move(column));
  }
  return Frame(summary.schema, std::move(columns));
}

Status WriteArrowMatrix(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink) {
  ArrowSource source;
  source.schema.types.assign(static_cast<size_t>(matrix.columns()), ColumnType::kFloat64);
  source.schema.names = CountedNames(matrix.columns());
  source.rows = matrix.rows();
  source.rows_of_group = RowsOfGroup(matrix.columns());
  source.cells = [&](int64_t column, int64_t begin, int64_t end) {
    ModuleColumn cells;
    cells.doubles.resize(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i)
      cells.doubles[static_cast<size_t>(i - begin)] = CanonicalCell(matrix.At(i, column));
    return cells;
  };
  return Write(source, options, sink);
}

Status WriteArrowFrame(const Frame& frame, const WriteOptions& options, const ByteSink& sink) {
  HEDDLE_RETURN_IF_ERROR(CheckTexts(frame, Name(options.format)));
  ArrowSource source;
  source.schema = *frame.schema();
  if (source.schema.names.empty()) source.schema.names = CountedNames(frame.columns());
  source.rows = frame.rows();
  source.rows_of_group = RowsOfGroup(frame.columns());
  source.cells = [&](int64_t column, int64_t begin, int64_t end) {
    return CellsOf(frame.column(column).Rows(begin, end));
  };
  return Write(source, options, sink);
}

}  // namespace heddle::ops

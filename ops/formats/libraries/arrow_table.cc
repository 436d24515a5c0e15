// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/libraries/arrow_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/text/utf8.h"
#include "ops/formats/libraries/format_module.h"
#include "ops/formats/options.h"
#include "ops/formats/plain_cells.h"
#include "ops/formats/readers.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/kernel.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kRowsOfGroup = int64_t{1} << 17;
constexpr int64_t kCellsOfGroup = int64_t{1} << 22;

Status IsMissing(std::string_view verb, std::string_view what, std::string_view format, const Status& why) {
  const Status fault =
      Unimplemented("cannot {} {}: this Heddle was built without the Arrow library, which format {} needs",
                    verb, what, format)
          .WithNote(
              "build it where find_package(Arrow) and find_package(Parquet) succeed, or export the data: "
              "pandas.read_parquet(FILE).to_csv(FILE, index=False) makes a csv file");
  return why.code() == StatusCode::kNotFound ? fault : fault.WithNote(why.message());
}

ArrowKind KindOf(FileFormat format) {
  return format == FileFormat::kParquet ? ArrowKind::kParquet : ArrowKind::kArrow;
}

struct OpenedTable {
  std::shared_ptr<const InputFile> file;
  std::unique_ptr<ArrowTable> table;
  int64_t rows() const { return table->begins().back(); }
};

Result<OpenedTable> OpenTable(const ReadOptions& options, Files& files) {
  OpenedTable opened;
  HEDDLE_ASSIGN_OR_RETURN(opened.file, OpenOneFile(options, files));
  const Result<const ArrowModule*> module = OpenArrowModule();
  if (!module.ok())
    return IsMissing("read", fmt::format("'{}'", options.path), Name(*options.format), module.status());
  const ModuleInput input{.path = options.path,
                          .size = opened.file->size(),
                          .read = [file = opened.file](int64_t begin, int64_t count, char* out) -> Status {
                            CountedBytes buffer;
                            HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes,
                                                    file->Read(begin, count, &buffer));
                            std::copy(bytes.begin(), bytes.end(), out);
                            return OkStatus();
                          }};
  HEDDLE_ASSIGN_OR_RETURN(opened.table, (*module)->open(KindOf(*options.format), input));
  return opened;
}

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

// Calls take(group, columns, from, to) for the groups that have rows of [row_begin, row_end), several at
// once; those are rows [from, to) of the group.
template <typename Take>
Status VisitGroups(const ReadOptions& options, const ArrowTable& table, int64_t row_begin, int64_t row_end,
                   const Take& take) {
  const std::vector<int64_t>& begins = table.begins();
  FirstFailure failure;
  ParallelFor(static_cast<int64_t>(begins.size()) - 1, 1, [&](int64_t first, int64_t last) {
    for (auto g = static_cast<size_t>(first); g < static_cast<size_t>(last); ++g) {
      if (IsCancelled(options.cancelled)) return;
      const int64_t from = std::max(row_begin, begins[g]), to = std::min(row_end, begins[g + 1]);
      if (from >= to) continue;
      const Result<std::vector<ModuleColumn>> columns = table.Read(g);
      const Status status =
          columns.ok() ? take(g, *columns, from - begins[g], to - begins[g]) : columns.status();
      if (!status.ok()) return failure.Add(static_cast<int64_t>(g), status);
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

double NumberAt(const ModuleColumn& column, ColumnType type, size_t row) {
  // A number that is missing is none, as other programs have it.
  if (!column.missing.empty() && column.missing[row] != 0) return std::numeric_limits<double>::quiet_NaN();
  switch (StorageOf(type)) {
    case ColumnStorage::kDoubles: return column.doubles[row];
    case ColumnStorage::kIntegers: return static_cast<double>(column.integers[row]);
    default: return column.booleans[row];
  }
}

Status Write(const ArrowSource& source, const WriteOptions& options, const ByteSink& sink) {
  const Result<const ArrowModule*> module = OpenArrowModule();
  if (!module.ok())
    return IsMissing("write", fmt::format("in format {}", Name(options.format)), Name(options.format),
                     module.status());
  return (*module)->write(KindOf(options.format), source, [&](std::string_view bytes) {
    if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
    return sink(bytes);
  });
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

int64_t RowsOfGroup(int64_t columns) {
  return std::clamp<int64_t>(kCellsOfGroup / std::max<int64_t>(1, columns), 1, kRowsOfGroup);
}

}  // namespace

Result<FileSummary> SummarizeArrow(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedTable opened, OpenTable(options, files));
  auto schema = std::make_shared<Schema>(opened.table->schema());
  FileSummary summary;
  summary.shape = {opened.rows(), schema->columns()};
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.text_bytes = opened.file->size();
  summary.chunk_rows = opened.table->begins();
  if (options.data_type != DataType::kFrame) {
    for (int64_t j = 0; j < schema->columns(); ++j)
      if (StorageOf(schema->types[static_cast<size_t>(j)]) == ColumnStorage::kTexts)
        return DataLoss("cannot read '{}': column '{}' holds texts", options.path,
                        ShownInLine(schema->NameOf(j), 40))
            .WithNote("say data_type=\"frame\"; transformencode makes numbers of texts");
    summary.stored = options.nonzeros;
    summary.format = ChooseFormat(summary.shape, summary.stored);
    return summary;
  }
  if (!options.schema.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ColumnType> said,
                            ColumnTypesOf(options, static_cast<size_t>(schema->columns())));
    if (said != schema->types)
      return DataLoss("cannot read '{}': its columns have the types {}, the schema says others", options.path,
                      Schema{schema->types, {}}.ToText());
  }
  if (AreCounted(schema->names)) schema->names.clear();
  summary.schema = std::move(schema);
  return summary;
}

Result<Matrix> ReadArrowMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                               int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedTable opened, OpenTable(options, files));
  const Schema& schema = opened.table->schema();
  const int64_t columns = summary.shape.columns;
  if (opened.file->size() != summary.text_bytes || Shape{opened.rows(), schema.columns()} != summary.shape)
    return ItChanged(options);
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(row_end - row_begin, columns));
  HEDDLE_RETURN_IF_ERROR(VisitGroups(
      options, *opened.table, row_begin, row_end,
      [&](size_t group, const std::vector<ModuleColumn>& cells, int64_t from, int64_t to) {
        double* const out = matrix.mutable_data() + (opened.table->begins()[group] - row_begin) * columns;
        for (size_t j = 0; j < cells.size(); ++j)
          for (int64_t i = from; i < to; ++i)
            out[i * columns + static_cast<int64_t>(j)] =
                NumberAt(cells[j], schema.types[j], static_cast<size_t>(i));
        return OkStatus();
      }));
  return summary.format == Format::kSparse ? ToSparse(matrix) : Result<Matrix>(std::move(matrix));
}

Result<Frame> ReadArrowFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                             int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const OpenedTable opened, OpenTable(options, files));
  if (opened.file->size() != summary.text_bytes || opened.rows() != summary.shape.rows ||
      opened.table->schema().types != summary.schema->types)
    return ItChanged(options);
  std::vector<Frame> pieces(opened.table->begins().size());
  HEDDLE_RETURN_IF_ERROR(VisitGroups(
      options, *opened.table, row_begin, row_end,
      [&](size_t group, const std::vector<ModuleColumn>& cells, int64_t from, int64_t to) -> Status {
        std::vector<Column> columns;
        for (size_t j = 0; j < cells.size(); ++j) {
          HEDDLE_ASSIGN_OR_RETURN(Column column, CutColumn(cells[j], summary.schema->types[j], from, to));
          columns.push_back(std::move(column));
        }
        pieces[group] = Frame(summary.schema, std::move(columns));
        return OkStatus();
      }));
  std::erase_if(pieces, [](const Frame& piece) { return piece.rows() == 0; });
  if (!pieces.empty()) return StackRows(pieces);
  std::vector<Column> columns;
  for (const ColumnType type : summary.schema->types) {
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

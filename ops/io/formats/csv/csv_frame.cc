// SPDX-License-Identifier: Apache-2.0
// Frames in csv files (language reference 4.1).
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/frame/text_column.h"
#include "ops/io/formats/csv/csv_frame_rows.h"
#include "ops/io/formats/csv/quoted_fields.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"

namespace heddle::ops {
namespace {

std::vector<std::string_view> FieldsOf(std::string_view record, const ReadOptions& options) {
  std::vector<std::string_view> fields;
  CutQuotedFields(record, options, &fields);
  return fields;
}

// SystemDS writes what it knows of the columns of a frame before the rows, in lines of their own: values that
// replace missing cells, and numbers of distinct ones. They are no rows.
constexpr std::string_view kReplacements = "#Meta\u00b7MV", kDistinctCounts = "#Meta\u00b7ND";

bool TellsOf(std::string_view kind, std::string_view line, const ReadOptions& options) {
  return line.starts_with(kind) && line.substr(kind.size()).starts_with(options.separator);
}

// Lines before the first row: names, and what is told of the columns.
struct Preface {
  std::vector<std::string> names;
  // Of each column, what transformencode put in the place of missing cells ("cell\u00b7impute"), as metadata
  // have it in their last row; empty where it is not known of any column.
  std::vector<std::optional<std::string>> imputed;
  int64_t end = 0;        // Where the first row begins.
  std::string first_row;  // The first that is not blank, without its line end; else empty.
};

std::vector<std::optional<std::string>> ImputedCells(std::string_view line, const ReadOptions& options) {
  std::vector<std::optional<std::string>> cells;
  std::string room;
  bool any = false;
  for (const std::string_view field :
       FieldsOf(line.substr(kReplacements.size() + options.separator.size()), options)) {
    cells.emplace_back();
    if (field == "null") continue;
    cells.back() = fmt::format("{}\u00b7impute", ContentOf(field, &room));
    any = true;
  }
  if (!any) cells.clear();
  return cells;
}

Result<Preface> ReadPreface(const ReadOptions& options, const TextFile& text) {
  Preface preface;
  const QuoteGrammar grammar = QuoteGrammar::OfFields(options);
  RecordReader records(text, grammar);
  std::string_view record;
  std::string room;
  if (options.header.value_or(false) && records.Next(&record)) {
    for (const std::string_view name : FieldsOf(record, options))
      preface.names.emplace_back(ContentOf(name, &room));
    preface.end = records.offset();
  }
  bool more = records.Next(&record);
  while (more && (TellsOf(kReplacements, record, options) || TellsOf(kDistinctCounts, record, options))) {
    if (TellsOf(kReplacements, record, options)) preface.imputed = ImputedCells(record, options);
    preface.end = records.offset();
    more = records.Next(&record);
  }
  if (more) preface.first_row = record;
  // A blank line is a missing cell of one column, or wrong: a line that is not blank tells how many there
  // are.
  while (more && IsBlankLine(record, options)) {
    more = records.Next(&record);
    if (more) preface.first_row = record;
  }
  HEDDLE_RETURN_IF_ERROR(records.status());
  return preface;
}

// True where the rows of the file are followed by one of the preface.
bool HasImputedRow(const Preface& preface, const Schema& schema) {
  return static_cast<int64_t>(preface.imputed.size()) == schema.columns() &&
         std::all_of(schema.types.begin(), schema.types.end(),
                     [](ColumnType type) { return type == ColumnType::kString; });
}

Result<Frame> ImputedRow(const Preface& preface, const std::shared_ptr<const Schema>& schema) {
  std::vector<Column> columns;
  for (const std::optional<std::string>& cell : preface.imputed) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn({&cell, 1}));
    columns.push_back(std::move(column));
  }
  return Frame(schema, std::move(columns));
}

// Blank lines at the end as rows: of one column each is a missing cell.
Status AddBlankRows(const ReadOptions& options, const TextFile& text, RecordChunks* chunks) {
  constexpr int64_t kMostBytes = 1 << 20;
  const int64_t most = options.rows == kUnknown ? std::numeric_limits<int64_t>::max() : options.rows;
  CountedBytes buffer;
  int64_t end = chunks->offsets.back();
  while (chunks->records.back() < most && end < text.size()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view rest,
                            text.Read(end, std::min(kMostBytes, text.size() - end), &buffer));
    int64_t rows = 0;
    size_t at = 0;
    for (; chunks->records.back() + rows < most; ++rows) {
      const size_t newline = rest.find('\n', at);
      if (newline == std::string_view::npos) break;
      at = newline + 1;
    }
    if (rows == 0) break;  // What is left is no line.
    end += static_cast<int64_t>(at);
    chunks->offsets.push_back(end);
    chunks->records.push_back(chunks->records.back() + rows);
    chunks->lines.push_back(chunks->lines.back() + rows);
  }
  return OkStatus();
}

}  // namespace

Result<FileSummary> SummarizeCsvFrame(const ReadOptions& options, const TextFile& text, ChunkLooks& looks) {
  FileSummary summary;
  HEDDLE_ASSIGN_OR_RETURN(Preface preface, ReadPreface(options, text));
  auto schema = std::make_shared<Schema>();
  schema->names = std::move(preface.names);
  const bool has_names = !schema->names.empty();
  const std::string_view separator = options.separator;
  HEDDLE_ASSIGN_OR_RETURN(RecordChunks chunks,
                          CutRecords(options, text, preface.end, QuoteGrammar::OfFields(options), looks,
                                     Trim(separator).empty() ? separator : std::string_view()));
  size_t columns = FieldsOf(preface.first_row, options).size();
  if (MayRowsBeBlank(columns) && schema->names.size() <= 1)
    HEDDLE_RETURN_IF_ERROR(AddBlankRows(options, text, &chunks));
  if (chunks.records.back() == 0) {
    if (options.rows != 0 || (!has_names && options.columns == kUnknown))
      return DataLoss("cannot read '{}': it holds no data{}", options.path,
                      has_names ? " but a line of names" : "");
    columns = has_names ? schema->names.size() : static_cast<size_t>(options.columns);
  }
  if (has_names && schema->names.size() != columns)
    return DataLoss("cannot read '{}': its first line has {} names, the next one {} fields", options.path,
                    schema->names.size(), columns);
  // Names that only count are none: in a part of the frame its columns are counted anew, as in SystemDS.
  if (AreCounted(schema->names)) schema->names.clear();
  HEDDLE_ASSIGN_OR_RETURN(schema->types, ColumnTypesOf(options, columns));
  summary.shape = {chunks.records.back(), static_cast<int64_t>(columns)};
  for (const auto& [name, said, found] : {std::tuple{"rows", options.rows, summary.shape.rows},
                                          std::tuple{"cols", options.columns, summary.shape.columns}})
    if (said != kUnknown && said != found)
      return DataLoss("cannot read '{}': {}={} was asked for, the file has {}", options.path, name, said,
                      found);
  if (HasImputedRow(preface, *schema)) ++summary.shape.rows;
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_rows = std::move(chunks.records);
  summary.chunk_lines = std::move(chunks.lines);
  summary.schema = std::move(schema);
  return summary;
}

Result<Frame> ReadCsvFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                           int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const Preface preface, ReadPreface(options, text));
  const int64_t records = summary.chunk_rows.back();
  HEDDLE_ASSIGN_OR_RETURN(Frame rows, ReadCsvFrameRows(options, summary, text, std::min(row_begin, records),
                                                       std::min(row_end, records)));
  if (row_begin == row_end || row_end <= records) return rows;
  HEDDLE_ASSIGN_OR_RETURN(Frame last, ImputedRow(preface, summary.schema));
  if (rows.rows() == 0) return last;
  const Frame pieces[] = {std::move(rows), std::move(last)};
  return StackRows(pieces);
}

}  // namespace heddle::ops

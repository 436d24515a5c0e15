// SPDX-License-Identifier: Apache-2.0
// Frames in csv files (language reference 4.1).
#include <algorithm>
#include <optional>

#include "ops/formats/csv/csv_frame_rows.h"
#include "ops/formats/csv/quoted_fields.h"
#include "ops/formats/fields.h"
#include "ops/formats/lines.h"
#include "ops/formats/options.h"
#include "ops/formats/readers.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/frame/text_column.h"

namespace heddle::ops {
namespace {

std::vector<std::string_view> FieldsOf(std::string_view line, const ReadOptions& options) {
  std::vector<std::string_view> fields;
  CutQuotedFields(line, options, &fields);
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
  int64_t lines = 0;
  int64_t end = 0;        // Where the first row begins.
  std::string first_row;  // Without its line end; empty where there is none.
};

std::vector<std::optional<std::string>> ImputedCells(std::string_view line, const ReadOptions& options) {
  std::vector<std::optional<std::string>> cells;
  bool any = false;
  for (const std::string_view field :
       FieldsOf(line.substr(kReplacements.size() + options.separator.size()), options)) {
    cells.emplace_back();
    if (field == "null") continue;
    cells.back() = fmt::format("{}\u00b7impute", Unquote(field));
    any = true;
  }
  if (!any) cells.clear();
  return cells;
}

Result<Preface> ReadPreface(const ReadOptions& options, const TextFile& text) {
  Preface preface;
  LineReader lines(text);
  std::string_view line;
  if (options.header.value_or(false) && lines.Next(&line)) {
    for (const std::string_view name : FieldsOf(line, options)) preface.names.emplace_back(Unquote(name));
    ++preface.lines;
    preface.end = lines.offset();
  }
  bool more = lines.Next(&line);
  while (more && (TellsOf(kReplacements, line, options) || TellsOf(kDistinctCounts, line, options))) {
    if (TellsOf(kReplacements, line, options)) preface.imputed = ImputedCells(line, options);
    ++preface.lines;
    preface.end = lines.offset();
    more = lines.Next(&line);
  }
  HEDDLE_RETURN_IF_ERROR(lines.status());
  if (more) preface.first_row = line;
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

}  // namespace

Result<FileSummary> SummarizeCsvFrame(const ReadOptions& options, const TextFile& text) {
  FileSummary summary;
  HEDDLE_ASSIGN_OR_RETURN(Preface preface, ReadPreface(options, text));
  auto schema = std::make_shared<Schema>();
  schema->names = std::move(preface.names);
  const bool has_names = !schema->names.empty();
  const std::string_view separator = options.separator;
  HEDDLE_ASSIGN_OR_RETURN(
      LineChunks chunks,
      CutLines(text, preface.end, Trim(separator).empty() ? separator : std::string_view()));
  if (chunks.lines.back() == 0)
    return DataLoss("cannot read '{}': it holds no data{}", options.path,
                    has_names ? " but a line of names" : "");
  const size_t columns = FieldsOf(preface.first_row, options).size();
  if (has_names && schema->names.size() != columns)
    return DataLoss("cannot read '{}': its first line has {} names, the next one {} fields", options.path,
                    schema->names.size(), columns);
  // Names that only count are none: in a part of the frame its columns are counted anew, as in SystemDS.
  if (AreCounted(schema->names)) schema->names.clear();
  HEDDLE_ASSIGN_OR_RETURN(schema->types, ColumnTypesOf(options, columns));
  summary.shape = {chunks.lines.back(), static_cast<int64_t>(columns)};
  for (const auto& [name, said, found] : {std::tuple{"rows", options.rows, summary.shape.rows},
                                          std::tuple{"cols", options.columns, summary.shape.columns}})
    if (said != kUnknown && said != found)
      return DataLoss("cannot read '{}': {}={} was asked for, the file has {}", options.path, name, said,
                      found);
  if (HasImputedRow(preface, *schema)) ++summary.shape.rows;
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_rows = std::move(chunks.lines);
  summary.schema = std::move(schema);
  return summary;
}

Result<Frame> ReadCsvFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                           int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const Preface preface, ReadPreface(options, text));
  const int64_t lines = summary.chunk_rows.back();
  HEDDLE_ASSIGN_OR_RETURN(Frame rows, ReadCsvFrameRows(options, summary, text, preface.lines + 1,
                                                       std::min(row_begin, lines), std::min(row_end, lines)));
  if (row_begin == row_end || row_end <= lines) return rows;
  HEDDLE_ASSIGN_OR_RETURN(Frame last, ImputedRow(preface, summary.schema));
  if (rows.rows() == 0) return last;
  const Frame pieces[] = {std::move(rows), std::move(last)};
  return StackRows(pieces);
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
// Frames in csv files (language reference 4.1).
#include <algorithm>
#include <optional>

#include "core/text/utf8.h"
#include "ops/formats/fields.h"
#include "ops/formats/frame_cells.h"
#include "ops/formats/lines.h"
#include "ops/formats/options.h"
#include "ops/formats/read_chunks.h"
#include "ops/formats/readers.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/frame/text_column.h"
#include "ops/kernel.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

// The fields of a line, one after the other, without blanks around them. A field that begins with a quote
// ends at the first separator behind the next quote, and keeps both; two quotes inside are one of its
// characters.
class QuotedFieldCutter {
 public:
  QuotedFieldCutter(std::string_view line, std::string_view separator) : rest_(line), separator_(separator) {}

  bool Next(std::string_view* field) {
    if (!more_) return false;
    const size_t end = EndOfField();
    *field = Trim(rest_.substr(0, end));
    more_ = end != std::string_view::npos;
    if (more_) rest_.remove_prefix(end + separator_.size());
    return true;
  }

 private:
  size_t EndOfField() const {
    size_t begin = 0;
    while (begin < rest_.size() && IsBlank(rest_[begin]) && !rest_.substr(begin).starts_with(separator_))
      ++begin;
    if (begin == rest_.size() || rest_[begin] != '"') return rest_.find(separator_);
    size_t quote = rest_.find('"', begin + 1);
    while (quote != std::string_view::npos && rest_.substr(quote + 1).starts_with('"'))
      quote = rest_.find('"', quote + 2);
    if (quote != std::string_view::npos) return rest_.find(separator_, quote + 1);
    return rest_.find(separator_, begin);  // A quote that nothing closes is a character like any other.
  }

  std::string_view rest_;
  const std::string_view separator_;
  bool more_ = true;
};

std::vector<std::string_view> FieldsOf(std::string_view line, const ReadOptions& options) {
  std::vector<std::string_view> fields;
  QuotedFieldCutter cutter(LineBody(line, options), options.separator);
  for (std::string_view field; cutter.Next(&field);) fields.push_back(field);
  return fields;
}

// Cells of one column as they are read, one after the other.
class ColumnReader {
 public:
  explicit ColumnReader(ColumnType type) : type_(type) {
    if (StorageOf(type_) == ColumnStorage::kTexts) offsets_.push_back(0);
  }

  // False if the text is no cell of the column. An empty one, and one that means so, is missing where texts
  // are, and 0 or FALSE elsewhere.
  bool Add(std::string_view text, bool missing) {
    missing = missing || text.empty();
    switch (StorageOf(type_)) {
      case ColumnStorage::kDoubles: {
        const std::optional<double> x = missing ? 0 : DoubleInText(text, type_);
        if (x) doubles_.push_back(*x);
        return x.has_value();
      }
      case ColumnStorage::kIntegers: {
        const std::optional<int64_t> x = missing ? 0 : IntegerInText(text, type_);
        if (x) integers_.push_back(*x);
        return x.has_value();
      }
      case ColumnStorage::kBooleans: {
        const std::optional<bool> x = missing ? false : BooleanInText(text);
        if (x) booleans_.push_back(*x);
        return x.has_value();
      }
      case ColumnStorage::kTexts:
        if (!missing && type_ == ColumnType::kCharacter && !IsOneCharacter(text)) return false;
        if (!missing) texts_.append(text);
        offsets_.push_back(static_cast<int64_t>(texts_.size()));
        missing_.push_back(missing);
        any_missing_ = any_missing_ || missing;
        return true;
    }
    return false;
  }

  Result<Column> Finish(int64_t rows) const {
    HEDDLE_ASSIGN_OR_RETURN(Column column,
                            Column::Make(type_, rows, static_cast<int64_t>(texts_.size()), any_missing_));
    std::copy(doubles_.begin(), doubles_.end(), column.mutable_doubles());
    std::copy(integers_.begin(), integers_.end(), column.mutable_integers());
    std::copy(booleans_.begin(), booleans_.end(), column.mutable_booleans());
    std::copy(offsets_.begin(), offsets_.end(), column.mutable_offsets());
    std::copy(texts_.begin(), texts_.end(), column.mutable_texts());
    if (any_missing_) std::copy(missing_.begin(), missing_.end(), column.mutable_missing());
    return column;
  }

 private:
  const ColumnType type_;
  std::vector<double> doubles_;
  std::vector<int64_t> integers_;
  std::vector<uint8_t> booleans_;
  std::vector<int64_t> offsets_;
  std::string texts_;
  std::vector<uint8_t> missing_;
  bool any_missing_ = false;
};

// Reads the rows of one chunk.
class RowReader {
 public:
  RowReader(const ReadOptions& options, const Schema& schema) : options_(options), schema_(schema) {
    for (const ColumnType type : schema.types) columns_.emplace_back(type);
  }

  Status Add(std::string_view line, int64_t line_number) {
    if (IsBlankLine(line, options_))
      return DataLoss("cannot read '{}': line {} is blank", options_.path, line_number)
          .WithNote("blank lines may stand at the end of a csv file only");
    const std::vector<std::string_view> fields = FieldsOf(line, options_);
    if (fields.size() != columns_.size())
      return DataLoss("cannot read '{}': line {} has {} field{}, the lines before have {}", options_.path,
                      line_number, fields.size(), fields.size() == 1 ? "" : "s", columns_.size())
          .WithNote(
              "every line of a csv file needs the same number of fields; set sep= if the separator is not '" +
              options_.separator + "'");
    for (size_t j = 0; j < fields.size(); ++j)
      if (!columns_[j].Add(fields[j], IsMissing(fields[j], options_)))
        return DataLoss("cannot read '{}': line {}, field {}: '{}' is no {}", options_.path, line_number,
                        j + 1, CutAtCharacter(fields[j], 40), Name(schema_.types[j]))
            .WithNote(line_number == 1 ? "if the first line holds names, say header=TRUE"
                                       : "schema= says the types of the columns; STRING takes any text");
    ++rows_;
    return OkStatus();
  }

  Result<Frame> Finish(const std::shared_ptr<const Schema>& schema) const {
    std::vector<Column> columns;
    for (const ColumnReader& reader : columns_) {
      HEDDLE_ASSIGN_OR_RETURN(Column column, reader.Finish(rows_));
      columns.push_back(std::move(column));
    }
    return Frame(schema, std::move(columns));
  }

 private:
  const ReadOptions& options_;
  const Schema& schema_;
  std::vector<ColumnReader> columns_;
  int64_t rows_ = 0;
};

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

// One type for all columns, or one for each.
Result<std::vector<ColumnType>> TypesOf(const ReadOptions& options, size_t columns) {
  if (options.schema.empty()) return std::vector<ColumnType>(columns, ColumnType::kString);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnType> types, ParseSchema(options.schema));
  if (types.size() == 1) types.assign(columns, types[0]);
  if (types.size() == columns) return types;
  return DataLoss("cannot read '{}': the schema has {} types, the file has {} columns", options.path,
                  types.size(), columns);
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
  if (schema->names == CountedNames(static_cast<int64_t>(columns))) schema->names.clear();
  HEDDLE_ASSIGN_OR_RETURN(schema->types, TypesOf(options, columns));
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
  const int64_t first_line = preface.lines + 1;
  std::vector<Frame> pieces(static_cast<size_t>(summary.chunks()));
  const auto parse = [&](size_t chunk, int64_t first_row, std::string_view rest, FirstFailure* failure) {
    RowReader reader(options, *summary.schema);
    for (int64_t row = first_row; row < std::min(row_end, summary.chunk_rows[chunk + 1]); ++row) {
      Status status;
      if (rest.empty()) {
        status = ItChanged(options);  // Fewer lines than the summary counted.
      } else {
        const std::string_view line = TakeLine(&rest);
        if (row >= row_begin) status = reader.Add(line, row + first_line);
      }
      if (!status.ok()) return failure->Add(row, status), false;
    }
    Result<Frame> rows = reader.Finish(summary.schema);
    if (!rows.ok()) return failure->Add(first_row, rows.status()), false;
    pieces[chunk] = *std::move(rows);
    return true;
  };
  HEDDLE_RETURN_IF_ERROR(ReadChunks(options, summary, text, row_begin, row_end, parse));
  if (row_end == summary.shape.rows && row_begin < row_end && summary.chunk_rows.back() < row_end) {
    HEDDLE_ASSIGN_OR_RETURN(Frame last, ImputedRow(preface, summary.schema));
    pieces.push_back(std::move(last));
  }
  std::erase_if(pieces, [](const Frame& piece) { return piece.rows() == 0; });
  if (pieces.empty()) return RowReader(options, *summary.schema).Finish(summary.schema);
  return StackRows(pieces);
}

}  // namespace heddle::ops

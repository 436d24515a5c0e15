// SPDX-License-Identifier: Apache-2.0
// The rows of ARFF files.
#include "ops/io/formats/arff/arff.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/io/formats/arff/arff_header.h"
#include "ops/io/formats/arff/arff_values.h"
#include "ops/io/formats/column_builder.h"
#include "ops/io/formats/entry_rows.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/frame_cells.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

// A row of the file that is read.
struct Line {
  const ReadOptions& options;
  std::string_view text;  // Without blanks around it.
  int64_t number = 0;

  Status Fault(std::string_view what) const {
    return DataLoss("cannot read '{}': line {}: {}", options.path, number, what);
  }
  bool IsSparse() const { return text.front() == '{'; }
};

Status WeightedRow(const Line& line) {
  return line.Fault("a weight in braces stands behind the row, which Heddle does not read");
}

template <typename Visit>
Status VisitDense(const Line& line, size_t columns, const Visit& visit) {
  ArffValues values(line.text, columns == 1 ? ArffSeparator::kComma : FindArffSeparator(line.text));
  ArffValue value;
  size_t column = 0;
  for (; values.Next(&value); ++column) {
    if (column < columns) {
      HEDDLE_RETURN_IF_ERROR(visit(column, value));
    } else if (column == columns && !value.is_quoted && value.text.starts_with('{')) {
      return WeightedRow(line);
    }
  }
  if (!values.fault().empty()) return line.Fault(values.fault());
  if (column == columns) return OkStatus();
  return line.Fault(
      fmt::format("it has {} value{}, there are {} attributes", column, column == 1 ? "" : "s", columns));
}

// "{0 5, 3 'a b'}"
template <typename Visit>
Status VisitSparse(const Line& line, size_t columns, const Visit& visit) {
  const size_t end = FindArffBrace(line.text);
  if (end == std::string_view::npos) return line.Fault("its brace is not closed");
  std::string_view behind = Trim(line.text.substr(end + 1));
  if (behind.starts_with(',')) return WeightedRow(line);
  if (!IsArffComment(behind)) return line.Fault("nothing stands behind its brace");
  ArffValues values(line.text.substr(1, end - 1), ArffSeparator::kBlanks);
  ArffValue value;
  int64_t last = -1;
  while (values.Next(&value)) {
    int64_t index = 0;
    const auto [stop, error] =
        std::from_chars(value.text.data(), value.text.data() + value.text.size(), index);
    if (value.is_quoted || error != std::errc() || stop != value.text.data() + value.text.size() || index < 0)
      return line.Fault(fmt::format("'{}' is no index of a column", ShownInLine(value.text, 40)));
    if (index >= static_cast<int64_t>(columns))
      return line.Fault(
          fmt::format("index {} is beyond the {} attributes, which are counted from 0", index, columns));
    if (index <= last) return line.Fault(fmt::format("index {} follows index {}", index, last));
    if (!values.Next(&value))
      return line.Fault(values.fault().empty() ? fmt::format("index {} has no value", index)
                                               : std::string(values.fault()));
    HEDDLE_RETURN_IF_ERROR(visit(static_cast<size_t>(index), value));
    last = index;
  }
  return values.fault().empty() ? OkStatus() : line.Fault(values.fault());
}

// Calls visit(column, value) for the values that a row has, columns ascending, whose status ends it.
template <typename Visit>
Status VisitValues(const Line& line, size_t columns, const Visit& visit) {
  return line.IsSparse() ? VisitSparse(line, columns, visit) : VisitDense(line, columns, visit);
}

// Calls visit(line), whose status ends it, for the rows of a chunk, in order, until *go_on is false. `lines`
// counts the lines taken, those without a row too.
template <typename Visit>
Status VisitRows(const ReadOptions& options, std::string_view chunk, int64_t lines_before, int64_t* lines,
                 const Visit& visit) {
  bool go_on = true;
  for (*lines = 0; go_on && !chunk.empty();) {
    const std::string_view text = Trim(TakeLine(&chunk));
    ++*lines;
    if (IsArffComment(text)) continue;
    HEDDLE_RETURN_IF_ERROR(visit(Line{options, text, lines_before + *lines}, &go_on));
  }
  return OkStatus();
}

Status NoSuchValue(const Line& line, std::string_view name, std::string_view text, std::string_view type) {
  return line.Fault(fmt::format("'{}': '{}' is no {}", ShownInLine(name, 40), ShownInLine(text, 40), type));
}

// A value of an attribute of numbers. R's foreign writes logical columns as numeric, with TRUE and FALSE.
std::optional<double> NumberIn(const ArffValue& value) {
  if (value.IsMissing()) return std::numeric_limits<double>::quiet_NaN();
  if (const std::optional<double> number = DoubleInText(value.text, ColumnType::kFloat64)) return number;
  return ParseCell(value.text);
}

// Where chunks begin and how many rows they have. body(line, &stored) looks at each row, and counts the cells
// of its chunk that are not zero.
template <typename Body>
Result<FileSummary> SummarizeRows(const ReadOptions& options, const ArffHeader& header, const TextFile& text,
                                  const Body& body) {
  FileSummary summary;
  HEDDLE_ASSIGN_OR_RETURN(LineChunks chunks, CutLines(text, header.end, options.chunk_bytes));
  for (int64_t& line : chunks.lines) line += header.lines;
  summary.chunk_rows.resize(chunks.offsets.size());
  summary.chunk_stored.resize(chunks.offsets.size());
  HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
      options, text, chunks, ChunkOrder::kAny, [](size_t) { return true; },
      [&](size_t c, std::string_view chunk, int64_t* lines) {
        return VisitRows(options, chunk, chunks.lines[c], lines, [&](const Line& line, bool*) {
          ++summary.chunk_rows[c + 1];
          return body(line, &summary.chunk_stored[c]);
        });
      }));
  summary.stored = 0;
  for (int64_t& in_chunk : summary.chunk_stored) summary.stored += std::exchange(in_chunk, summary.stored);
  for (size_t c = 1; c < summary.chunk_rows.size(); ++c) summary.chunk_rows[c] += summary.chunk_rows[c - 1];
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_lines = std::move(chunks.lines);
  summary.shape = {summary.chunk_rows.back(), static_cast<int64_t>(header.attributes.size())};
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  return summary;
}

}  // namespace

Result<FileSummary> SummarizeArff(const ReadOptions& options, const TextFile& text, ChunkLooks&) {
  HEDDLE_ASSIGN_OR_RETURN(const ArffHeader header, ReadArffHeader(options, text));
  const std::vector<ArffAttribute>& attributes = header.attributes;
  for (size_t j = 0; j < attributes.size(); ++j)
    if (attributes[j].type == ArffType::kText)
      return DataLoss("cannot read '{}' as a matrix: it is an ARFF file whose column {}, '{}', holds texts",
                      options.path, j + 1, ShownInLine(attributes[j].name, 40))
          .WithNote("data_type=\"frame\" reads it as a frame");
  HEDDLE_ASSIGN_OR_RETURN(
      FileSummary summary, SummarizeRows(options, header, text, [&](const Line& line, int64_t* stored) {
        return VisitValues(line, attributes.size(), [&](size_t column, const ArffValue& value) {
          const std::optional<double> number = NumberIn(value);
          if (!number) return NoSuchValue(line, attributes[column].name, value.text, "number");
          if (*number != 0) ++*stored;
          return OkStatus();
        });
      }));
  summary.format = ChooseFormat(summary.shape, summary.stored);
  Schema table;
  for (const ArffAttribute& attribute : attributes) {
    table.names.push_back(attribute.name);
    table.types.push_back(attribute.type == ArffType::kInteger ? ColumnType::kInteger64
                                                               : ColumnType::kFloat64);
  }
  if (!AreCounted(table.names)) summary.table = std::make_shared<Schema>(std::move(table));
  return summary;
}

Result<Matrix> ReadArff(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                        int64_t row_begin, int64_t row_end) {
  const auto columns = static_cast<size_t>(summary.shape.columns);
  return ReadEntryRows(
      options, summary, text, row_begin, row_end,
      [&](size_t c, std::string_view chunk, int64_t* lines, const auto& take) {
        std::vector<Entry> entries;
        return VisitRows(
            options, chunk, summary.chunk_lines[c], lines, [&](const Line& line, bool* go_on) -> Status {
              entries.clear();
              HEDDLE_RETURN_IF_ERROR(VisitValues(line, columns, [&](size_t column, const ArffValue& value) {
                const std::optional<double> number = NumberIn(value);
                if (!number) return ItChanged(options);
                if (*number != 0) entries.push_back({static_cast<int32_t>(column), *number});
                return OkStatus();
              }));
              *go_on = take(entries);
              return OkStatus();
            });
      });
}

namespace {

// The rows of one chunk.
class FrameRows {
 public:
  FrameRows(const ReadOptions& options, const ArffHeader& header, const FileSummary& summary)
      : options_(options), header_(header), schema_(summary.schema) {
    for (const ColumnType type : schema_->types) columns_.emplace_back(type);
  }

  Status Add(const Line& line) {
    size_t next = 0;
    HEDDLE_RETURN_IF_ERROR(
        VisitValues(line, columns_.size(), [&](size_t column, const ArffValue& value) -> Status {
          for (; next < column; ++next) HEDDLE_RETURN_IF_ERROR(AddAbsent(line, next));
          ++next;
          return AddValue(line, column, value);
        }));
    for (; next < columns_.size(); ++next) HEDDLE_RETURN_IF_ERROR(AddAbsent(line, next));
    ++rows_;
    return OkStatus();
  }

  /// Once.
  Result<Frame> Finish() { return FinishFrame(schema_, rows_, &columns_); }

 private:
  Status AddValue(const Line& line, size_t column, const ArffValue& value) {
    if (value.IsMissing()) {
      columns_[column].MissUntil(rows_ + 1);
      return OkStatus();
    }
    if (columns_[column].Add(value.text)) return OkStatus();
    if (IsBooleanWord(value.text) && columns_[column].Add(*ParseCell(value.text) == 0 ? "0" : "1"))
      return OkStatus();
    const Status fault =
        NoSuchValue(line, header_.attributes[column].name, value.text, Name(schema_->types[column]));
    return options_.schema.empty()
               ? fault
               : fault.WithNote("schema= says the types of the columns; STRING takes any value");
  }

  // What a row in braces leaves out.
  Status AddAbsent(const Line& line, size_t column) {
    const ArffAttribute& attribute = header_.attributes[column];
    return AddValue(
        line, column,
        {attribute.type == ArffType::kText ? std::string_view(attribute.first_value) : "0", true});
  }

  const ReadOptions& options_;
  const ArffHeader& header_;
  const std::shared_ptr<const Schema>& schema_;
  std::vector<ColumnBuilder> columns_;
  int64_t rows_ = 0;
};

bool IsWhole(std::string_view text) {
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<FileSummary> SummarizeArffFrame(const ReadOptions& options, const TextFile& text, ChunkLooks&) {
  HEDDLE_ASSIGN_OR_RETURN(const ArffHeader header, ReadArffHeader(options, text));
  const std::vector<ArffAttribute>& attributes = header.attributes;
  auto schema = std::make_shared<Schema>();
  for (const ArffAttribute& attribute : attributes) {
    schema->names.push_back(attribute.name);
    schema->types.push_back(attribute.type == ArffType::kText ? ColumnType::kString : ColumnType::kFloat64);
  }
  const bool is_said = !options.schema.empty();
  if (is_said) {
    HEDDLE_ASSIGN_OR_RETURN(schema->types, ColumnTypesOf(options, attributes.size()));
  }
  // Other programs take any number for an integer.
  std::vector<std::atomic<bool>> has_fractions(attributes.size());
  HEDDLE_ASSIGN_OR_RETURN(
      FileSummary summary, SummarizeRows(options, header, text, [&](const Line& line, int64_t*) {
        return VisitValues(line, attributes.size(), [&](size_t column, const ArffValue& value) {
          const ArffAttribute& attribute = attributes[column];
          if (is_said || attribute.type == ArffType::kText) return OkStatus();
          if (attribute.type == ArffType::kInteger && !value.IsMissing() && !IsWhole(value.text))
            has_fractions[column].store(true, std::memory_order_relaxed);
          return NumberIn(value) ? OkStatus() : NoSuchValue(line, attribute.name, value.text, "number");
        });
      }));
  for (size_t j = 0; j < attributes.size() && !is_said; ++j)
    if (attributes[j].type == ArffType::kInteger && !has_fractions[j])
      schema->types[j] = ColumnType::kInteger64;
  // Names that only count are none, as in csv.
  if (AreCounted(schema->names)) schema->names.clear();
  summary.schema = std::move(schema);
  return summary;
}

Result<Frame> ReadArffFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                            int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const ArffHeader header, ReadArffHeader(options, text));
  if (static_cast<int64_t>(header.attributes.size()) != summary.shape.columns) return ItChanged(options);
  std::vector<Frame> pieces(static_cast<size_t>(summary.chunks()));
  HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
      options, text, {summary.chunk_offsets, summary.chunk_lines}, ChunkOrder::kAny,
      [&](size_t c) {
        return std::max(row_begin, summary.chunk_rows[c]) < std::min(row_end, summary.chunk_rows[c + 1]);
      },
      [&](size_t c, std::string_view chunk, int64_t* lines) -> Status {
        FrameRows rows(options, header, summary);
        int64_t row = summary.chunk_rows[c];
        const int64_t end = std::min(row_end, summary.chunk_rows[c + 1]);
        HEDDLE_RETURN_IF_ERROR(VisitRows(options, chunk, summary.chunk_lines[c], lines,
                                         [&](const Line& line, bool* go_on) -> Status {
                                           if (row >= row_begin) HEDDLE_RETURN_IF_ERROR(rows.Add(line));
                                           *go_on = ++row < end;
                                           return OkStatus();
                                         }));
        if (row != end) return ItChanged(options);
        HEDDLE_ASSIGN_OR_RETURN(pieces[c], rows.Finish());
        return OkStatus();
      }));
  std::erase_if(pieces, [](const Frame& piece) { return piece.rows() == 0; });
  if (pieces.empty()) return FrameRows(options, header, summary).Finish();
  return StackRows(pieces);
}

}  // namespace heddle::ops

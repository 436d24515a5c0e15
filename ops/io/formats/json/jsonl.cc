// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/json/jsonl.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"
#include "ops/io/formats/chunk_looks.h"
#include "ops/io/formats/column_builder.h"
#include "ops/io/formats/json_line.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr size_t kMostColumns = 1 << 20;

Status FaultyLine(const ReadOptions& options, int64_t line, std::string_view fault, int64_t place) {
  return DataLoss("cannot read '{}': line {}, character {}: {}", options.path, line, place, fault)
      .WithNote("every line of a jsonl file is a JSON object, or every line is an array");
}

// Goes through the values of one line: visit(index, name, value), whose status ends it. `kind` is '{' or '[',
// whichever the first line has.
template <typename Visit>
Status VisitLine(const ReadOptions& options, std::string_view text, int64_t line, char kind,
                 const Visit& visit) {
  if (Trim(text).empty())
    return DataLoss("cannot read '{}': line {} is blank", options.path, line)
        .WithNote("blank lines may stand at the end of a jsonl file only");
  JsonLine json(text);
  const char found = json.Begin();
  if (found != kind)
    return FaultyLine(options, line,
                      kind == '{' ? "an object begins with {" : "an array begins with [, as in line 1",
                      json.place() - (found == 0 ? 0 : 1));
  std::string_view name;
  JsonValue value;
  for (size_t index = 0; json.Next(&name, &value); ++index) HEDDLE_RETURN_IF_ERROR(visit(index, name, value));
  return json.fault().empty() ? OkStatus() : FaultyLine(options, line, json.fault(), json.place());
}

// '[' if the file begins so, else '{'.
Result<char> KindOfFile(const TextFile& text) {
  LineReader lines(text);
  std::string_view first;
  lines.Next(&first);
  HEDDLE_RETURN_IF_ERROR(lines.status());
  return JsonLine(first).Begin() == '[' ? '[' : '{';
}

// Names in the order in which they come, and where each one is.
class Names {
 public:
  // The number of a name; `guess` is where it may be.
  size_t Find(std::string_view name, size_t guess) {
    if (guess < names_.size() && names_[guess] == name) return guess;
    const auto found = places_.find(std::string(name));
    return found == places_.end() ? kNone : found->second;
  }
  size_t Add(std::string_view name) {
    names_.emplace_back(name);
    places_.emplace(names_.back(), names_.size() - 1);
    return names_.size() - 1;
  }
  const std::vector<std::string>& names() const { return names_; }
  static constexpr size_t kNone = SIZE_MAX;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> places_;
};

// The rows of one chunk.
class RowReader {
 public:
  RowReader(const ReadOptions& options, const Schema& schema, char kind)
      : options_(options), schema_(schema), kind_(kind) {
    for (int64_t j = 0; j < schema.columns(); ++j) {
      columns_.emplace_back(schema.types[static_cast<size_t>(j)]);
      if (kind == '{') names_.Add(schema.NameOf(j));
    }
  }

  Status Add(std::string_view text, int64_t line) {
    HEDDLE_RETURN_IF_ERROR(VisitLine(
        options_, text, line, kind_, [&](size_t index, std::string_view name, const JsonValue& value) {
          const size_t j = kind_ == '{' ? names_.Find(name, index) : index;
          if (j >= columns_.size() || columns_[j].rows() > rows_) return ItChanged(options_);
          columns_[j].MissUntil(rows_ + (value.is_null ? 1 : 0));
          if (value.is_null) return OkStatus();
          if (columns_[j].Add(value.text)) return OkStatus();
          return DataLoss("cannot read '{}': line {}, '{}': '{}' is no {}", options_.path, line,
                          ShownInLine(schema_.NameOf(static_cast<int64_t>(j)), 40),
                          ShownInLine(value.text, 40), Name(schema_.types[j]))
              .WithNote("schema= says the types of the columns; STRING takes any value");
        }));
    ++rows_;
    return OkStatus();
  }

  /// Once.
  Result<Frame> Finish(const std::shared_ptr<const Schema>& schema) {
    return FinishFrame(schema, rows_, &columns_);
  }

 private:
  const ReadOptions& options_;
  const Schema& schema_;
  const char kind_;
  Names names_;
  std::vector<ColumnBuilder> columns_;
  int64_t rows_ = 0;
};

// What a chunk says of the columns.
struct ChunkLook {
  Names names;                      // of objects
  std::vector<int64_t> last_lines;  // the line in which each name was met last
  std::optional<size_t> columns;    // of arrays: as many as the first line of the file has

  // Of the names: the size of each and its bytes.
  std::string ToBytes() const {
    std::string bytes;
    for (const std::string& name : names.names()) {
      const size_t size = name.size();
      bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
      bytes += name;
    }
    return bytes;
  }
  bool Parse(std::string_view bytes) {
    while (!bytes.empty()) {
      size_t size = 0;
      if (bytes.size() < sizeof(size)) return false;
      std::memcpy(&size, bytes.data(), sizeof(size));
      bytes.remove_prefix(sizeof(size));
      if (bytes.size() < size) return false;
      names.Add(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    return true;
  }
};

Status LookAtLine(const ReadOptions& options, std::string_view text, int64_t line, char kind,
                  ChunkLook* look) {
  size_t count = 0;
  HEDDLE_RETURN_IF_ERROR(
      VisitLine(options, text, line, kind, [&](size_t index, std::string_view name, const JsonValue&) {
        count = index + 1;
        if (kind == '[') return OkStatus();
        size_t place = look->names.Find(name, index);
        if (place == Names::kNone) {
          place = look->names.Add(name);
          look->last_lines.push_back(0);
        }
        if (look->names.names().size() > kMostColumns)
          return DataLoss("cannot read '{}': its objects have more than {} names", options.path,
                          kMostColumns);
        if (std::exchange(look->last_lines[place], line) != line) return OkStatus();
        return DataLoss("cannot read '{}': line {} has the name '{}' twice", options.path, line,
                        ShownInLine(name, 40));
      }));
  if (!look->columns) look->columns = count;
  if (kind == '{' || count == *look->columns) return OkStatus();
  return DataLoss("cannot read '{}': line {} has {} value{}, the lines before have {}", options.path, line,
                  count, count == 1 ? "" : "s", *look->columns);
}

}  // namespace

Result<FileSummary> SummarizeJsonl(const ReadOptions& options, const TextFile& text, ChunkLooks& looks) {
  FileSummary summary;
  HEDDLE_ASSIGN_OR_RETURN(const char kind, KindOfFile(text));
  ChunkLook first;
  if (kind == '[') {
    LineReader lines(text);
    std::string_view line;
    if (lines.Next(&line)) HEDDLE_RETURN_IF_ERROR(LookAtLine(options, line, 1, kind, &first));
  }
  const auto look_at_chunk = [&](size_t, std::string_view rest, int64_t lines_before, ChunkLook* look,
                                 int64_t* lines) {
    *look = first;
    while (!rest.empty())
      HEDDLE_RETURN_IF_ERROR(LookAtLine(options, TakeLine(&rest), lines_before + ++*lines, kind, look));
    return OkStatus();
  };
  HEDDLE_ASSIGN_OR_RETURN(ChunkLooks::Lines<ChunkLook> found,
                          looks.LookAtLines<ChunkLook>(options, text, 0, 0, look_at_chunk));
  summary.chunk_offsets = std::move(found.chunks.offsets);
  summary.chunk_rows = std::move(found.chunks.lines);
  const int64_t rows = summary.chunk_rows.back();
  if (rows == 0 && options.schema.empty())
    return DataLoss("cannot read '{}': it holds no data", options.path);
  auto schema = std::make_shared<Schema>();
  Names names;
  for (const ChunkLook& look : found.records)
    for (size_t i = 0; i < look.names.names().size(); ++i)
      if (const std::string& name = look.names.names()[i]; names.Find(name, i) == Names::kNone)
        names.Add(name);
  schema->names = names.names();
  size_t columns = kind == '[' ? first.columns.value_or(0) : schema->names.size();
  if (rows == 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ColumnType> said, ParseSchema(options.schema));
    columns = said.size();
  }
  if (columns == 0) return DataLoss("cannot read '{}': its lines have no values", options.path);
  // Names that only count are none, as in csv.
  if (AreCounted(schema->names)) schema->names.clear();
  HEDDLE_ASSIGN_OR_RETURN(schema->types, ColumnTypesOf(options, columns));
  summary.shape = {rows, static_cast<int64_t>(columns)};
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.schema = std::move(schema);
  return summary;
}

Result<Frame> ReadJsonl(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                        int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const char kind, KindOfFile(text));
  std::vector<Frame> pieces(static_cast<size_t>(summary.chunks()));
  HEDDLE_RETURN_IF_ERROR(ReadChunks(
      options, summary, text, row_begin, row_end,
      [&](size_t chunk, int64_t first_row, std::string_view rest, FirstFailure* failure) {
        RowReader reader(options, *summary.schema, kind);
        for (int64_t row = first_row; row < std::min(row_end, summary.chunk_rows[chunk + 1]); ++row) {
          if (rest.empty()) return failure->Add(row, ItChanged(options)), false;
          const std::string_view line = TakeLine(&rest);
          if (row < row_begin) continue;
          if (const Status status = reader.Add(line, row + 1); !status.ok())
            return failure->Add(row, status), false;
        }
        Result<Frame> rows = reader.Finish(summary.schema);
        if (!rows.ok()) return failure->Add(first_row, rows.status()), false;
        pieces[chunk] = *std::move(rows);
        return true;
      }));
  std::erase_if(pieces, [](const Frame& piece) { return piece.rows() == 0; });
  if (pieces.empty()) return RowReader(options, *summary.schema, kind).Finish(summary.schema);
  return StackRows(pieces);
}

Status VisitJsonlCells(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                       int64_t rows, const JsonlVisitor& visit) {
  HEDDLE_ASSIGN_OR_RETURN(const char kind, KindOfFile(text));
  Names names;
  if (kind == '{')
    for (int64_t j = 0; j < summary.schema->columns(); ++j) names.Add(summary.schema->NameOf(j));
  LineReader lines(text);
  std::string_view line;
  for (int64_t row = 0; row < rows && lines.Next(&line); ++row) {
    if (IsCancelled(options.cancelled)) return Cancelled("read");
    HEDDLE_RETURN_IF_ERROR(VisitLine(options, line, row + 1, kind,
                                     [&](size_t index, std::string_view name, const JsonValue& value) {
                                       const size_t column = kind == '{' ? names.Find(name, index) : index;
                                       if (column >= static_cast<size_t>(summary.schema->columns()))
                                         return ItChanged(options);
                                       if (!value.is_null) visit(row, static_cast<int64_t>(column), value);
                                       return OkStatus();
                                     }));
  }
  return lines.status();
}

}  // namespace heddle::ops

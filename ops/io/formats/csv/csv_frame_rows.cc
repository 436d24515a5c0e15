// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/csv/csv_frame_rows.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/io/formats/csv/quoted_fields.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/frame_cells.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

// Of the texts of one column in one chunk.
struct TextSize {
  int64_t bytes = 0;
  bool any_missing = false;
};

// Empty, or a text that means a missing cell. What stands in quotes is a text, also an empty one.
bool IsMissingText(std::string_view field, const ReadOptions& options) {
  return field.empty() || (!options.missing_texts.empty() && IsMissing(field, options));
}

// Of a number or boolean in quotes, by its field and what is in it: many programs write all in quotes.
bool IsMissingInQuotes(std::string_view field, std::string_view content, const ReadOptions& options) {
  return content.empty() ||
         (!options.missing_texts.empty() && (IsMissing(field, options) || IsMissing(content, options)));
}

// The columns of a frame that is read: the cells of each row go to their places.
class CellPlaces {
 public:
  // `sizes`: for each chunk that of every column, of texts; they are cut from the first chunk on.
  static Result<CellPlaces> Make(const ReadOptions& options, const Schema& schema, int64_t rows,
                                 std::vector<std::vector<TextSize>> sizes) {
    CellPlaces places(options);
    for (size_t j = 0; j < schema.types.size(); ++j) {
      int64_t bytes = 0;
      bool any_missing = options.any_cell_may_miss;
      for (std::vector<TextSize>& chunk : sizes) {
        if (chunk.empty()) continue;
        any_missing = any_missing || chunk[j].any_missing;
        bytes += std::exchange(chunk[j].bytes, bytes);  // From here on where they begin.
      }
      HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(schema.types[j], rows, bytes, any_missing));
      if (column.storage() == ColumnStorage::kTexts) column.mutable_offsets()[0] = 0;
      places.columns_.push_back(std::move(column));
      places.text_bytes_.push_back(bytes);
    }
    places.begins_ = std::move(sizes);
    return places;
  }

  // Where the texts of a chunk begin in each column, and where they end.
  std::vector<int64_t> BeginOf(size_t chunk) const {
    std::vector<int64_t> begins;
    for (size_t j = 0; j < columns_.size(); ++j)
      begins.push_back(chunk < begins_.size() && !begins_[chunk].empty() ? begins_[chunk][j].bytes : 0);
    return begins;
  }
  std::vector<int64_t> EndOf(size_t chunk) const {
    for (++chunk; chunk < begins_.size(); ++chunk)
      if (!begins_[chunk].empty()) return BeginOf(chunk);
    return text_bytes_;
  }

  enum class Fault { kNone, kNoCell, kNoRoom };

  // Cell `row` of column `column`. Texts go to `at`, below `end`; those that do not stand in the file like
  // that are made in `room`.
  Fault Put(size_t column, int64_t row, std::string_view field, int64_t* at, int64_t end, std::string* room) {
    Column& cells = columns_[column];
    const ColumnStorage storage = cells.storage();
    if (storage == ColumnStorage::kTexts) return PutText(&cells, row, field, at, end, room);
    const ColumnType type = cells.type();
    const bool is_quoted = IsQuoted(field);
    const std::string_view text = is_quoted ? Trim(WithoutQuotes(field, room)) : field;
    const bool missing =
        is_quoted ? IsMissingInQuotes(field, text, options_) : IsMissingText(field, options_);
    if (missing && options_.any_cell_may_miss) cells.mutable_missing()[row] = 1;
    switch (storage) {
      case ColumnStorage::kDoubles: {
        const std::optional<double> x = missing ? 0 : DoubleInText(text, type);
        if (!x) return Fault::kNoCell;
        cells.mutable_doubles()[row] = *x;
        return Fault::kNone;
      }
      case ColumnStorage::kIntegers: {
        const std::optional<int64_t> x = missing ? 0 : IntegerInText(text, type);
        if (!x) return Fault::kNoCell;
        cells.mutable_integers()[row] = *x;
        return Fault::kNone;
      }
      case ColumnStorage::kBooleans: {
        const std::optional<bool> x = missing ? false : BooleanInText(text);
        if (!x) return Fault::kNoCell;
        cells.mutable_booleans()[row] = *x;
        return Fault::kNone;
      }
      case ColumnStorage::kTexts: break;
    }
    HEDDLE_CHECK(false, "cells of every storage are read");
  }

  std::vector<Column> Finish() && { return std::move(columns_); }

 private:
  explicit CellPlaces(const ReadOptions& options) : options_(options) {}

  Fault PutText(Column* cells, int64_t row, std::string_view field, int64_t* at, int64_t end,
                std::string* room) const {
    if (IsMissingText(field, options_)) {
      if (!cells->MayMiss()) return Fault::kNoRoom;
      cells->mutable_missing()[row] = 1;
    } else {
      const std::string_view text = ContentOf(field, room);
      if (cells->type() == ColumnType::kCharacter && !IsOneCharacter(text)) return Fault::kNoCell;
      if (static_cast<int64_t>(text.size()) > end - *at) return Fault::kNoRoom;
      std::memcpy(cells->mutable_texts() + *at, text.data(), text.size());
      *at += static_cast<int64_t>(text.size());
    }
    cells->mutable_offsets()[row + 1] = *at;
    return Fault::kNone;
  }

  const ReadOptions& options_;
  std::vector<Column> columns_;
  std::vector<int64_t> text_bytes_;
  std::vector<std::vector<TextSize>> begins_;
};

// What the texts of each column take in each chunk. Records that are none of the file's columns end a chunk
// here: the second pass tells.
std::vector<std::vector<TextSize>> MeasureTexts(const ReadOptions& options, const FileSummary& summary,
                                                const TextFile& text, int64_t row_begin, int64_t row_end) {
  const std::vector<ColumnType>& types = summary.schema->types;
  std::vector<size_t> of_texts;
  for (size_t j = 0; j < types.size(); ++j)
    if (StorageOf(types[j]) == ColumnStorage::kTexts) of_texts.push_back(j);
  std::vector<std::vector<TextSize>> sizes(static_cast<size_t>(summary.chunks()));
  if (of_texts.empty()) return sizes;
  const auto measure = [&](size_t chunk, int64_t first_row, std::string_view piece, FirstFailure*) {
    std::vector<TextSize>& own = sizes[chunk];
    own.resize(types.size());
    QuotedRecords records(piece, options);
    std::string room;
    for (int64_t row = first_row; row < std::min(row_end, summary.chunk_rows[chunk + 1]) && records.Next();
         ++row) {
      if (row < row_begin) continue;
      if (records.fields().size() != types.size()) break;
      for (const size_t j : of_texts) {
        const std::string_view field = records.fields()[j];
        if (IsMissingText(field, options))
          own[j].any_missing = true;
        else
          own[j].bytes += static_cast<int64_t>(ContentOf(field, &room).size());
      }
    }
    return true;
  };
  // What cannot be read now cannot be read in the second pass, which tells the first fault of the file.
  (void)ReadChunks(options, summary, text, row_begin, row_end, measure);
  return sizes;
}

Status NotARow(const ReadOptions& options, const QuotedRecords& records, size_t columns,
               const RecordPlace& place) {
  const size_t fields = records.fields().size();
  if (IsBlankLine(records.record(), options)) {
    return DataLoss("cannot read '{}': line {} is blank", place.path, place.line)
        .WithNote("blank lines may stand at the end of a csv file only");
  }
  return DataLoss("cannot read '{}': line {} has {} field{}, the lines before have {}", place.path,
                  place.line, fields, fields == 1 ? "" : "s", columns)
      .WithNote(
          "every line of a csv file needs the same number of fields; set sep= if the separator is not '" +
          options.separator + "'");
}

bool IsRow(const ReadOptions& options, const QuotedRecords& records, size_t columns) {
  if (records.fields().size() != columns) return false;
  return MayRowsBeBlank(columns) || !IsBlankLine(records.record(), options);
}

Status NoCell(const std::string& field, ColumnType type, size_t column, const RecordPlace& place) {
  return DataLoss("cannot read '{}': line {}, field {}: '{}' is no {}", place.path, place.line, column + 1,
                  ShownInLine(field, 40), Name(type))
      .WithNote(place.line == 1 ? "if the first line holds names, say header=TRUE"
                                : "schema= says the types of the columns; STRING takes any text");
}

}  // namespace

Result<Frame> ReadCsvFrameRows(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                               int64_t row_begin, int64_t row_end) {
  const Schema& schema = *summary.schema;
  const size_t columns = schema.types.size();
  HEDDLE_ASSIGN_OR_RETURN(CellPlaces places,
                          CellPlaces::Make(options, schema, row_end - row_begin,
                                           MeasureTexts(options, summary, text, row_begin, row_end)));
  const auto parse = [&](size_t chunk, int64_t first_row, std::string_view piece, FirstFailure* failure) {
    QuotedRecords records(piece, options);
    std::vector<int64_t> at = places.BeginOf(chunk);
    const std::vector<int64_t> end = places.EndOf(chunk);
    std::string room;
    const auto place = [&] {
      return RecordPlaces(options, summary, text, chunk, piece).Of(records.record().data());
    };
    const auto put_record = [&](int64_t row) {
      if (!IsRow(options, records, columns)) return NotARow(options, records, columns, place());
      for (size_t j = 0; j < columns; ++j) {
        const std::string_view field = records.fields()[j];
        switch (places.Put(j, row - row_begin, field, &at[j], end[j], &room)) {
          case CellPlaces::Fault::kNone: continue;
          case CellPlaces::Fault::kNoCell:
            return NoCell(std::string(ContentOf(field, &room)), schema.types[j], j, place());
          case CellPlaces::Fault::kNoRoom: return ItChanged(options);
        }
      }
      return OkStatus();
    };
    int64_t row = first_row;
    for (; row < std::min(row_end, summary.chunk_rows[chunk + 1]); ++row) {
      Status status;
      if (!records.Next())
        status = ItChanged(options);  // Fewer records than the summary counted.
      else if (row >= row_begin)
        status = put_record(row);
      if (!status.ok()) return failure->Add(row, status), false;
    }
    if (at != end) return failure->Add(row, ItChanged(options)), false;
    return true;
  };
  HEDDLE_RETURN_IF_ERROR(ReadChunks(options, summary, text, row_begin, row_end, parse));
  return Frame(summary.schema, std::move(places).Finish());
}

}  // namespace heddle::ops

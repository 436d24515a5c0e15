// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"

namespace heddle::ops {
namespace {

class RecordParser {
 public:
  RecordParser(const ReadOptions& options, int64_t columns)
      : options_(options), grammar_(QuoteGrammar::OfFields(options)), columns_(columns) {}

  const QuoteGrammar& grammar() const { return grammar_; }

  // Takes the first record of `rest` into `columns` doubles.
  Status Take(std::string_view* rest, const RecordPlaces& places, double* out) const {
    if (options_.separator.size() == 1 && options_.missing_texts.empty() && TakePlain(rest, out))
      return OkStatus();
    const char* const begin = rest->data();
    const std::string_view record = TakeRecord(rest, grammar_);
    return ParseCarefully(LineBody(record, options_), {places, begin}, out);
  }

 private:
  // Looked for only where something is wrong with a record.
  struct Where {
    const RecordPlaces& places;
    const char* record;
    RecordPlace Find() const { return places.Of(record); }
  };

  // The usual line: numbers without blanks around them. False leaves the line to ParseCarefully.
  bool TakePlain(std::string_view* rest, double* out) const {
    const char* at = rest->data();
    const char* end = at + rest->size();
    const char separator = options_.separator[0];
    if (options_.any_blanks)
      while (at != end && *at == separator) ++at;
    for (int64_t j = 0; j < columns_; ++j) {
      if (!TakePlainNumber(&at, end, out + j)) return false;
      if (j + 1 < columns_) {
        if (at == end || *at != separator) return false;
        ++at;
        if (options_.any_blanks)
          while (at != end && *at == separator) ++at;
      }
    }
    if (at != end && *at == '\r') ++at;
    if (at != end && *at++ != '\n') return false;
    rest->remove_prefix(static_cast<size_t>(at - rest->data()));
    return true;
  }

  Status ParseCarefully(std::string_view line, const Where& where, double* out) const {
    // A blank line is no row of defaults, not even where a row is one field.
    if (IsBlankLine(line, options_)) {
      const RecordPlace place = where.Find();
      return DataLoss("cannot read '{}': line {} is blank", place.path, place.line)
          .WithNote("blank lines may stand at the end of a csv file only");
    }
    int64_t fields = CountFields(line, options_);
    // Many programs set numbers in columns of the page: blanks around the line separate nothing then.
    if (fields != columns_ && options_.separator == " ") {
      line = Trim(line);
      fields = CountFields(line, options_);
    }
    if (fields != columns_) return WrongCount(where.Find(), fields);
    FieldCutter cutter(line, options_);
    std::string_view field;
    std::string room;
    for (int64_t j = 0; j < columns_ && cutter.Next(&field); ++j)
      HEDDLE_RETURN_IF_ERROR(ParseField(field, where, j + 1, &room, out + j));
    return OkStatus();
  }

  Status ParseField(std::string_view field, const Where& where, int64_t number, std::string* room,
                    double* out) const {
    const std::string_view text = Trim(ContentOf(field, room));
    if (text.empty()) {
      if (!options_.fill) {
        const RecordPlace place = where.Find();
        return DataLoss("cannot read '{}': line {}, field {} is empty and fill=FALSE", place.path, place.line,
                        number);
      }
      *out = options_.default_value;
      return OkStatus();
    }
    if (IsMissing(text, options_) || IsMissing(field, options_)) {
      *out = std::numeric_limits<double>::quiet_NaN();
      return OkStatus();
    }
    const std::optional<double> value = ParseCell(text);
    if (!value) {
      const RecordPlace place = where.Find();
      const Status status = DataLoss("cannot read '{}': line {}, field {}: '{}' is not a number", place.path,
                                     place.line, number, ShownInLine(field, 40));
      return place.line == 1 ? status.WithNote("if the first line holds names, say header=TRUE")
                             : status.WithNote("texts that mean a missing value go into naStrings=");
    }
    *out = *value;
    return OkStatus();
  }

  Status WrongCount(const RecordPlace& place, int64_t fields) const {
    return DataLoss("cannot read '{}': line {} has {} field{}, the lines before have {}", place.path,
                    place.line, fields, fields == 1 ? "" : "s", columns_)
        .WithNote("every line of a csv file needs the same number of fields; set sep= if the separator is " +
                  (options_.any_blanks ? "not blanks" : "not '" + options_.separator + "'"));
  }

  const ReadOptions& options_;
  const QuoteGrammar grammar_;
  const int64_t columns_;
};

// The fields of the first line, without the blanks around it where they may separate nothing
// (ParseCarefully).
int64_t CountColumns(std::string_view line, const ReadOptions& options) {
  const int64_t fields = CountFields(line, options);
  if (options.separator != " " || fields == options.columns) return fields;
  return CountFields(Trim(line), options);
}

// Where the first row begins.
Result<int64_t> BeginOfRows(const ReadOptions& options, const TextFile& text) {
  if (!options.header.value_or(false)) return 0;
  const QuoteGrammar grammar = QuoteGrammar::OfFields(options);
  RecordReader records(text, grammar);
  std::string_view names;
  records.Next(&names);
  HEDDLE_RETURN_IF_ERROR(records.status());
  return records.offset();
}

std::string_view BlankSeparator(const ReadOptions& options) {
  const bool blank = !options.any_blanks && Trim(options.separator).empty();
  return blank ? std::string_view(options.separator) : std::string_view();
}

}  // namespace

Format ChooseFormat(const Shape& shape, int64_t stored) {
  if (stored == kUnknown || shape.columns <= 1) return Format::kDense;
  return static_cast<double>(stored) <
                 kSparseBelow * static_cast<double>(shape.rows) * static_cast<double>(shape.columns)
             ? Format::kSparse
             : Format::kDense;
}

Result<FileSummary> SummarizeCsv(const ReadOptions& options, const TextFile& text, ChunkLooks& looks) {
  FileSummary summary;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t begin, BeginOfRows(options, text));
  const QuoteGrammar grammar = QuoteGrammar::OfFields(options);
  HEDDLE_ASSIGN_OR_RETURN(RecordChunks chunks,
                          CutRecords(options, text, begin, grammar, looks, BlankSeparator(options)));
  if (chunks.records.back() == 0)
    return DataLoss("cannot read '{}': it holds no data{}", options.path,
                    begin > 0 ? " but a line of names" : "");
  RecordReader records(text, grammar, begin);
  std::string_view first;
  records.Next(&first);
  HEDDLE_RETURN_IF_ERROR(records.status());
  summary.shape.rows = chunks.records.back();
  summary.shape.columns = CountColumns(LineBody(first, options), options);
  for (const auto& [name, said, found] : {std::tuple{"rows", options.rows, summary.shape.rows},
                                          std::tuple{"cols", options.columns, summary.shape.columns}})
    if (said != kUnknown && said != found)
      return DataLoss("cannot read '{}': {}={} was asked for, the file has {}", options.path, name, said,
                      found);
  summary.stored = options.nonzeros;
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_rows = std::move(chunks.records);
  summary.chunk_lines = std::move(chunks.lines);
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

namespace {

// The rows [begin, end) of a file, which are parsed in parallel.
struct CsvRows {
  const ReadOptions& options;
  const FileSummary& summary;
  const TextFile& text;
  int64_t begin = 0;
  int64_t end = 0;

  // Parses each row into place(row) and calls take(row), which says whether it fits; rows count from the
  // first of them. `parts(chunk)` gives both.
  template <typename Parts>
  Status Parse(const Parts& parts) const {
    const RecordParser parser(options, summary.shape.columns);
    const auto parse = [&](size_t chunk, int64_t first_row, std::string_view rest, FirstFailure* failure) {
      auto rows = parts(chunk);
      const RecordPlaces places(options, summary, text, chunk, rest);
      for (int64_t row = first_row; row < std::min(end, summary.chunk_rows[chunk + 1]); ++row) {
        Status status;
        if (rest.empty()) {
          status = ItChanged(options);  // Fewer lines than the summary counted.
        } else if (row < begin) {
          TakeRecord(&rest, parser.grammar());
        } else {
          status = parser.Take(&rest, places, rows.PlaceOf(row - begin));
          if (status.ok() && !rows.Take(row - begin)) status = ItChanged(options);
        }
        if (!status.ok()) return failure->Add(row, status), false;
      }
      return true;
    };
    return ReadChunks(options, summary, text, begin, end, parse);
  }
};

struct DenseRows {
  Matrix* matrix;
  double* PlaceOf(int64_t row) { return matrix->mutable_data() + row * matrix->columns(); }
  static bool Take(int64_t) { return true; }
};

// Rows are parsed twice: their non-zeros are counted, then they have a place.
struct CountedRows {
  std::vector<double> cells;
  int64_t* stored;
  double* PlaceOf(int64_t) { return cells.data(); }
  bool Take(int64_t) {
    *stored += std::count_if(cells.begin(), cells.end(), [](double x) { return x != 0; });
    return true;
  }
};

struct CompressedRows {
  std::vector<double> cells;
  Matrix* matrix;
  int64_t at;
  int64_t end;
  double* PlaceOf(int64_t) { return cells.data(); }
  bool Take(int64_t row) {
    for (size_t j = 0; j < cells.size(); ++j) {
      if (cells[j] == 0) continue;
      if (at == end) return false;
      matrix->mutable_column_indexes()[at] = static_cast<int32_t>(j);
      matrix->mutable_values()[at++] = cells[j];
    }
    matrix->mutable_row_offsets()[row + 1] = at;
    return true;
  }
};

}  // namespace

Result<Matrix> ReadCsv(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                       int64_t row_begin, int64_t row_end) {
  const CsvRows rows = {options, summary, text, row_begin, row_end};
  const int64_t columns = summary.shape.columns;
  if (summary.format == Format::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(row_end - row_begin, columns));
    HEDDLE_RETURN_IF_ERROR(rows.Parse([&](size_t) { return DenseRows{&matrix}; }));
    return matrix;
  }
  const auto one_row = [&] { return std::vector<double>(static_cast<size_t>(columns)); };
  std::vector<int64_t> begins(summary.chunk_offsets.size());  // Of each chunk's non-zeros.
  HEDDLE_RETURN_IF_ERROR(rows.Parse([&](size_t chunk) { return CountedRows{one_row(), &begins[chunk]}; }));
  int64_t stored = 0;
  for (int64_t& begin : begins) stored += std::exchange(begin, stored);
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Sparse(row_end - row_begin, columns, stored));
  matrix.mutable_row_offsets()[0] = 0;
  HEDDLE_RETURN_IF_ERROR(rows.Parse([&](size_t chunk) {
    return CompressedRows{one_row(), &matrix, begins[chunk], begins[chunk + 1]};
  }));
  for (size_t c = 0; c + 1 < summary.chunk_rows.size(); ++c) {
    const int64_t end = std::min(row_end, summary.chunk_rows[c + 1]);
    if (end > row_begin && matrix.row_offsets()[end - row_begin] != begins[c + 1]) return ItChanged(options);
  }
  return matrix;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <tuple>

#include "core/double_text.h"
#include "ops/formats/lines.h"
#include "ops/formats/readers.h"
#include "ops/kernel.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

int64_t CountFields(std::string_view line, std::string_view separator) {
  int64_t fields = 1;
  for (size_t at = line.find(separator); at != std::string_view::npos;
       at = line.find(separator, at + separator.size()))
    ++fields;
  return fields;
}

// The line without its end, and for blank-separated files without surrounding blanks.
std::string_view Body(std::string_view line, std::string_view separator) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return separator == " " ? Trim(line) : line;
}

class LineParser {
 public:
  LineParser(const ReadOptions& options, int64_t columns) : options_(options), columns_(columns) {}

  // One line into `columns` doubles. `line_number` counts from 1 in the file.
  Status Parse(std::string_view line, int64_t line_number, double* out) const {
    if (options_.separator.size() == 1 && options_.missing_texts.empty() && ParsePlain(line, out))
      return OkStatus();
    return ParseCarefully(line, line_number, out);
  }

 private:
  // The usual line: numbers without blanks around them. False leaves the line to ParseCarefully.
  bool ParsePlain(std::string_view line, double* out) const {
    const char* at = line.data();
    const char* end = at + line.size();
    const char separator = options_.separator[0];
    for (int64_t j = 0; j < columns_; ++j) {
      const auto [next, error] = std::from_chars(at, end, out[j]);
      if (error != std::errc()) return false;
      if (!std::isfinite(out[j])) return false;  // from_chars knows more spellings of these than DML
      at = next;
      if (j + 1 < columns_) {
        if (at == end || *at != separator) return false;
        ++at;
      }
    }
    return at == end;
  }

  Status ParseCarefully(std::string_view line, int64_t line_number, double* out) const {
    const std::string_view separator = options_.separator;
    if (const int64_t fields = CountFields(line, separator); fields != columns_) {
      Status status = DataLoss("cannot read '{}': line {} has {} fields, the lines before have {}",
                               options_.path, line_number, fields, columns_);
      return status.WithNote(
          "every line of a csv file needs the same number of fields; set sep= if the separator is not '" +
          std::string(separator) + "'");
    }
    for (int64_t j = 0; j < columns_; ++j) {
      const size_t end = line.find(separator);
      const std::string_view field = Trim(line.substr(0, end));
      line = end == std::string_view::npos ? std::string_view() : line.substr(end + separator.size());
      if (field.empty()) {
        if (!options_.fill)
          return DataLoss("cannot read '{}': line {}, field {} is empty and fill=FALSE", options_.path,
                          line_number, j + 1);
        out[j] = options_.default_value;
        continue;
      }
      if (std::find(options_.missing_texts.begin(), options_.missing_texts.end(), field) !=
          options_.missing_texts.end()) {
        out[j] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      const std::optional<double> value = ParseDouble(field);
      if (!value) {
        Status status = DataLoss("cannot read '{}': line {}, field {}: '{}' is not a number", options_.path,
                                 line_number, j + 1, field.substr(0, 40));
        return line_number == 1 ? status.WithNote("if the first line holds names, say header=TRUE")
                                : status.WithNote("texts that mean a missing value go into naStrings=");
      }
      out[j] = *value;
    }
    return OkStatus();
  }

  const ReadOptions& options_;
  const int64_t columns_;
};

}  // namespace

Format ChooseFormat(const Shape& shape, int64_t stored) {
  if (stored == kUnknown || shape.columns <= 1) return Format::kDense;
  return static_cast<double>(stored) <
                 kSparseBelow * static_cast<double>(shape.rows) * static_cast<double>(shape.columns)
             ? Format::kSparse
             : Format::kDense;
}

Result<FileSummary> SummarizeCsv(const ReadOptions& options, std::string_view text) {
  FileSummary summary;
  size_t start = 0;
  std::string_view rest = text;
  if (options.header.value_or(false)) {
    TakeLine(&rest);
    start = text.size() - rest.size();
  }
  LineChunks chunks = CutLines(rest);
  if (chunks.rows.back() == 0) return DataLoss("cannot read '{}': it holds no data", options.path);
  for (int64_t& offset : chunks.offsets) offset += static_cast<int64_t>(start);
  std::string_view first = rest;
  summary.shape.rows = chunks.rows.back();
  summary.shape.columns = CountFields(Body(TakeLine(&first), options.separator), options.separator);
  for (const auto& [name, said, found] : {std::tuple{"rows", options.rows, summary.shape.rows},
                                          std::tuple{"cols", options.columns, summary.shape.columns}})
    if (said != kUnknown && said != found)
      return DataLoss("cannot read '{}': {}={} was asked for, the file has {}", options.path, name, said,
                      found);
  summary.stored = options.nonzeros;
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_rows = std::move(chunks.rows);
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadCsv(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                       int64_t row_begin, int64_t row_end) {
  const int64_t columns = summary.shape.columns;
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(row_end - row_begin, columns));
  const LineParser parser(options, columns);
  const int64_t first_line = options.header.value_or(false) ? 2 : 1;
  const auto chunks = static_cast<int64_t>(summary.chunk_rows.size()) - 1;
  std::mutex mutex;
  int64_t failed_row = std::numeric_limits<int64_t>::max();
  Status failure;  // of the first bad line of the file, whoever finds it first
  ParallelFor(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      if (IsCancelled(options.cancelled)) return;
      const auto chunk = static_cast<size_t>(c);
      if (summary.chunk_rows[chunk + 1] <= row_begin || summary.chunk_rows[chunk] >= row_end) continue;
      std::string_view rest =
          text.substr(static_cast<size_t>(summary.chunk_offsets[chunk]),
                      static_cast<size_t>(summary.chunk_offsets[chunk + 1] - summary.chunk_offsets[chunk]));
      for (int64_t row = summary.chunk_rows[chunk]; row < std::min(row_end, summary.chunk_rows[chunk + 1]);
           ++row) {
        const std::string_view line = Body(TakeLine(&rest), options.separator);
        if (row < row_begin) continue;
        const Status status =
            parser.Parse(line, row + first_line, matrix.mutable_data() + (row - row_begin) * columns);
        if (status.ok()) continue;
        const std::lock_guard lock(mutex);
        if (row < failed_row) {
          failed_row = row;
          failure = status;
        }
        break;
      }
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  HEDDLE_RETURN_IF_ERROR(failure);
  return summary.format == Format::kSparse ? ToSparse(matrix) : Result<Matrix>(std::move(matrix));
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/write_frame.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/frame/empty_cell.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/write/piece_text.h"
#include "ops/io/formats/write/row_pieces.h"

namespace heddle::ops {
namespace {

// A number or boolean.
template <typename Text>
void AppendCell(const Column& column, int64_t row, Text* out) {
  if (column.IsMissing(row)) return;
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      if (column.type() == ColumnType::kFloat32)
        return out->AppendNumber(static_cast<float>(column.doubles()[row]));
      return out->AppendNumber(column.doubles()[row]);
    case ColumnStorage::kIntegers: return out->AppendNumber(column.integers()[row]);
    case ColumnStorage::kBooleans: return out->Append(column.booleans()[row] != 0 ? "true" : "false");
    case ColumnStorage::kTexts: break;
  }
  HEDDLE_CHECK(false, "texts are written as their format has them");
}

// True of a cell that files of cells leave out.
bool IsLeftOut(const Column& column, int64_t row) { return IsMissingOrZero(column, row); }

template <typename Text>
void AppendInQuotes(std::string_view text, Text* out) {
  out->Append('"');
  for (size_t quote = text.find('"'); quote != std::string_view::npos; quote = text.find('"')) {
    out->Append(text.substr(0, quote + 1));
    out->Append('"');
    text.remove_prefix(quote + 1);
  }
  out->Append(text);
  out->Append('"');
}

// A field of a line of so many; the first line tells readers what separates.
template <typename Text>
void AppendCsvText(std::string_view text, const std::string& separator, int64_t fields, bool is_first,
                   Text* out) {
  const bool in_quotes = NeedsQuotes(text, separator) || (is_first && MisleadsGuess(text, separator, fields));
  in_quotes ? AppendInQuotes(text, out) : out->Append(text);
}

// A cell of a file of cells is the rest of its line without blanks at its end.
bool IsPlainCell(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= '"' && (c == '"' || c == '\n' || c == '\r' || c == '\0'))
      return false;
  return text.empty() || !IsBlank(text.back());
}

template <typename Text>
void AppendCsvRow(std::span<const Column> columns, int64_t row, const WriteOptions& options, bool is_first,
                  Text* out) {
  for (size_t j = 0; j < columns.size(); ++j) {
    if (j > 0) out->Append(options.separator);
    if (columns[j].storage() == ColumnStorage::kTexts && !columns[j].IsMissing(row))
      AppendCsvText(columns[j].TextAt(row), options.separator, std::ssize(columns), is_first, out);
    else
      AppendCell(columns[j], row, out);
  }
  out->Append('\n');
}

// `number` is that of the row in the file.
template <typename Text>
void AppendCells(std::span<const Column> columns, int64_t row, int64_t number, Text* out) {
  char beginning[kNumberRoom] = {};  // "row "
  char* const end = std::to_chars(beginning, beginning + kNumberRoom - 1, number).ptr;
  *end = ' ';
  const auto size = static_cast<size_t>(end - beginning + 1);
  for (size_t j = 0; j < columns.size(); ++j) {
    const Column& column = columns[j];
    if (IsLeftOut(column, row)) continue;
    out->AppendFrom(beginning, size);
    out->AppendNumber(static_cast<int64_t>(j) + 1);
    out->Append(' ');
    if (column.storage() != ColumnStorage::kTexts) {
      AppendCell(column, row, out);
    } else {
      const std::string_view text = column.TextAt(row);
      IsPlainCell(text) ? out->Append(text) : AppendInQuotes(text, out);
    }
    out->Append('\n');
  }
}

// The lines of rows of a frame, in csv or text.
class TextRows {
 public:
  TextRows(const Frame& frame, int64_t first_row, const WriteOptions& options)
      : options_(options), first_row_(first_row) {
    for (int64_t j = 0; j < frame.columns(); ++j) columns_.push_back(frame.column(j));
  }

  template <typename Text>
  void Append(int64_t begin, int64_t end, Text* out) const {
    const int64_t before = options_.rows_before;
    for (int64_t i = begin; i < end; ++i)
      options_.format == FileFormat::kCsv ? AppendCsvRow(columns_, i, options_, before + i == first_row_, out)
                                          : AppendCells(columns_, i, before + i + 1, out);
  }

 private:
  const WriteOptions& options_;
  const int64_t first_row_;
  std::vector<Column> columns_;
};

}  // namespace

int64_t FirstFilledRow(const Frame& frame) {
  int64_t row = 0;
  if (frame.columns() == 1) {
    const Column column = frame.column(0);
    while (row < frame.rows() && column.IsMissing(row)) ++row;
  }
  return row < frame.rows() ? row : INT64_MAX;
}

std::string CsvNames(const Schema& schema, const WriteOptions& options) {
  PieceText names;
  for (int64_t j = 0; j < schema.columns(); ++j) {
    if (j > 0) names.Append(options.separator);
    AppendCsvText(schema.NameOf(j), options.separator, schema.columns(), /*is_first=*/true, &names);
  }
  names.Append('\n');
  return std::string(names.view());
}

Status WriteFrameRows(const Frame& frame, int64_t first_row, const WriteOptions& options,
                      const ByteSink& sink) {
  const FormatEntry& entry = EntryOf(options.format);
  if (entry.write_frame != nullptr) return entry.write_frame(frame, options, sink);
  const TextRows rows(frame, first_row, options);
  return GiveRows<PieceText>(frame, options, sink, [&](int64_t begin, int64_t end, PieceText* text) {
    text->Clear();
    rows.Append(begin, end, text);
    return OkStatus();
  });
}

int64_t BytesOfFrameRows(const Frame& frame, int64_t first_row, const WriteOptions& options) {
  const TextRows rows(frame, first_row, options);
  const int64_t rows_at_once = RowsOfFramePiece(frame.columns());
  std::atomic<int64_t> bytes = 0;
  ParallelFor(frame.rows(), rows_at_once, [&](int64_t begin, int64_t end) {
    for (; begin < end && !IsCancelled(options.cancelled); begin += rows_at_once) {
      TextLength length;
      rows.Append(begin, std::min(begin + rows_at_once, end), &length);
      bytes += static_cast<int64_t>(length.size());
    }
  });
  return bytes;
}

std::string SchemaText(const Schema& schema) {
  std::string text;
  for (const ColumnType type : schema.types) text.append(Name(type)).push_back(',');
  return text;
}

}  // namespace heddle::ops

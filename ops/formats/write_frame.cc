// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/write_frame.h"

#include <span>
#include <string>
#include <vector>

#include "ops/formats/format_table.h"
#include "ops/formats/piece_text.h"
#include "ops/formats/row_pieces.h"

namespace heddle::ops {
namespace {

void AppendCell(const Column& column, int64_t row, PieceText* out) {
  if (column.IsMissing(row)) return;
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      if (column.type() == ColumnType::kFloat32)
        return out->AppendNumber(static_cast<float>(column.doubles()[row]));
      return out->AppendNumber(column.doubles()[row]);
    case ColumnStorage::kIntegers: return out->AppendNumber(column.integers()[row]);
    case ColumnStorage::kBooleans: return out->Append(column.booleans()[row] != 0 ? "true" : "false");
    case ColumnStorage::kTexts: return out->Append(column.TextAt(row));
  }
}

// True of a cell that files of cells leave out.
bool IsLeftOut(const Column& column, int64_t row) {
  if (column.IsMissing(row)) return true;
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return column.doubles()[row] == 0;
    case ColumnStorage::kIntegers: return column.integers()[row] == 0;
    case ColumnStorage::kBooleans: return column.booleans()[row] == 0;
    case ColumnStorage::kTexts: return false;
  }
  HEDDLE_CHECK(false, "cells of every storage are written or left out");
}

// Whole in quotes, those inside doubled: as a csv file has it, and as `read` leaves it.
bool IsQuoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  for (size_t i = 1; i + 1 < text.size(); ++i)
    if (text[i] == '"' && (++i + 1 >= text.size() || text[i] != '"')) return false;
  return true;
}

// In quotes where it would be another field, or several, without.
void AppendCsvText(std::string_view text, const std::string& separator, PieceText* out) {
  const bool divides =
      text.find(separator) != std::string_view::npos || text.find_first_of("\n\r") != std::string_view::npos;
  if (text.empty() || (!divides && text.front() != '"') || IsQuoted(text)) return out->Append(text);
  out->Append('"');
  for (const char c : text) {
    if (c == '"') out->Append('"');
    out->Append(c);
  }
  out->Append('"');
}

void AppendCsvRow(std::span<const Column> columns, int64_t row, const WriteOptions& options, PieceText* out) {
  for (size_t j = 0; j < columns.size(); ++j) {
    if (j > 0) out->Append(options.separator);
    if (columns[j].storage() == ColumnStorage::kTexts && !columns[j].IsMissing(row))
      AppendCsvText(columns[j].TextAt(row), options.separator, out);
    else
      AppendCell(columns[j], row, out);
  }
  out->Append('\n');
}

// `number` is that of the row in the file.
void AppendCells(std::span<const Column> columns, int64_t row, int64_t number, PieceText* out) {
  for (size_t j = 0; j < columns.size(); ++j) {
    if (IsLeftOut(columns[j], row)) continue;
    out->AppendNumber(number);
    out->Append(' ');
    out->AppendNumber(static_cast<int64_t>(j) + 1);
    out->Append(' ');
    AppendCell(columns[j], row, out);
    out->Append('\n');
  }
}

}  // namespace

Status WriteFrame(const Frame& frame, const WriteOptions& options, const ByteSink& sink) {
  const FormatEntry& entry = EntryOf(options.format);
  if (!entry.writes_frames)
    return FailedPrecondition("write: a frame cannot be written in format '{}'", entry.name)
        .WithNote("formats of frames are " + NamesOfWrittenFormats(DataType::kFrame));
  if (entry.write_frame != nullptr) return entry.write_frame(frame, options, sink);
  const bool csv = options.format == FileFormat::kCsv;
  if (csv && options.header && options.rows_before == 0) {
    PieceText names;
    for (int64_t j = 0; j < frame.columns(); ++j) {
      if (j > 0) names.Append(options.separator);
      AppendCsvText(frame.schema()->NameOf(j), options.separator, &names);
    }
    names.Append('\n');
    HEDDLE_RETURN_IF_ERROR(PackingSink(options.packing, sink)(names.view()));
  }
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) columns.push_back(frame.column(j));
  return GiveRows<PieceText>(frame, options, sink, [&](int64_t begin, int64_t end, PieceText* text) {
    text->Clear();
    for (int64_t i = begin; i < end; ++i)
      csv ? AppendCsvRow(columns, i, options, text)
          : AppendCells(columns, i, options.rows_before + i + 1, text);
    return OkStatus();
  });
}

std::string SchemaText(const Schema& schema) {
  std::string text;
  for (const ColumnType type : schema.types) text.append(Name(type)).push_back(',');
  return text;
}

}  // namespace heddle::ops

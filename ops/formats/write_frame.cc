// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/write_frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ops/formats/binary_file.h"
#include "ops/kernel.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

// A piece is so short that many of them are little memory, and so long that threads are busy with it.
constexpr int64_t kCellsOfPiece = 1 << 14;
constexpr int64_t kPiecesOfThread = 4;

void AppendCell(const Frame& frame, int64_t row, int64_t column, std::string* out) {
  if (frame.IsMissing(row, column)) return;
  if (frame.schema()->types[static_cast<size_t>(column)] == ColumnType::kBoolean)
    out->append(frame.At(row, column).AsBoolean() ? "true" : "false");
  else
    frame.AppendText(row, column, out);
}

// True of a cell that files of cells leave out.
bool IsLeftOut(const Frame& frame, int64_t row, int64_t column) {
  if (frame.IsMissing(row, column)) return true;
  switch (StorageOf(frame.schema()->types[static_cast<size_t>(column)])) {
    case ColumnStorage::kDoubles:
    case ColumnStorage::kIntegers:
    case ColumnStorage::kBooleans: return frame.At(row, column).AsDouble() == 0;
    case ColumnStorage::kTexts: return false;
  }
  HEDDLE_CHECK(false, "cells of every storage are written or left out");
}

void AppendCsvRow(const Frame& frame, int64_t row, const WriteOptions& options, std::string* out) {
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (j > 0) out->append(options.separator);
    AppendCell(frame, row, j, out);
  }
  out->push_back('\n');
}

void AppendCells(const Frame& frame, int64_t row, std::string* out) {
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (IsLeftOut(frame, row, j)) continue;
    out->append(fmt::format("{} {} ", row + 1, j + 1));
    AppendCell(frame, row, j, out);
    out->push_back('\n');
  }
}

}  // namespace

Status WriteFrame(const Frame& frame, const WriteOptions& options, const ByteSink& sink) {
  if (options.format == FileFormat::kBinary) return WriteBinaryFrame(frame, options, sink);
  const bool csv = options.format == FileFormat::kCsv;
  if (!csv && options.format != FileFormat::kText)
    return FailedPrecondition("write: a frame cannot be written in format '{}'", Name(options.format))
        .WithNote("formats of frames are csv, text and binary");
  if (csv && options.header) {
    std::string names;
    for (int64_t j = 0; j < frame.columns(); ++j)
      names.append(j > 0 ? options.separator : "").append(frame.schema()->NameOf(j));
    HEDDLE_RETURN_IF_ERROR(sink(names + "\n"));
  }
  const int64_t rows_of_piece = std::max<int64_t>(1, kCellsOfPiece / std::max<int64_t>(frame.columns(), 1));
  std::vector<std::string> pieces(static_cast<size_t>(ParallelThreads() * kPiecesOfThread));
  const int64_t rows_at_once = rows_of_piece * static_cast<int64_t>(pieces.size());
  for (int64_t row = 0; row < frame.rows(); row += rows_at_once) {
    ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end && !IsCancelled(options.cancelled); ++p) {
        std::string& text = pieces[static_cast<size_t>(p)];
        text.clear();
        const int64_t first = row + p * rows_of_piece;
        for (int64_t i = first; i < std::min(first + rows_of_piece, frame.rows()); ++i)
          csv ? AppendCsvRow(frame, i, options, &text) : AppendCells(frame, i, &text);
      }
    });
    if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
    for (const std::string& text : pieces)
      if (!text.empty()) HEDDLE_RETURN_IF_ERROR(sink(text));
  }
  return OkStatus();
}

std::string SchemaText(const Schema& schema) {
  std::string text;
  for (const ColumnType type : schema.types) text.append(Name(type)).push_back(',');
  return text;
}

}  // namespace heddle::ops

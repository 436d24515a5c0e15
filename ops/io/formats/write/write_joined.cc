// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write_joined.h"

#include <cstring>

#include "ops/io/files/joined_parts.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/numpy/npy.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/write/write_frame.h"
#include "ops/io/formats/write/write_parts.h"

namespace heddle::ops {
namespace {

// What a rank tells of its rows: two numbers, then the name of the file.
struct KeptRows {
  int64_t nonzeros = 0;
  KeptPart part;

  std::string ToBytes() const {
    std::string bytes(reinterpret_cast<const char*>(&nonzeros), sizeof(nonzeros));
    bytes.append(reinterpret_cast<const char*>(&part.bytes), sizeof(part.bytes));
    return bytes + part.name;
  }
  static Result<KeptRows> Parse(std::string_view bytes) {
    KeptRows rows;
    if (bytes.size() < sizeof(nonzeros) + sizeof(part.bytes))
      return Internal("what a worker has written arrived malformed");
    std::memcpy(&rows.nonzeros, bytes.data(), sizeof(nonzeros));
    std::memcpy(&rows.part.bytes, bytes.data() + sizeof(nonzeros), sizeof(part.bytes));
    rows.part.name = bytes.substr(sizeof(nonzeros) + sizeof(part.bytes));
    return rows;
  }
};

bool IsOfLines(FileFormat format) {
  return format == FileFormat::kCsv || format == FileFormat::kText || format == FileFormat::kLibsvm ||
         format == FileFormat::kMatrixMarket;
}

// The bytes of rows, which are not the first of the file where `row_begin` says so.
Status GiveRowsOf(const Value& rows, int64_t row_begin, WriteOptions options, const ByteSink& sink) {
  options.rows_before = row_begin;
  options.packing.reset();
  if (rows.IsFrame()) return WriteFrame(rows.frame(), options, sink);
  if (options.format == FileFormat::kNpy)
    return GiveCells(rows.matrix(), options.packing, options.cancelled, sink);
  bool any_bytes = false;
  return WriteTextRows(rows.matrix(), options, sink, &any_bytes);
}

// What stands in a file before its rows, where no row gives it.
Result<std::string> BeginningOf(const ValueInfo& whole, int64_t nonzeros, const WriteOptions& options) {
  std::string bytes;
  if (whole.IsFrame()) return bytes;  // The first rows have the names.
  if (options.format == FileFormat::kNpy) return HeaderOfMatrix(whole.shape);
  HEDDLE_RETURN_IF_ERROR(
      WriteTextBeginning(whole.shape, nonzeros, options, [&](std::string_view piece) -> Status {
        bytes += piece;
        return OkStatus();
      }));
  return bytes;
}

}  // namespace

bool CanWriteJoined(const ValueInfo& value, const std::string& path, const WriteOptions& options,
                    Files& files) {
  if (JoinedPartsOf(files) == nullptr) return false;
  // Members of gzip and frames of zstd end where threads share the whole out.
  if (options.packing.value_or(PackingOfPath(path)) != Packing::kNone) return false;
  if (!value.IsFrame()) return IsOfLines(options.format) || options.format == FileFormat::kNpy;
  // The first text of a column alone may stand in quotes, and is in whichever rows are not missing.
  if (options.format == FileFormat::kCsv) return options.header || value.shape.columns != 1;
  return options.format == FileFormat::kText || options.format == FileFormat::kJsonl;
}

Result<std::string> KeepRows(const Value& rows, int64_t row_begin, const ValueInfo& whole,
                             const std::string& path, const WriteOptions& options, Files& files) {
  HEDDLE_RETURN_IF_ERROR(CheckWrite(rows.kind(), whole.shape, path, options));
  KeptRows kept;
  if (rows.shape().rows > 0) {
    HEDDLE_ASSIGN_OR_RETURN(kept.part, JoinedPartsOf(files)->KeepPart(path, [&](const ByteSink& sink) {
      return GiveRowsOf(rows, row_begin, options, sink);
    }));
    if (rows.IsMatrix()) kept.nonzeros = rows.matrix().CountNonzeros();
  }
  return kept.ToBytes();
}

Status FinishJoined(const std::vector<std::string>& kept, const ValueInfo& whole, const std::string& path,
                    const WriteOptions& options, Files& files) {
  std::vector<KeptPart> parts;
  int64_t nonzeros = 0, bytes = 0;
  for (const std::string& text : kept) {
    HEDDLE_ASSIGN_OR_RETURN(KeptRows rows, KeptRows::Parse(text));
    nonzeros += rows.nonzeros;
    bytes += rows.part.bytes;
    parts.push_back(std::move(rows.part));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string beginning, BeginningOf(whole, nonzeros, options));
  std::string end;
  if (!whole.IsFrame())
    HEDDLE_RETURN_IF_ERROR(WriteTextEnd(bytes > 0, options, [&](std::string_view piece) -> Status {
      end += piece;
      return OkStatus();
    }));
  HEDDLE_RETURN_IF_ERROR(JoinedPartsOf(files)->JoinParts(path, beginning, parts, end));
  const WrittenValue written{.kind = whole.IsFrame() ? Value::Kind::kFrame : Value::Kind::kMatrix,
                             .shape = whole.shape,
                             .nonzeros = nonzeros,
                             .schema = whole.schema};
  return WriteMetadata(written, path, options, files);
}

}  // namespace heddle::ops

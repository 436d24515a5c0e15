// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/write_pieces.h"

#include <algorithm>
#include <optional>

#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/write/write_frame.h"
#include "ops/io/formats/write/write_parts.h"

namespace heddle::ops {
namespace {

// What has to be known of all rows before the first is written, or behind the last.
struct Totals {
  int64_t nonzeros = 0;
  int64_t stored = 0;      // cells that are not +0.0
  int64_t text_bytes = 0;  // of a frame

  void Add(const Value& rows) {
    if (rows.IsMatrix()) {
      nonzeros += rows.matrix().CountNonzeros();
      stored += CountStoredCells(rows.matrix());
    } else {
      for (int64_t j = 0; j < rows.frame().columns(); ++j) text_bytes += rows.frame().column(j).text_bytes();
    }
  }
};

class PieceWriter {
 public:
  PieceWriter(const PiecedValue& value, const WriteOptions& options) : value_(value), options_(options) {}

  Status Write(const ByteSink& sink) {
    if (options_.format == FileFormat::kBinary) {
      HEDDLE_RETURN_IF_ERROR(Count());
      return WriteBinary(sink);
    }
    if (value_.schema == nullptr) {
      if (options_.format == FileFormat::kMatrixMarket) HEDDLE_RETURN_IF_ERROR(Count());
      HEDDLE_RETURN_IF_ERROR(WriteTextBeginning(value_.shape, totals_.nonzeros, options_, sink));
    }
    WriteOptions options = options_;
    const bool counts = !is_counted_;
    bool any_bytes = false;
    HEDDLE_RETURN_IF_ERROR(Visit([&](int64_t begin, const Value& rows) {
      options.rows_before = begin;
      if (counts) totals_.Add(rows);
      return rows.IsFrame() ? WriteFrame(rows.frame(), options, sink)
                            : WriteTextRows(rows.matrix(), options, sink, &any_bytes);
    }));
    return value_.schema == nullptr ? WriteTextEnd(any_bytes, options_, sink) : OkStatus();
  }
  int64_t nonzeros() const { return totals_.nonzeros; }

 private:
  // Piece by piece, an empty one where there are no rows: its columns may have names.
  template <typename Take>
  Status Visit(const Take& take) const {
    int64_t begin = 0;
    do {
      const int64_t end = std::min(begin + value_.rows_at_once, value_.shape.rows);
      HEDDLE_ASSIGN_OR_RETURN(const Value rows, value_.read(begin, end));
      HEDDLE_RETURN_IF_ERROR(take(begin, rows));
      begin = end;
    } while (begin < value_.shape.rows);
    return OkStatus();
  }

  Status Count() {
    is_counted_ = true;
    return Visit([&](int64_t, const Value& rows) {
      totals_.Add(rows);
      return OkStatus();
    });
  }

  Status WriteBinary(const ByteSink& sink) const {
    const auto rows = static_cast<double>(std::max<int64_t>(1, value_.shape.rows));
    const double bytes_of_row =
        value_.schema == nullptr
            ? BytesOfMatrixRow(value_.shape.columns, static_cast<double>(totals_.stored) / rows)
            : (static_cast<double>(FixedBytes(*value_.schema, value_.shape.rows)) +
               static_cast<double>(totals_.text_bytes)) /
                  rows;
    return WriteBinaryFile(
        value_.shape, value_.schema.get(), RowsOfBlock(value_.shape.rows, bytes_of_row),
        [&](int64_t begin, int64_t end, EncodedBlock* block) -> Status {
          HEDDLE_ASSIGN_OR_RETURN(const Value piece, value_.read(begin, end));
          return piece.IsFrame() ? EncodeRows(piece.frame(), block) : EncodeRows(piece.matrix(), block);
        },
        options_, sink);
  }

  const PiecedValue& value_;
  const WriteOptions& options_;
  Totals totals_;
  bool is_counted_ = false;
};

}  // namespace

bool TakesPieces(FileFormat format) {
  // Those of text, our own, and jsonl, whose rows are lines.
  const FormatEntry& entry = EntryOf(format);
  return entry.read_text != nullptr || format == FileFormat::kBinary || format == FileFormat::kJsonl;
}

Status WritePieces(const PiecedValue& value, const std::string& path, const WriteOptions& options,
                   Files& files) {
  if (!TakesPieces(options.format)) {
    HEDDLE_ASSIGN_OR_RETURN(const Value whole, value.read(0, value.shape.rows));
    return WriteValue(whole, path, options, files);
  }
  const Value::Kind kind = value.schema == nullptr ? Value::Kind::kMatrix : Value::Kind::kFrame;
  HEDDLE_RETURN_IF_ERROR(CheckWrite(kind, value.shape, path, options));
  // Packed as one: how rows are cut into pieces is of no matter for the bytes.
  const Packing packing = options.packing.value_or(PackingOfPath(path));
  WriteOptions plain = options;
  plain.packing.reset();
  PieceWriter writer(value, plain);
  HEDDLE_RETURN_IF_ERROR(files.Replace(path, [&](const ByteSink& sink) {
    return Pack(
        packing, [&](const ByteSink& packed) { return writer.Write(packed); }, sink);
  }));
  const WrittenValue written{
      .kind = kind, .shape = value.shape, .nonzeros = writer.nonzeros(), .schema = value.schema};
  return WriteMetadata(written, path, options, files);
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/write_pieces.h"

#include <algorithm>
#include <utility>

#include "ops/base/parallel.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/write/file_sections.h"
#include "ops/io/formats/write/write_parts.h"
#include "ops/io/formats/write_stages.h"

namespace heddle::ops {
namespace {

// Calls take(begin, rows) piece by piece.
template <typename Take>
Status VisitPieces(const PiecedValue& value, const Take& take) {
  for (int64_t begin = 0; begin < value.shape.rows;) {
    const int64_t end = std::min(begin + value.rows_at_once, value.shape.rows);
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, value.read(begin, end));
    HEDDLE_RETURN_IF_ERROR(take(begin, rows));
    begin = end;
  }
  return OkStatus();
}

// Whether something of all rows has to be known before the first is written.
bool NeedsTotals(const ValueInfo& info, const WriteOptions& options) {
  return options.format == FileFormat::kBinary || options.format == FileFormat::kMatrixMarket ||
         (info.IsFrame() && options.format == FileFormat::kCsv && !options.header && info.shape.columns == 1);
}

class PieceWriter {
 public:
  PieceWriter(const PiecedValue& value, const PackedOptions& options) : value_(value), options_(options) {
    file_.info = value.schema == nullptr ? ValueInfo::OfMatrix(value.shape)
                                         : ValueInfo::OfFrame(value.shape.rows, value.schema);
    file_.totals.first_filled = 0;
  }

  Status Write(const ByteSink& sink) {
    const FileFormat format = options_.options.format;
    const bool counts_first = NeedsTotals(file_.info, options_.options);
    if (counts_first) {
      file_.totals = RowTotals();
      HEDDLE_RETURN_IF_ERROR(VisitPieces(value_, [&](int64_t begin, const Value& rows) {
        file_.totals.Add(TotalsOf(rows, begin, format));
        return OkStatus();
      }));
    }
    HEDDLE_RETURN_IF_ERROR(GiveBeginning(file_, options_, sink));
    BinaryIndex index;
    int64_t bytes = 0;
    const ByteSink count = [&](std::string_view piece) {
      bytes += static_cast<int64_t>(piece.size());
      return sink(piece);
    };
    HEDDLE_RETURN_IF_ERROR(format == FileFormat::kBinary ? GiveBlocks(count, &index)
                                                         : GiveRows(counts_first, count));
    HEDDLE_ASSIGN_OR_RETURN(const std::string end, EndOf(file_, bytes, std::move(index), options_));
    return sink(end);
  }
  int64_t nonzeros() const { return file_.totals.nonzeros; }

 private:
  Status GiveRows(bool is_counted, const ByteSink& sink) {
    return VisitPieces(value_, [&](int64_t begin, const Value& rows) {
      if (!is_counted) file_.totals.nonzeros += TotalsOf(rows, begin, options_.options.format).nonzeros;
      return GiveSection(rows, begin, file_, options_, sink, nullptr);
    });
  }
  Status GiveBlocks(const ByteSink& sink, BinaryIndex* index) const {
    return GiveBinaryBlocks(
        value_.shape.rows, RowsOfUnit(file_, options_),
        [&](int64_t begin, int64_t end, EncodedBlock* block) -> Status {
          HEDDLE_ASSIGN_OR_RETURN(block->owner, value_.read(begin, end));
          const Value& piece = block->owner;
          return piece.IsFrame() ? EncodeRows(piece.frame(), 0, end - begin, block)
                                 : EncodeRows(piece.matrix(), 0, end - begin, block);
        },
        options_.options, sink, index);
  }

  const PiecedValue& value_;
  const PackedOptions& options_;
  FileContent file_;
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
  PackedOptions plain{.options = options};
  plain.options.packing.reset();
  PieceWriter writer(value, plain);
  HEDDLE_RETURN_IF_ERROR(files.Replace(path, [&](const ByteSink& sink) {
    return Pack(
        options.packing.value_or(PackingOfPath(path)),
        [&](const ByteSink& packed) { return writer.Write(packed); }, sink);
  }));
  const WrittenValue written{
      .kind = kind, .shape = value.shape, .nonzeros = writer.nonzeros(), .schema = value.schema};
  return WriteMetadata(written, path, options, files);
}

Status WritePanels(const KernelCall& call, const std::string& path, const WriteOptions& options) {
  constexpr int64_t kBytesAtOnce = int64_t{4} << 20;
  const std::shared_ptr<const RowPanels> panels = call.inputs[0]->panels();
  const ValueInfo& info = call.input_infos[0];
  const int64_t row_bytes = std::max<int64_t>(1, KnownBytes(info) / std::max<int64_t>(1, info.shape.rows));
  return WritePieces({.shape = panels->shape(),
                      .schema = info.schema,
                      .rows_at_once = std::max<int64_t>(1, kBytesAtOnce / row_bytes),
                      .read =
                          [panels](int64_t begin, int64_t end) {
                            const SerialLoops serial;  // The pieces are made on all threads.
                            return panels->Rows(begin, end);
                          }},
                     path, options, *call.context.files);
}

}  // namespace heddle::ops

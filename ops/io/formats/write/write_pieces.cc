// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/write_pieces.h"

#include <algorithm>
#include <mutex>
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

  /// Where the rows of binary blocks follow from all cells, those of a matrix with few zeros are assumed,
  /// unless `counts_first`: to count first reads all pieces once more.
  Status Write(bool counts_first, const ByteSink& sink) {
    const FileFormat format = options_.options.format;
    bool is_counted = NeedsTotals(file_.info, options_.options);
    HEDDLE_ASSIGN_OR_RETURN(assumes_few_zeros_, is_counted && !counts_first ? HasFewZeros() : false);
    file_.totals = RowTotals();
    is_counted &= !assumes_few_zeros_;
    if (assumes_few_zeros_) {
      file_.totals.stored = value_.shape.Cells();
    } else if (is_counted) {
      HEDDLE_RETURN_IF_ERROR(VisitPieces(value_, [&](int64_t begin, const Value& rows) {
        file_.totals.Add(TotalsOf(rows, begin, format));
        return OkStatus();
      }));
    } else {
      file_.totals.first_filled = 0;
    }
    HEDDLE_RETURN_IF_ERROR(GiveBeginning(file_, options_, sink));
    BinaryIndex index;
    int64_t bytes = 0;
    const ByteSink count = [&](std::string_view piece) {
      bytes += static_cast<int64_t>(piece.size());
      return sink(piece);
    };
    HEDDLE_RETURN_IF_ERROR(format == FileFormat::kBinary ? GiveBlocks(count, &index)
                                                         : GiveRows(is_counted, count));
    HEDDLE_ASSIGN_OR_RETURN(const std::string end, EndOf(file_, bytes, std::move(index), options_));
    return sink(end);
  }
  /// Write() failed because the matrix has more zeros than it assumed.
  bool has_assumed_wrongly() const { return has_assumed_wrongly_; }
  int64_t nonzeros() const { return file_.totals.nonzeros; }

 private:
  // Rows of a block if the matrix stores so many cells.
  int64_t RowsOfBlockFor(int64_t stored) const {
    FileContent file = file_;
    file.totals.stored = stored;
    return RowsOfUnit(file, options_);
  }
  // Whether the first piece is one of a matrix whose blocks have as many rows as if it had no zeros.
  Result<bool> HasFewZeros() const {
    if (options_.options.format != FileFormat::kBinary || value_.schema != nullptr) return false;
    const int64_t rows = std::min(value_.rows_at_once, value_.shape.rows);
    HEDDLE_ASSIGN_OR_RETURN(const Value first, value_.read(0, rows));
    const double share = static_cast<double>(TotalsOf(first, 0, FileFormat::kBinary).stored) /
                         static_cast<double>(std::max<int64_t>(1, first.shape().Cells()));
    const auto cells = static_cast<double>(value_.shape.Cells());
    return RowsOfBlockFor(static_cast<int64_t>(share * cells)) == RowsOfBlockFor(value_.shape.Cells());
  }

  Status GiveRows(bool is_counted, const ByteSink& sink) {
    return VisitPieces(value_, [&](int64_t begin, const Value& rows) {
      if (!is_counted) file_.totals.nonzeros += TotalsOf(rows, begin, options_.options.format).nonzeros;
      return GiveSection(rows, begin, file_, options_, sink, nullptr);
    });
  }

  Status GiveBlocks(const ByteSink& sink, BinaryIndex* index) {
    const int64_t rows_of_block = RowsOfUnit(file_, options_);
    std::mutex mutex;
    RowTotals found;
    int64_t rows_found = 0;
    const auto encode = [&](int64_t begin, int64_t end, EncodedBlock* block) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(block->owner, value_.read(begin, end));
      const Value& piece = block->owner;
      if (assumes_few_zeros_) {
        const RowTotals totals = TotalsOf(piece, begin, FileFormat::kBinary);
        const std::lock_guard lock(mutex);
        found.Add(totals);
        rows_found += end - begin;
        const int64_t zeros = rows_found * value_.shape.columns - found.stored;
        if (RowsOfBlockFor(value_.shape.Cells() - zeros) != rows_of_block) {
          has_assumed_wrongly_ = true;
          return Internal("a matrix in panels has more zeros than its first rows");
        }
      }
      return piece.IsFrame() ? EncodeRows(piece.frame(), 0, end - begin, block)
                             : EncodeRows(piece.matrix(), 0, end - begin, block);
    };
    HEDDLE_RETURN_IF_ERROR(
        GiveBinaryBlocks(value_.shape.rows, rows_of_block, encode, options_.options, sink, index));
    if (assumes_few_zeros_) file_.totals = found;
    return OkStatus();
  }

  const PiecedValue& value_;
  const PackedOptions& options_;
  FileContent file_;
  bool assumes_few_zeros_ = false;
  bool has_assumed_wrongly_ = false;
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
  const auto write = [&](bool counts_first) {
    return files.Replace(path, [&](const ByteSink& sink) {
      return Pack(
          options.packing.value_or(PackingOfPath(path)),
          [&](const ByteSink& packed) { return writer.Write(counts_first, packed); }, sink);
    });
  };
  Status status = write(/*counts_first=*/false);
  if (!status.ok() && writer.has_assumed_wrongly()) status = write(/*counts_first=*/true);
  HEDDLE_RETURN_IF_ERROR(status);
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

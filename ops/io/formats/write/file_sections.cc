// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/file_sections.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/io/formats/binary/row_coding.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/numpy/npy.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/write/row_pieces.h"
#include "ops/io/formats/write/write_frame.h"
#include "ops/io/formats/write/write_parts.h"

namespace heddle::ops {
namespace {

int64_t RowsOfBinaryBlock(const FileContent& file) {
  if (file.coding != nullptr) return RowCoding::RowsOfBlock(file.info.shape.columns);
  return file.info.IsFrame()
             ? RowsOfFrameBlock(*file.info.schema, file.info.shape.rows, file.totals.text_bytes)
             : RowsOfMatrixBlock(file.info.shape, file.info.element_type, file.totals.stored);
}

int64_t RowsOfTextPiece(const FileContent& file, const WriteOptions& options) {
  const Shape& shape = file.info.shape;
  return file.info.IsFrame() ? RowsOfFramePiece(shape.columns)
                             : RowsOfTextUnit(shape, file.totals.nonzeros, options.format);
}

Status GivePlainBeginning(const FileContent& file, const WriteOptions& options, const ByteSink& sink) {
  const ValueInfo& info = file.info;
  if (!HasSections(info, options.format)) return OkStatus();
  switch (options.format) {
    case FileFormat::kBinary:
      return sink(BinaryHeaderBytes(info.shape, info.IsFrame() ? info.schema.get() : nullptr,
                                    file.coding.get(), RowsOfBinaryBlock(file)));
    case FileFormat::kNpy: return sink(HeaderOfMatrix(info.shape));
    case FileFormat::kCsv:
      if (info.IsFrame()) return options.header ? sink(CsvNames(*info.schema, options)) : OkStatus();
      break;
    default: break;
  }
  if (!info.IsFrame()) return GiveTextBeginning(info.shape, file.totals.nonzeros, options, sink);
  const auto beginning = EntryOf(options.format).frame_beginning;
  return beginning == nullptr ? OkStatus() : sink(beginning(*info.schema));
}

// How many bytes it has.
int64_t BytesOfPlainBeginning(const FileContent& file, const WriteOptions& options) {
  int64_t bytes = 0;
  const Status counted = GivePlainBeginning(file, options, [&](std::string_view piece) {
    bytes += static_cast<int64_t>(piece.size());
    return OkStatus();
  });
  HEDDLE_CHECK(counted.ok(), "what counts does not fail");
  return bytes;
}

Status GiveWhole(const Value& rows, const PackedOptions& options, const ByteSink& sink) {
  const FormatEntry& entry = EntryOf(options.options.format);
  return Pack(
      options.whole,
      [&](const ByteSink& to) {
        return rows.IsFrame() ? entry.write_frame(rows.frame(), options.options, to)
                              : entry.write(rows.matrix(), options.options, to);
      },
      sink);
}

WriteOptions OptionsOfRows(int64_t row_begin, const PackedOptions& packed) {
  WriteOptions options = packed.options;
  options.rows_before = row_begin;
  return options;
}

// The row of a frame whose line is the first that is not blank in a csv file without names.
int64_t FirstLine(const FileContent& file, const WriteOptions& options) {
  return options.header ? -1 : file.totals.first_filled;
}

// Many rows are counted by all threads.
int64_t CountNonzeros(const Matrix& matrix) {
  constexpr int64_t kCellsAtOnce = 1 << 17;
  const int64_t rows_at_once = std::max<int64_t>(1, kCellsAtOnce / std::max<int64_t>(1, matrix.columns()));
  std::atomic<int64_t> count = 0;
  ParallelFor(matrix.rows(), rows_at_once, [&](int64_t begin, int64_t end) {
    count.fetch_add(matrix.Rows(begin, end).CountNonzeros(), std::memory_order_relaxed);
  });
  return count;
}

}  // namespace

bool HasSections(const ValueInfo& info, FileFormat format) {
  if (info.IsFrame()) return format != FileFormat::kParquet && format != FileFormat::kArrow;
  return EntryOf(format).write == nullptr;
}

void RowTotals::Add(const RowTotals& more) {
  nonzeros += more.nonzeros;
  stored += more.stored;
  text_bytes += more.text_bytes;
  first_filled = std::min(first_filled, more.first_filled);
}

void RowTotals::Put(RecordWriter* writer) const {
  for (const int64_t number : {nonzeros, stored, text_bytes, first_filled}) writer->Put(number);
}

RowTotals RowTotals::Take(RecordTaker* taker) {
  RowTotals totals;
  for (int64_t* const number : {&totals.nonzeros, &totals.stored, &totals.text_bytes, &totals.first_filled})
    *number = taker->Take<int64_t>();
  return totals;
}

CountedCells CellsOf(const Value& rows, const WriteOptions& options) {
  return options.by_groups && rows.IsMatrix() ? CountedCells::Of(rows.matrix()) : CountedCells();
}

void PutCells(const CountedCells& cells, RecordWriter* writer) {
  writer->Put(cells.rows());
  writer->Put(static_cast<uint64_t>(cells.columns().size()));
  for (const CountedCells::Column& column : cells.columns()) {
    writer->Put(column.are_many ? int64_t{-1} : static_cast<int64_t>(column.cells.size()));
    writer->Put(column.runs);
    writer->Put(column.first);
    writer->Put(column.last);
    for (size_t i = 0; i < column.cells.size(); ++i) {
      writer->Put(column.cells[i]);
      writer->Put(column.rows[i]);
    }
  }
}

CountedCells TakeCells(RecordTaker* taker) {
  const auto rows = taker->Take<int64_t>();
  std::vector<CountedCells::Column> all;
  const auto columns = taker->Take<uint64_t>();
  for (uint64_t j = 0; j < columns && taker->ok(); ++j) {
    CountedCells::Column& column = all.emplace_back();
    const auto count = taker->Take<int64_t>();
    column.are_many = count < 0;
    column.runs = taker->Take<int64_t>();
    column.first = taker->Take<double>();
    column.last = taker->Take<double>();
    for (int64_t i = 0; i < count && taker->ok(); ++i) {
      column.cells.push_back(taker->Take<double>());
      column.rows.push_back(taker->Take<int64_t>());
    }
  }
  return {rows, std::move(all)};
}

Result<std::shared_ptr<const RowCoding>> CodingOf(const ValueInfo& info, const RowTotals& totals,
                                                  CountedCells cells, const WriteOptions& options) {
  const std::shared_ptr<const RowCoding> none;
  if (!options.by_groups || !info.IsMatrix()) return none;
  // Where the format of a matrix is sparse, operators make CSR of its groups, and that has no -0.0.
  const bool has_signed_zeros = totals.stored != totals.nonzeros;
  if (has_signed_zeros && ChooseFormat(info.shape, totals.stored) == Format::kSparse) return none;
  return RowCoding::Choose(std::move(cells), info.shape, info.element_type, totals.stored);
}

RowTotals TotalsOf(const Value& rows, int64_t row_begin, const WriteOptions& options) {
  const FileFormat format = options.format;
  RowTotals totals;
  if (rows.IsMatrix()) {
    totals.nonzeros = CountNonzeros(rows.matrix());
    if (format == FileFormat::kBinary) totals.stored = CountStoredCells(rows.matrix());
    return totals;
  }
  const Frame& frame = rows.frame();
  for (int64_t j = 0; format == FileFormat::kBinary && j < frame.columns(); ++j)
    totals.text_bytes += frame.column(j).text_bytes();
  if (format != FileFormat::kCsv) return totals;
  if (const int64_t first = FirstFilledRow(frame); first < frame.rows())
    totals.first_filled = row_begin + first;
  return totals;
}

bool HasTotals(const ValueInfo& info, FileFormat format) {
  return !info.IsFrame() || format == FileFormat::kBinary || format == FileFormat::kCsv;
}

PackedOptions PackingFor(const std::string& path, const WriteOptions& options) {
  const Packing packing = options.packing.value_or(PackingOfPath(path));
  PackedOptions packed{.options = options};
  packed.options.packing.reset();
  if (packing == Packing::kNone) return packed;
  // Most writers pack each piece where they make it, so that all threads do.
  if (EntryOf(options.format).packs_pieces)
    packed.options.packing = packing;
  else
    packed.whole = packing;
  return packed;
}

int64_t RowsOfUnit(const FileContent& file, const PackedOptions& packed) {
  const WriteOptions& options = packed.options;
  const Shape& shape = file.info.shape;
  if (!HasSections(file.info, options.format)) return std::max<int64_t>(1, shape.rows);
  if (options.format == FileFormat::kBinary) return RowsOfBinaryBlock(file);
  if (!options.packing) return 1;
  if (options.format == FileFormat::kNpy) return RowsOfCellPiece(shape.columns);
  return RowsOfTextPiece(file, options);
}

int64_t RowsOfManyPieces(const FileContent& file, const PackedOptions& packed) {
  constexpr int64_t kPieces = 64;
  return kPieces * RowsOfTextPiece(file, packed.options);
}

Status GiveBeginning(const FileContent& file, const PackedOptions& packed, const ByteSink& sink) {
  return GivePlainBeginning(file, packed.options, PackingSink(packed.options.packing, sink));
}

Result<std::string> BeginningOf(const FileContent& file, const PackedOptions& packed) {
  std::string bytes;
  HEDDLE_RETURN_IF_ERROR(GiveBeginning(file, packed, [&](std::string_view piece) {
    bytes += piece;
    return OkStatus();
  }));
  return bytes;
}

Status GiveSection(const Value& rows, int64_t row_begin, const FileContent& file, const PackedOptions& packed,
                   const ByteSink& sink, BinaryIndex* index) {
  if (!HasSections(file.info, packed.options.format)) return GiveWhole(rows, packed, sink);
  const WriteOptions options = OptionsOfRows(row_begin, packed);
  if (options.format == FileFormat::kBinary)
    return GiveBinaryBlocks(rows, file.coding.get(), RowsOfBinaryBlock(file), options, sink, index);
  if (rows.IsFrame()) return WriteFrameRows(rows.frame(), FirstLine(file, options), options, sink);
  if (options.format == FileFormat::kNpy)
    return GiveCells(rows.matrix(), options.packing, options.cancelled, sink);
  return WriteTextRows(rows.matrix(), RowsOfUnit(file, packed), options, sink);
}

Counting CountingOf(const FileContent& file, const PackedOptions& packed) {
  const FormatEntry& entry = EntryOf(packed.options.format);
  if (packed.options.packing || !HasSections(file.info, entry.format) || entry.format == FileFormat::kBinary)
    return Counting::kNot;
  if (file.info.IsFrame()) return entry.write_frame == nullptr ? Counting::kOfRows : Counting::kNot;
  return entry.format == FileFormat::kNpy ? Counting::kAtOnce : Counting::kOfRows;
}

int64_t BytesOfSection(const Value& rows, int64_t row_begin, const FileContent& file,
                       const PackedOptions& packed) {
  const WriteOptions options = OptionsOfRows(row_begin, packed);
  if (rows.IsFrame()) return BytesOfFrameRows(rows.frame(), FirstLine(file, options), options);
  if (options.format == FileFormat::kNpy) return rows.matrix().cells() * int64_t{sizeof(double)};
  return BytesOfTextRows(rows.matrix(), options);
}

Result<std::string> EndOf(const FileContent& file, int64_t bytes_of_sections, BinaryIndex index,
                          const PackedOptions& packed) {
  const WriteOptions& options = packed.options;
  if (!HasSections(file.info, options.format)) return std::string();
  const int64_t beginning = BytesOfPlainBeginning(file, options);
  std::string plain;
  if (options.format == FileFormat::kBinary)
    plain = BinaryEndBytes(std::move(index), static_cast<uint64_t>(beginning));
  if (options.format == FileFormat::kText && !file.info.IsFrame() && bytes_of_sections == 0)
    plain = "0 0 0\n";
  if (!options.packing) return plain;
  std::string bytes;
  // A file that holds nothing is one part of nothing.
  const bool is_empty = plain.empty() && beginning == 0 && bytes_of_sections == 0;
  HEDDLE_RETURN_IF_ERROR(is_empty ? AppendPacked(*options.packing, {}, &bytes)
                                  : PackPiece(options.packing, plain, &bytes));
  return bytes;
}

}  // namespace heddle::ops

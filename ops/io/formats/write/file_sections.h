// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "core/values/value.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/counted_cells.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/write/record_bytes.h"

// The bytes of a file, made section by section: what stands before the rows, rows from a multiple of
// RowsOfUnit() up to another, what stands behind them. Whoever makes the sections, the bytes are the same.
namespace heddle::ops {

/// Whether the rows of a format have bytes of their own; else a section is the whole file.
bool HasSections(const ValueInfo& info, FileFormat format);

/// What has to be known of all rows of a file before the first of its bytes, or for its metadata.
struct RowTotals {
  int64_t nonzeros = 0;                                        ///< Of a matrix.
  int64_t stored = 0;                                          ///< Of a binary one: cells that are not +0.0.
  int64_t text_bytes = 0;                                      ///< Of a frame in binary.
  int64_t first_filled = std::numeric_limits<int64_t>::max();  ///< Of a frame in csv (FirstFilledRow()).

  /// Rows that follow these.
  void Add(const RowTotals& more);
  void Put(RecordWriter* writer) const;
  static RowTotals Take(RecordTaker* taker);
};
/// The totals of rows of a value that begin at its row `row_begin`.
RowTotals TotalsOf(const Value& rows, int64_t row_begin, const WriteOptions& options);

/// Whether they depend on the cells.
bool HasTotals(const ValueInfo& info, FileFormat format);

/// The cells of rows of a matrix that is written by column groups; none of other values.
CountedCells CellsOf(const Value& rows, const WriteOptions& options);
void PutCells(const CountedCells& cells, RecordWriter* writer);
CountedCells TakeCells(RecordTaker* taker);
/// How the matrix of these rows is stored by column groups; nullptr where it is not. `cells`: of all rows.
/// kResourceExhausted.
Result<std::shared_ptr<const RowCoding>> CodingOf(const ValueInfo& info, const RowTotals& totals,
                                                  CountedCells cells, const WriteOptions& options);

/// A file to come: all rows of a value, or of several files those of one.
struct FileContent {
  ValueInfo info;         ///< Of these rows together.
  int64_t row_begin = 0;  ///< The number of the first of them in the value.
  RowTotals totals;
  std::shared_ptr<const RowCoding> coding;  ///< Of a matrix by column groups.
};

/// The options with the packing of pieces as it is of this file: by the option, else by the path's end.
/// Formats that pack what they give as one say so by FormatEntry::packs_pieces.
struct PackedOptions {
  WriteOptions options;
  Packing whole = Packing::kNone;  ///< How all bytes of the file are packed as one.
};
PackedOptions PackingFor(const std::string& path, const WriteOptions& options);

/// Sections begin at multiples of so many rows.
int64_t RowsOfUnit(const FileContent& file, const PackedOptions& options);
/// Gives, or returns, what stands before the rows.
Status GiveBeginning(const FileContent& file, const PackedOptions& options, const ByteSink& sink);
Result<std::string> BeginningOf(const FileContent& file, const PackedOptions& options);
/// Gives the section of these rows, which begin at row `row_begin` of the value. `index`: of binary files.
Status GiveSection(const Value& rows, int64_t row_begin, const FileContent& file,
                   const PackedOptions& options, const ByteSink& sink, BinaryIndex* index);
/// Whether the number of bytes of a section can be found without making them: not at all, in about half the
/// time of making them, or at once.
enum class Counting : uint8_t { kNot, kOfRows, kAtOnce };
Counting CountingOf(const FileContent& file, const PackedOptions& options);
/// How many rows of a format of text give all threads something to do, and about how many bytes they have.
int64_t RowsOfManyPieces(const FileContent& file, const PackedOptions& options);
constexpr int64_t kBytesOfManyPieces = int64_t{24} << 20;
/// How many bytes GiveSection() gives, where counting is possible. The number means nothing when the write
/// was cancelled meanwhile.
int64_t BytesOfSection(const Value& rows, int64_t row_begin, const FileContent& file,
                       const PackedOptions& options);
/// What stands behind the rows: their sections have so many bytes, and this index.
Result<std::string> EndOf(const FileContent& file, int64_t bytes_of_sections, BinaryIndex index,
                          const PackedOptions& options);

}  // namespace heddle::ops

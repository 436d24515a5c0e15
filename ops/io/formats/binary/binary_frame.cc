// SPDX-License-Identifier: Apache-2.0
// Frames in binary files: in each block one column after the other.
#include <bit>
#include <cmath>
#include <limits>

#include "core/text/utf8.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

// Writes the parts of a block, each rounded up with zeros.
class PartWriter {
 public:
  explicit PartWriter(char* out) : out_(out) {}

  // `bytes` bytes for the caller to fill.
  char* Part(int64_t bytes) {
    char* const part = out_;
    const int64_t rounded = RoundUpTo8(bytes);
    if (rounded > bytes) std::memset(part + bytes, 0, static_cast<size_t>(rounded - bytes));
    out_ += rounded;
    return part;
  }
  void Copy(const void* from, int64_t bytes) {
    char* const part = Part(bytes);
    if (bytes > 0) std::memcpy(part, from, static_cast<size_t>(bytes));
  }

 private:
  char* out_;
};

ColumnPiece PieceOf(const Column& column) {
  ColumnPiece piece{.text_bytes = column.text_bytes()};
  for (int64_t i = 0; i < column.rows() && !piece.may_miss; ++i) piece.may_miss = column.IsMissing(i);
  return piece;
}

void EncodeColumn(const Column& column, const ColumnPiece& piece, PartWriter* parts) {
  const int64_t rows = column.rows();
  switch (column.storage()) {
    case ColumnStorage::kDoubles: {
      auto* const cells = reinterpret_cast<double*>(parts->Part(rows * 8));
      for (int64_t i = 0; i < rows; ++i) {
        const double cell = column.doubles()[i];
        cells[i] = std::isnan(cell) ? std::numeric_limits<double>::quiet_NaN() : cell;
      }
      break;
    }
    case ColumnStorage::kIntegers: parts->Copy(column.integers(), rows * 8); break;
    case ColumnStorage::kBooleans: parts->Copy(column.booleans(), rows); break;
    case ColumnStorage::kTexts: {
      auto* const ends = reinterpret_cast<int64_t*>(parts->Part(rows * 8));
      for (int64_t i = 0; i < rows; ++i) ends[i] = column.offsets()[i + 1] - column.offsets()[0];
      parts->Copy(rows == 0 ? nullptr : column.texts() + column.offsets()[0], piece.text_bytes);
      break;
    }
  }
  if (piece.may_miss) parts->Copy(column.missing(), rows);
}

Status Encode(const Frame& frame, int64_t begin, int64_t end, EncodedBlock* block) {
  const Frame rows = frame.Rows(begin, end);
  block->layout = BlockLayout::kColumns;
  block->columns.clear();
  int64_t bytes = 0;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const Column column = rows.column(j);
    block->columns.push_back(PieceOf(column));
    bytes += BytesOfColumnPiece(column.type(), rows.rows(), block->columns.back());
  }
  HEDDLE_RETURN_IF_ERROR(block->bytes.Renew(bytes, "a binary file"));
  PartWriter parts(block->bytes.data());
  for (int64_t j = 0; j < frame.columns(); ++j)
    EncodeColumn(rows.column(j), block->columns[static_cast<size_t>(j)], &parts);
  return OkStatus();
}

// One block's part of one column: where its cells, texts and marks are.
struct Piece {
  const char* cells = nullptr;
  const char* texts = nullptr;
  const char* marks = nullptr;  // nullptr: no cell is missing.
  int64_t text_bytes = 0;
};

// What is wrong with it; "" where nothing is. `rows` is the number of its rows.
std::string_view FaultOf(const Piece& piece, ColumnType type, int64_t rows) {
  const auto is_missing = [&](int64_t i) { return piece.marks != nullptr && piece.marks[i] != 0; };
  for (int64_t i = 0; piece.marks != nullptr && i < rows; ++i)
    if (static_cast<uint8_t>(piece.marks[i]) > 1) return "a mark of missing cells is neither 0 nor 1";
  if (StorageOf(type) == ColumnStorage::kBooleans) {
    for (int64_t i = 0; i < rows; ++i)
      if (static_cast<uint8_t>(piece.cells[i]) > 1) return "a boolean is neither 0 nor 1";
  } else if (StorageOf(type) == ColumnStorage::kTexts) {
    int64_t begin = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const auto end = Load<int64_t>(piece.cells + i * 8);
      if (end < begin || end > piece.text_bytes) return "their texts overlap";
      if (is_missing(i) && end != begin) return "a missing cell has a text";
      begin = end;
    }
    if (begin != piece.text_bytes) return "their texts are shorter than the index says";
  } else if (type == ColumnType::kInteger32) {
    for (int64_t i = 0; i < rows; ++i) {
      const auto cell = Load<int64_t>(piece.cells + i * 8);
      if (cell < INT32_MIN || cell > INT32_MAX) return "an INT32 is larger than one can be";
    }
  }
  return {};
}

// A column as it comes out of blocks, rows [begin, end). The texts keep their places in the blocks, so that
// blocks can be taken in any order.
class ColumnTarget {
 public:
  static Result<ColumnTarget> Make(const BinaryFile& file, int64_t column, int64_t begin, int64_t end) {
    ColumnTarget target;
    const ColumnType type = file.schema()->types[static_cast<size_t>(column)];
    bool may_miss = false;
    int64_t text_bytes = 0;
    const int64_t first_block = begin / file.rows_of_block();
    for (int64_t b = first_block; begin < end && b < file.BlocksUpTo(end); ++b) {
      const ColumnPiece piece = file.PieceOf(b, column);
      target.text_begins_.push_back(text_bytes);
      may_miss = may_miss || piece.may_miss;
      if (StorageOf(type) == ColumnStorage::kTexts) text_bytes += piece.text_bytes;
    }
    HEDDLE_ASSIGN_OR_RETURN(target.column_, Column::Make(type, end - begin, text_bytes, may_miss));
    if (StorageOf(type) == ColumnStorage::kTexts && begin == end) target.column_.mutable_offsets()[0] = 0;
    return target;
  }

  // Rows [from, to) of the `index`-th of its blocks become rows from `row` on.
  void Take(size_t index, const Piece& piece, int64_t from, int64_t to, int64_t row) {
    const int64_t rows = to - from;
    const auto copy = [&](int64_t bytes_of_cell, void* out) {
      std::memcpy(static_cast<char*>(out) + row * bytes_of_cell, piece.cells + from * bytes_of_cell,
                  static_cast<size_t>(rows * bytes_of_cell));
    };
    switch (column_.storage()) {
      case ColumnStorage::kDoubles: copy(8, column_.mutable_doubles()); break;
      case ColumnStorage::kIntegers: copy(8, column_.mutable_integers()); break;
      case ColumnStorage::kBooleans: copy(1, column_.mutable_booleans()); break;
      case ColumnStorage::kTexts: {
        const int64_t base = text_begins_[index];
        const auto begin_of = [&](int64_t i) {
          return i == 0 ? 0 : Load<int64_t>(piece.cells + (i - 1) * 8);
        };
        int64_t* const offsets = column_.mutable_offsets() + row;
        for (int64_t i = from; i < to; ++i) offsets[i - from + 1] = base + begin_of(i + 1);
        // Between two blocks it is the end of the one before, which writes it.
        if (row == 0) offsets[0] = base + begin_of(from);
        const int64_t first = begin_of(from), last = begin_of(to);
        if (last > first)
          std::memcpy(column_.mutable_texts() + base + first, piece.texts + first,
                      static_cast<size_t>(last - first));
        break;
      }
    }
    if (column_.mutable_missing() != nullptr && piece.marks != nullptr)
      std::memcpy(column_.mutable_missing() + row, piece.marks + from, static_cast<size_t>(rows));
  }

  Column Finish() && { return std::move(column_); }

 private:
  Column column_;
  std::vector<int64_t> text_begins_;  // Where the texts of each block begin.
};

Status TakeBlock(const BinaryFile& file, int64_t block, const char* bytes, int64_t row_begin, int64_t row_end,
                 std::vector<ColumnTarget>* columns) {
  const int64_t first = file.FirstRow(block);
  const int64_t rows = file.EndRow(block) - first;
  const int64_t from = std::max(row_begin, first) - first, to = std::min(row_end, first + rows) - first;
  const auto index = static_cast<size_t>(block - row_begin / file.rows_of_block());
  for (size_t j = 0; j < columns->size(); ++j) {
    const ColumnType type = file.schema()->types[j];
    const ColumnPiece entry = file.PieceOf(block, static_cast<int64_t>(j));
    const bool texts = StorageOf(type) == ColumnStorage::kTexts;
    Piece piece{.cells = bytes, .text_bytes = entry.text_bytes};
    bytes += RoundUpTo8(rows * (StorageOf(type) == ColumnStorage::kBooleans ? 1 : 8));
    piece.texts = bytes;
    if (texts) bytes += RoundUpTo8(entry.text_bytes);
    if (entry.may_miss) {
      piece.marks = bytes;
      bytes += RoundUpTo8(rows);
    }
    if (const std::string_view fault = FaultOf(piece, type, rows); !fault.empty())
      return file.Malformed(block, fault);
    (*columns)[j].Take(index, piece, from, to, first + from - row_begin);
  }
  return OkStatus();
}

}  // namespace

Status EncodeRows(const Frame& frame, int64_t begin, int64_t end, EncodedBlock* block) {
  return Encode(frame, begin, end, block);
}

Result<Frame> ReadBinaryFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                              int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const BinaryFile file, BinaryFile::Open(options, files));
  if (file.size() != summary.text_bytes || file.schema() == nullptr || file.shape() != summary.shape ||
      *file.schema() != *summary.schema)
    return ItChanged(options);
  std::vector<ColumnTarget> targets;
  for (int64_t j = 0; j < file.shape().columns; ++j) {
    HEDDLE_ASSIGN_OR_RETURN(ColumnTarget target, ColumnTarget::Make(file, j, row_begin, row_end));
    targets.push_back(std::move(target));
  }
  HEDDLE_RETURN_IF_ERROR(file.Visit(
      row_begin, row_end, options.cancelled, [](int64_t) { return nullptr; },
      [&](int64_t block, const char* bytes) {
        return TakeBlock(file, block, bytes, row_begin, row_end, &targets);
      }));
  std::vector<Column> columns;
  for (ColumnTarget& target : targets) columns.push_back(std::move(target).Finish());
  return Frame(summary.schema, std::move(columns));
}

}  // namespace heddle::ops

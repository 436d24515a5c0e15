// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory/buffer.h"
#include "core/status.h"
#include "core/values/scalar.h"
#include "core/values/schema.h"
#include "core/values/shape.h"

namespace heddle {

/// One column of a frame: cells of one type in one buffer, which copies share. Its maker fills it through the
/// mutable_ accessors before handing it on.
///
/// FP64, FP32:           doubles()[i]
/// INT64, INT32:         integers()[i]
/// BOOLEAN:              booleans()[i], 0 or 1
/// STRING, CHARACTER:    bytes [offsets()[i], offsets()[i + 1]) of texts(), UTF-8
/// Any cell may be missing; what the array holds in its place is 0 or the empty text.
class Column {
 public:
  Column() = default;
  /// Uninitialised cells (offsets too), with room for `text_bytes` bytes of texts; missing() is all 0 where
  /// `may_miss`, else there is none.
  static Result<Column> Make(ColumnType type, int64_t rows, int64_t text_bytes, bool may_miss);
  /// Copies of these cells, none missing; `type` has their storage.
  static Result<Column> OfTexts(std::span<const std::string_view> texts,
                                ColumnType type = ColumnType::kString);
  static Result<Column> OfDoubles(std::span<const double> cells, ColumnType type = ColumnType::kFloat64);
  static Result<Column> OfIntegers(std::span<const int64_t> cells, ColumnType type = ColumnType::kInteger64);
  static Result<Column> OfBooleans(std::span<const bool> cells);

  /// Cells in memory of somebody else, as Buffer::Adopt has it, laid out as said above: `rows` numbers or
  /// booleans, or `rows` + 1 offsets into `texts`; `missing`: nullptr, or a byte a row. kInvalidArgument,
  /// `release` not called, for what no column holds: unaligned cells, falling offsets, texts that are not
  /// UTF-8, numbers that the type cannot hold, marks but 0 and 1, missing cells that are not 0 or empty.
  static Result<Column> Adopt(ColumnType type, int64_t rows, const void* cells, const char* texts,
                              const uint8_t* missing, std::function<void()> release);

  ColumnType type() const { return type_; }
  ColumnStorage storage() const { return StorageOf(type_); }
  int64_t rows() const { return rows_; }
  bool MayMiss() const { return missing_ != nullptr; }

  const double* doubles() const { return static_cast<const double*>(cells_); }
  const int64_t* integers() const { return static_cast<const int64_t*>(cells_); }
  const uint8_t* booleans() const { return static_cast<const uint8_t*>(cells_); }
  const int64_t* offsets() const { return static_cast<const int64_t*>(cells_); }
  const char* texts() const { return texts_; }
  /// One byte a row, 1 where the cell is missing; nullptr where none is.
  const uint8_t* missing() const { return missing_; }
  double* mutable_doubles() { return static_cast<double*>(cells_); }
  int64_t* mutable_integers() { return static_cast<int64_t*>(cells_); }
  uint8_t* mutable_booleans() { return static_cast<uint8_t*>(cells_); }
  int64_t* mutable_offsets() { return static_cast<int64_t*>(cells_); }
  char* mutable_texts() { return texts_; }
  uint8_t* mutable_missing() { return missing_; }

  bool IsMissing(int64_t row) const { return missing_ != nullptr && missing_[row] != 0; }
  /// The text of a cell of kTexts; empty of a missing one.
  std::string_view TextAt(int64_t row) const {
    return {texts_ + offsets()[row], static_cast<size_t>(offsets()[row + 1] - offsets()[row])};
  }

  /// Rows [begin, end) as a view that shares memory. The first offset of a view of texts is not zero.
  Column Rows(int64_t begin, int64_t end) const;
  /// Bytes of its memory that belong to these rows.
  int64_t bytes() const;
  /// Bytes of the texts of these rows; 0 of numbers.
  int64_t text_bytes() const {
    return storage() == ColumnStorage::kTexts && rows_ > 0 ? offsets()[rows_] - offsets()[0] : 0;
  }

 private:
  ColumnType type_ = ColumnType::kString;
  int64_t rows_ = 0;
  void* cells_ = nullptr;
  char* texts_ = nullptr;
  uint8_t* missing_ = nullptr;
  std::shared_ptr<Buffer> memory_;  // Cells, then texts, then marks.
};

/// A table: columns of one type each, with names. A value like a matrix: copies share memory (a copy touches
/// one counter), rows can be cut off as views, and nobody writes to a frame that somebody else can see.
class Frame {
 public:
  Frame() = default;  ///< 0 x 0.
  /// Of columns that the caller cannot vouch for: kInvalidArgument where they differ in their rows or there
  /// are other names than columns; no names at all are C1 to Cn.
  static Result<Frame> Of(std::vector<std::string> names, std::vector<Column> columns);
  /// All columns have the same number of rows and the types of the schema.
  Frame(std::shared_ptr<const Schema> schema, std::vector<Column> columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return contents_ == nullptr ? 0 : contents_->schema->columns(); }
  Shape shape() const { return {rows(), columns()}; }
  const std::shared_ptr<const Schema>& schema() const;
  /// Column `column` of these rows, from 0.
  Column column(int64_t column) const;

  /// Rows [begin, end) as a view that shares memory.
  Frame Rows(int64_t begin, int64_t end) const;
  /// Bytes of its memory that belong to these rows.
  int64_t bytes() const;

  bool IsMissing(int64_t row, int64_t column) const;
  /// The scalar that a cell is; the empty string, 0 or FALSE of a missing one.
  Scalar At(int64_t row, int64_t column) const;
  /// Appends the text of a cell as scalars have it (language reference 2.9); nothing of a missing one.
  void AppendText(int64_t row, int64_t column, std::string* out) const;

  /// True if both have the same size and column types and every cell is the same: missing like missing,
  /// numbers with the same bytes (NaN equals NaN), the same texts. Names do not matter.
  static bool SameCells(const Frame& a, const Frame& b);

 private:
  struct Contents {
    std::shared_ptr<const Schema> schema;
    std::vector<Column> columns;
  };
  const Column& ColumnOf(int64_t column) const { return contents_->columns[static_cast<size_t>(column)]; }

  std::shared_ptr<const Contents> contents_;
  int64_t begin_ = 0;
  int64_t rows_ = 0;
};

}  // namespace heddle

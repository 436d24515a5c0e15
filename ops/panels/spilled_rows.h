// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/panels/spilled_array.h"

namespace heddle::ops {

/// Rows of a matrix or frame in a spill file: its arrays one behind the other, as they are in memory. Any of
/// its rows can be read without the others, but those of a compressed matrix, which are one array
/// (core/values/column_groups_bytes.h). Immutable, thread-safe.
class SpilledRows {
 public:
  /// Bytes of a spill file that Write() may take.
  static int64_t BytesFor(const Value& rows);
  /// Writes a matrix or frame at `offset`. Fails as SpillFile::WriteAt does.
  static Result<std::shared_ptr<const SpilledRows>> Write(std::shared_ptr<SpillFile> file, int64_t offset,
                                                          const Value& rows);

  bool IsFrame() const { return schema_ != nullptr; }
  bool IsSparse() const { return is_sparse_; }
  ElementType element_type() const { return element_type_; }
  Shape shape() const { return shape_; }
  int64_t file_bytes() const { return file_bytes_; }

  /// Rows [begin, end) as they were written. kDataLoss, kResourceExhausted.
  Result<Value> Read(int64_t begin, int64_t end) const;
  /// Cells of rows [begin, end) of a matrix that is not CSR into memory of their size.
  Status ReadCells(int64_t begin, int64_t end, void* cells) const;
  /// Which entries rows [begin, end) of a CSR matrix have, counted from the first one that was written.
  Status ReadEntryRange(int64_t begin, int64_t end, int64_t* first, int64_t* last) const;
  /// The end - begin + 1 offsets of these rows, in the same count.
  Status ReadOffsets(int64_t begin, int64_t end, int64_t* offsets) const;
  /// Entries [begin, end), in the same count.
  Status ReadEntries(int64_t begin, int64_t end, int32_t* column_indexes, void* values) const;
  /// Rows [begin, end) will be read soon.
  void Announce(int64_t begin, int64_t end) const;

 private:
  struct SpilledColumn {
    bool may_miss = false;
    int64_t first_text_byte = 0;  // What offsets of texts begin at.
    SpilledArray cells, texts, missing;
  };
  class Writer;

  SpilledRows() = default;
  Status WriteMatrix(const Matrix& matrix, Writer* writer);
  Status WriteFrame(const Frame& frame, Writer* writer);
  Result<Matrix> ReadGroups(int64_t begin, int64_t end) const;
  Result<Column> ReadColumn(size_t column, int64_t begin, int64_t end) const;

  std::shared_ptr<SpillFile> file_;
  Shape shape_;
  int64_t file_bytes_ = 0;
  // Of a matrix.
  bool is_sparse_ = false;
  bool is_compressed_ = false;
  ElementType element_type_ = ElementType::kFloat64;
  int64_t first_entry_ = 0;
  SpilledArray values_, column_indexes_, row_offsets_;
  // Of a frame.
  std::shared_ptr<const Schema> schema_;
  std::vector<SpilledColumn> columns_;
};

}  // namespace heddle::ops

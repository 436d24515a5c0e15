// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/frame.h"

// The wire form of a frame of columns: what its columns are, then their memory, column by column: cells (of
// texts the offsets, which begin anywhere), bytes of texts, marks of missing cells.
namespace heddle::engine {

/// Number, types, names and sizes of the columns as bytes.
std::string EncodeColumns(const heddle::Frame& frame);

/// A run of bytes of the memory of a frame, which holds it.
struct ColumnPart {
  const void* data = nullptr;
  int64_t bytes = 0;
};
/// In the order in which they travel.
std::vector<ColumnPart> PartsOf(const heddle::Frame& frame);

/// Puts a frame together from what EncodeColumns and PartsOf gave another process; trusts nothing.
class IncomingFrame {
 public:
  /// Makes room for the bytes of EncodeColumns.
  Status Begin(int64_t rows, int64_t schema_bytes);
  char* schema_data() { return schema_.data(); }
  int64_t schema_bytes() const { return static_cast<int64_t>(schema_.size()); }

  /// Allocates the columns, once the bytes of EncodeColumns are there; again does nothing. kDataLoss when
  /// they are malformed, kResourceExhausted.
  Status MakeColumns();
  /// Of all parts; 0 before MakeColumns.
  int64_t bytes() const { return bytes_; }
  /// Where bytes [offset, offset + size) of the parts, one behind the other, go. kDataLoss when they are not
  /// all of one part.
  Result<uint8_t*> Place(uint64_t offset, uint64_t size);
  /// After all bytes. kDataLoss when offsets do not ascend or a truth value is neither 0 nor 1.
  Result<heddle::Frame> Finish();

 private:
  struct Part {
    uint64_t begin;
    uint64_t bytes;
    uint8_t* data;
  };
  void AddPart(void* data, int64_t bytes);
  Status MakeColumn(std::string_view* in, bool is_named);

  int64_t rows_ = 0;
  std::string schema_;
  bool is_made_ = false;
  Schema types_;
  std::vector<Column> columns_;
  std::vector<int64_t> text_bytes_;  // Of each column.
  std::vector<Part> parts_;
  int64_t bytes_ = 0;
};

/// Offsets of `rows` rows that own `entries` entries, shifted to begin at zero. kDataLoss unless they ascend
/// from there to `entries`; `what` owns them ("a sparse matrix").
Status StartAtZero(int64_t* offsets, int64_t rows, int64_t entries, const char* what);

}  // namespace heddle::engine

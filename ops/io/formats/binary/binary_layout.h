// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

// The records of a binary file as they lie in it, little endian (docs/files.md).
namespace heddle::ops {

/// A first byte that no text has, and line ends, which copying as text changes.
constexpr std::string_view kBinaryMark = "\x89HDL\r\n\x1a\n";
constexpr std::string_view kBinaryEndMark = "HDLend\r\n";
constexpr uint32_t kBinaryVersion = 1;
constexpr uint8_t kMatrixKind = 1, kFrameKind = 2;
constexpr uint8_t kNoGroups = 0, kColumnGroups = 1;
constexpr int64_t kMostRowsOfBlock = 1 << 20;

struct BinaryHeader {
  char mark[8];
  uint32_t version;
  uint8_t kind;
  uint8_t compression;  // kNoGroups or kColumnGroups
  uint8_t zero[2];
  uint64_t rows;
  uint64_t columns;
  uint64_t rows_of_block;
  uint64_t schema_bytes;  // behind the header; of a matrix those of its column groups, 0 without them
  uint32_t more_zero[3];
  uint32_t checksum;  // of what is before, and of the schema
};
constexpr int64_t kHeaderBytes = 64;
static_assert(sizeof(BinaryHeader) == kHeaderBytes);

/// One for each block, and behind it of a frame a uint64 for each column: twice the bytes of its texts, and 1
/// more where cells may be missing.
struct BinaryEntry {
  uint64_t offset;
  uint64_t bytes;
  uint64_t stored;
  uint32_t layout;
  uint32_t checksum;  // of the block
};
constexpr int64_t kEntryBytes = 32;
static_assert(sizeof(BinaryEntry) == kEntryBytes);
constexpr int64_t kPieceBytes = 8;

struct BinaryEnd {
  uint64_t index;  // where it begins
  uint64_t stored;
  uint32_t zero;
  uint32_t checksum;  // of the index and of what is before
  char mark[8];
};
constexpr int64_t kEndBytes = 32;
static_assert(sizeof(BinaryEnd) == kEndBytes);

/// A record or a number that lies anywhere.
template <typename T>
T Load(const char* at) {
  T record;
  std::memcpy(&record, at, sizeof(T));
  return record;
}

}  // namespace heddle::ops

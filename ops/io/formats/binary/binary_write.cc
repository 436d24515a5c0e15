// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "ops/io/checksums/crc32c.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/binary/row_coding.h"
#include "ops/io/formats/ordered_pieces.h"

namespace heddle::ops {
namespace {

template <typename T>
void Append(const T& record, std::string* out) {
  out->append(reinterpret_cast<const char*>(&record), sizeof(T));
}

std::string SchemaBytes(const Schema& schema) {
  std::string bytes(1, static_cast<char>(!schema.names.empty()));
  for (const ColumnType type : schema.types) bytes.push_back(static_cast<char>(type));
  for (const std::string& name : schema.names) {
    Append(static_cast<uint32_t>(name.size()), &bytes);
    bytes.append(name);
  }
  bytes.resize(static_cast<size_t>(RoundUpTo8(static_cast<int64_t>(bytes.size()))));
  return bytes;
}

void AppendEntry(const EncodedBlock& block, uint64_t offset, uint32_t checksum, std::string* index) {
  Append(BinaryEntry{.offset = offset,
                     .bytes = block.view().size(),
                     .stored = static_cast<uint64_t>(block.stored),
                     .layout = static_cast<uint32_t>(block.layout),
                     .checksum = checksum},
         index);
  for (const ColumnPiece& piece : block.columns)
    Append(static_cast<uint64_t>(piece.text_bytes) << 1 | static_cast<uint64_t>(piece.may_miss), index);
}

}  // namespace

std::string BinaryHeaderBytes(const Shape& shape, const Schema* schema, const RowCoding* coding,
                              int64_t rows_of_block) {
  const std::string schema_bytes = schema != nullptr   ? SchemaBytes(*schema)
                                   : coding != nullptr ? coding->header()
                                                       : std::string();
  BinaryHeader header = {};
  kBinaryMark.copy(header.mark, sizeof(header.mark));
  header.version = kBinaryVersion;
  header.kind = schema == nullptr ? kMatrixKind : kFrameKind;
  header.compression = coding == nullptr ? kNoGroups : kColumnGroups;
  header.rows = static_cast<uint64_t>(shape.rows);
  header.columns = static_cast<uint64_t>(shape.columns);
  header.rows_of_block = static_cast<uint64_t>(rows_of_block);
  header.schema_bytes = schema_bytes.size();
  std::string bytes;
  Append(header, &bytes);
  header.checksum = Crc32c(schema_bytes, Crc32c({bytes.data(), offsetof(BinaryHeader, checksum)}));
  bytes.clear();
  Append(header, &bytes);
  return bytes + schema_bytes;
}

void BinaryIndex::Move(std::string* entries, int64_t blocks, uint64_t offset) {
  if (blocks == 0) return;
  const size_t bytes_of_entry = entries->size() / static_cast<size_t>(blocks);
  for (size_t at = 0; at < entries->size(); at += bytes_of_entry) {
    static_assert(offsetof(BinaryEntry, offset) == 0);
    const uint64_t moved = Load<uint64_t>(entries->data() + at) + offset;
    std::memcpy(entries->data() + at, &moved, sizeof(moved));
  }
}

void BinaryIndex::Append(BinaryIndex next) {
  Move(&next.entries, next.blocks, bytes);
  entries += next.entries;
  blocks += next.blocks;
  bytes += next.bytes;
  stored += next.stored;
}

std::string BinaryEndBytes(BinaryIndex index, uint64_t begin) {
  BinaryIndex::Move(&index.entries, index.blocks, begin);
  BinaryEnd end = {};
  end.index = begin + index.bytes;
  end.stored = index.stored;
  kBinaryEndMark.copy(end.mark, sizeof(end.mark));
  std::string bytes;
  Append(end, &bytes);
  end.checksum = Crc32c({bytes.data(), offsetof(BinaryEnd, checksum)}, Crc32c(index.entries));
  Append(end, &index.entries);
  return std::move(index.entries);
}

Status GiveBinaryBlocks(int64_t rows, int64_t rows_of_block, const EncodeBlock& encode,
                        const WriteOptions& options, const ByteSink& sink, BinaryIndex* index) {
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    EncodedBlock block;
    uint32_t checksum = 0;
    std::string packed;
  };
  int64_t next_row = 0;
  return GiveInOrder<Piece>(
      options.cancelled,
      [&](Piece* piece) {
        if (next_row >= rows) return false;
        piece->begin = next_row;
        piece->end = next_row = std::min(next_row + rows_of_block, rows);
        return true;
      },
      [&](Piece* piece) {
        HEDDLE_RETURN_IF_ERROR(encode(piece->begin, piece->end, &piece->block));
        piece->checksum = Crc32c(piece->block.view());
        return PackPiece(options.packing, piece->block.view(), &piece->packed);
      },
      [&](Piece* piece) {
        const std::string_view bytes = piece->block.view();
        AppendEntry(piece->block, index->bytes, piece->checksum, &index->entries);
        ++index->blocks;
        index->bytes += bytes.size();
        index->stored += static_cast<uint64_t>(piece->block.stored);
        return sink(options.packing ? std::string_view(piece->packed) : bytes);
      });
}

Status GiveBinaryBlocks(const Value& rows, const RowCoding* coding, int64_t rows_of_block,
                        const WriteOptions& options, const ByteSink& sink, BinaryIndex* index) {
  return GiveBinaryBlocks(
      rows.shape().rows, rows_of_block,
      [&](int64_t begin, int64_t end, EncodedBlock* block) {
        if (coding != nullptr) return coding->Encode(rows.matrix(), begin, end, block);
        return rows.IsFrame() ? EncodeRows(rows.frame(), begin, end, block)
                              : EncodeRows(rows.matrix(), begin, end, block);
      },
      options, sink, index);
}

}  // namespace heddle::ops

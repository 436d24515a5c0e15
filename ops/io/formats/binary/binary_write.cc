// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "ops/io/files/crc32c.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
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

std::string HeaderBytes(const Shape& shape, const Schema* schema, int64_t rows_of_block) {
  const std::string schema_bytes = schema == nullptr ? std::string() : SchemaBytes(*schema);
  BinaryHeader header = {};
  kBinaryMark.copy(header.mark, sizeof(header.mark));
  header.version = kBinaryVersion;
  header.kind = schema == nullptr ? kMatrixKind : kFrameKind;
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

std::string EndBytes(const std::string& index, uint64_t offset, uint64_t stored) {
  BinaryEnd end = {};
  end.index = offset;
  end.stored = stored;
  kBinaryEndMark.copy(end.mark, sizeof(end.mark));
  std::string bytes;
  Append(end, &bytes);
  end.checksum = Crc32c({bytes.data(), offsetof(BinaryEnd, checksum)}, Crc32c(index));
  bytes.clear();
  Append(end, &bytes);
  return bytes;
}

}  // namespace

Status WriteBinaryFile(const Shape& shape, const Schema* schema, int64_t rows_of_block,
                       const EncodeBlock& encode, const WriteOptions& options, const ByteSink& sink) {
  const std::string header = HeaderBytes(shape, schema, rows_of_block);
  const ByteSink pack = PackingSink(options.packing, sink);
  HEDDLE_RETURN_IF_ERROR(pack(header));
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    EncodedBlock block;
    uint32_t checksum = 0;
    std::string packed;
  };
  std::string index;
  uint64_t offset = header.size(), stored = 0;
  int64_t next_row = 0;
  HEDDLE_RETURN_IF_ERROR(GiveInOrder<Piece>(
      options.cancelled,
      [&](Piece* piece) {
        if (next_row >= shape.rows) return false;
        piece->begin = next_row;
        piece->end = next_row = std::min(next_row + rows_of_block, shape.rows);
        return true;
      },
      [&](Piece* piece) {
        HEDDLE_RETURN_IF_ERROR(encode(piece->begin, piece->end, &piece->block));
        piece->checksum = Crc32c(piece->block.view());
        return PackPiece(options.packing, piece->block.view(), &piece->packed);
      },
      [&](Piece* piece) {
        const std::string_view bytes = piece->block.view();
        AppendEntry(piece->block, offset, piece->checksum, &index);
        offset += bytes.size();
        stored += static_cast<uint64_t>(piece->block.stored);
        return sink(options.packing ? std::string_view(piece->packed) : bytes);
      }));
  HEDDLE_RETURN_IF_ERROR(pack(index));
  return pack(EndBytes(index, offset, stored));
}

}  // namespace heddle::ops

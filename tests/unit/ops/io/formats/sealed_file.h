// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "ops/io/checksums/crc32c.h"
#include "ops/io/formats/binary/binary_layout.h"

namespace heddle::ops {

/// Gives a changed binary file the checksums that belong to it, as one who means harm would: of its header,
/// of its index, and of each block of a matrix, of a frame of the first one.
inline void Seal(std::string* file) {
  auto header = Load<BinaryHeader>(file->data());
  auto end = Load<BinaryEnd>(file->data() + file->size() - kEndBytes);
  const std::string_view all = *file;
  const auto fits = [&](uint64_t begin, uint64_t count) {
    return begin <= all.size() && count <= all.size() - begin;
  };
  for (uint64_t at = end.index; fits(at, kEntryBytes + kEndBytes); at += kEntryBytes) {
    auto entry = Load<BinaryEntry>(file->data() + at);
    if (fits(entry.offset, entry.bytes)) entry.checksum = Crc32c(all.substr(entry.offset, entry.bytes));
    std::memcpy(file->data() + at, &entry, sizeof(entry));
    if (header.kind != kMatrixKind) break;
  }
  if (fits(end.index, kEndBytes)) {
    end.checksum = Crc32c(all.substr(all.size() - kEndBytes, offsetof(BinaryEnd, checksum)),
                          Crc32c(all.substr(end.index, all.size() - kEndBytes - end.index)));
    std::memcpy(file->data() + file->size() - kEndBytes, &end, sizeof(end));
  }
  if (fits(kHeaderBytes, header.schema_bytes)) {
    header.checksum = Crc32c(all.substr(kHeaderBytes, header.schema_bytes),
                             Crc32c(all.substr(0, offsetof(BinaryHeader, checksum))));
    std::memcpy(file->data(), &header, sizeof(header));
  }
}

}  // namespace heddle::ops

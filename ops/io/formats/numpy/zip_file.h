// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/io/files/files.h"

// Zip archives, as far as archives of arrays need them: members stored or deflated, also of more than 4 GiB.
namespace heddle::ops {

constexpr std::string_view kZipMark = "PK\x03\x04";

struct ZipMember {
  std::string name;
  int64_t begin = 0;  ///< Of its bytes in the archive.
  int64_t packed_bytes = 0;
  int64_t bytes = 0;
  uint32_t checksum = 0;  ///< CRC-32 of the unpacked bytes.
  bool deflated = false;
};

/// The members in the order of the archive's directory. kDataLoss, which calls the archive `path`.
Result<std::vector<ZipMember>> ReadZipDirectory(const std::string& path, const InputFile& archive);

/// The bytes of a member. A stored one is read where it lies in `archive`, which it must not outlive; a
/// deflated one is unpacked and checked.
Result<std::unique_ptr<InputFile>> OpenZipMember(const std::string& path, const InputFile& archive,
                                                 const ZipMember& member);

/// A member of `bytes` bytes, which `source` gives: twice, first for their checksum.
struct ZipSource {
  std::string name;
  int64_t bytes = 0;
  ByteSource source;
};
/// An archive of few members, all of them stored.
Status WriteZip(const std::vector<ZipSource>& members, const ByteSink& sink);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "ops/panels/spill_files.h"

namespace heddle::ops {

/// An array of bytes in a spill file. A checksum of every chunk stays in memory, so that what a disk changes
/// is found wherever a read begins and ends. Immutable.
class SpilledArray {
 public:
  /// What has one checksum. A read of any bytes reads the chunks that they are in.
  static constexpr int64_t kChunkBytes = int64_t{64} << 10;

  SpilledArray() = default;  ///< Of no bytes.
  /// Writes `count` bytes at `offset` of the file. Fails as SpillFile::WriteAt does.
  static Result<SpilledArray> Write(SpillFile& file, int64_t offset, const void* bytes, int64_t count);

  /// Bytes [begin, begin + count) into `out`; those of whole chunks are not copied on their way. kDataLoss
  /// when they cannot be read or are not what was written; kResourceExhausted.
  Status Read(const SpillFile& file, int64_t begin, int64_t count, void* out) const;
  /// These bytes will be read soon.
  void Announce(const SpillFile& file, int64_t begin, int64_t count) const;
  int64_t bytes() const { return bytes_; }

 private:
  Status ReadChunks(const SpillFile& file, int64_t begin, int64_t count, char* out) const;

  int64_t offset_ = 0;
  int64_t bytes_ = 0;
  std::vector<uint32_t> checksums_;
};

}  // namespace heddle::ops

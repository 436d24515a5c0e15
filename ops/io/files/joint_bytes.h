// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment/descriptor.h"
#include "ops/io/files/counted_bytes.h"
#include "ops/io/files/script_paths.h"

namespace heddle::ops {

/// Bytes that stand at an offset of a file.
struct PlacedBytes {
  int64_t offset = 0;
  std::string bytes;
};

/// What one process gives to a file that several make together: bytes that follow each other in the file.
/// Where they begin is known at once, or only when all of them are there, as it depends on how much others
/// have: then they are held, in memory while there is much room and on the disk else.
///
/// The process itself writes only blocks of the file that nobody else writes to: machines that share a file
/// system each keep blocks of their own.
class JointBytes {
 public:
  /// `file` is open for writing; `place` is of any file of its file system, and messages call it `shown`.
  JointBytes(Descriptor file, FilePlace place, std::string shown, std::optional<int64_t> offset);

  Status Append(std::string_view bytes);
  int64_t size() const { return size_; }
  /// Writes what is held to where it belongs.
  Status PlaceAt(int64_t offset);
  /// On disk when this returns, but for the bytes that it gives: those of the first and last block, for who
  /// finishes the file. The offset is known by now.
  Result<std::vector<PlacedBytes>> Finish();

 private:
  struct Held {
    CountedBytes memory;
    int64_t bytes = 0;
  };

  Status Hold(std::string_view bytes);
  bool HoldInMemory(std::string_view* bytes);
  Status HoldOnDisk(std::string_view bytes);
  Status WriteBlocks(std::string_view bytes);
  Status WriteAt(int64_t offset, std::string_view first, std::string_view second);

  Descriptor file_;
  FilePlace place_;
  const std::string shown_;
  int64_t size_ = 0;

  std::optional<int64_t> offset_;  // Of the next byte that is to be written.
  PlacedBytes first_;              // Up to the first block of this process alone.
  std::string block_;              // The beginning of the block that comes next.

  std::vector<Held> held_;
  int64_t most_in_memory_ = 0;
  int64_t in_memory_ = 0;
  Descriptor on_disk_;  // A file without a name: what is behind that in memory.
};

/// All of the bytes to an offset of a file. The error names `shown`.
Status WriteBytesAt(int fd, int64_t offset, std::string_view bytes, const std::string& shown);

}  // namespace heddle::ops

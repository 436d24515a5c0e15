// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment/descriptor.h"
#include "ops/io/files/counted_bytes.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/files/script_paths.h"

namespace heddle::ops {

/// Bytes that stand at an offset of a file.
struct PlacedBytes {
  int64_t offset = 0;
  std::string bytes;
};

/// The part of one process in a file that several processes make together: bytes that follow each other.
/// Where they begin is known at once, or only later, when the processes before have counted their bytes.
/// Until then they are held, in memory while it has much room and on the disk otherwise.
///
/// The process writes only those blocks of the file to which nobody else writes, because machines that share
/// a file system keep copies of blocks.
class JointBytes {
 public:
  /// `file` is open for writing; `place` is of any file of its file system, and messages call it `shown`.
  JointBytes(Descriptor file, FilePlace place, std::string shown, std::optional<int64_t> offset);

  Status Append(std::string_view bytes);
  int64_t size() const { return size_; }
  /// Whether it is known where they begin.
  bool is_placed() const { return offset_.has_value(); }
  /// Whether so many more can be held in memory.
  bool HasRoom(int64_t bytes) const { return in_memory_ + bytes <= most_in_memory_; }
  /// What is held from now on is held on the disk.
  void HoldOnDisk() { most_in_memory_ = 0; }
  /// Writes what is held to where it belongs; what is appended behind it goes there at once.
  Status PlaceAt(int64_t offset);
  /// All bytes are on the disk when this returns, except those that it returns: bytes of the first and the
  /// last block, which whoever finishes the file writes. The offset must be known.
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
  EarlyFlush flush_;

  std::vector<Held> held_;
  int64_t most_in_memory_ = 0;
  int64_t in_memory_ = 0;
  Descriptor on_disk_;  // A file without a name: what is behind that in memory.
};

}  // namespace heddle::ops

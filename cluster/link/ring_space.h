// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace heddle::cluster {

/// A run of bytes of a ring that one process wrote and another may read. `generation` counts how often the
/// ring had been filled from its beginning when the bytes were written, so that a handle to bytes that were
/// written over since is told from one to those that are there.
struct RingHandle {
  uint64_t arena = 0;  ///< Of the ring: a random number that the writer chose.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;
};

/// Which bytes of a ring its writer has given out: front to back, each run in one piece that begins with a
/// line of the cache, returned in the same order. Arithmetic only; not
/// thread-safe.
class WrittenRing {
 public:
  WrittenRing(uint64_t arena, uint64_t bytes) : arena_(arena), bytes_(bytes) {}

  /// Room for so many bytes; nullopt while the reader has not returned enough.
  std::optional<RingHandle> Take(uint64_t bytes);
  bool HasRoomFor(uint64_t bytes) const {
    return bytes <= bytes_ && NextBegin(bytes) + bytes - returned_ <= bytes_;
  }
  /// The reader returned all up to `handle`, itself included. False when it cannot have read that.
  bool Return(const RingHandle& handle);

 private:
  // Where `bytes` that are taken next begin, among all that the ring ever holds.
  uint64_t NextBegin(uint64_t bytes) const;

  const uint64_t arena_;
  const uint64_t bytes_;
  uint64_t taken_ = 0;
  uint64_t returned_ = 0;
};

/// The same ring as its reader knows it: trusts no handle.
class ReadRing {
 public:
  ReadRing(uint64_t arena, uint64_t bytes) : arena_(arena), bytes_(bytes) {}

  /// Whether `handle` is to bytes of this ring behind those of all handles before, none of which can have
  /// been written over. They are then read.
  bool Accept(const RingHandle& handle);
  /// How many bytes were read and not returned.
  uint64_t unreturned() const { return read_ - returned_; }
  /// What to tell the writer: everything read is returned.
  RingHandle Return();

 private:
  const uint64_t arena_;
  const uint64_t bytes_;
  uint64_t read_ = 0;
  uint64_t returned_ = 0;
  RingHandle last_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/status.h"

// A queue of records in memory that two processes share. One of them writes, the other one reads; neither
// ever waits, and what one of them leaves there when it is killed is whole.
namespace heddle::cluster {

/// Where both are. Lies in the shared memory, on cache lines of its own; all zero at first.
struct RingPositions {
  alignas(64) std::atomic<uint64_t> written{0};  ///< Bytes so far, changed by the writer,
  alignas(64) std::atomic<uint64_t> read{0};     ///< and by the reader.
  std::atomic<uint32_t> wants_room{0};           ///< 1: the writer waits for the reader to go on.
};

/// The queue holds less than this, a power of two, and records at most a quarter of it.
constexpr size_t kRingBytes = 64 << 10;
constexpr size_t kMostRecordBytes = kRingBytes / 4;

/// The end that writes. Not thread-safe.
class RingWriter {
 public:
  RingWriter(RingPositions* positions, std::byte* bytes)
      : positions_(positions), bytes_(bytes), written_(positions->written.load(std::memory_order_relaxed)) {}

  /// Adds a record of these parts, for the reader to see after Publish. False: there is no room now.
  bool Append(std::initializer_list<std::string_view> parts);
  void Publish() { positions_->written.store(written_, std::memory_order_seq_cst); }
  /// Asks the reader to ring (RingReader::Release) once there is room again.
  void AskForRoom() { positions_->wants_room.store(1, std::memory_order_seq_cst); }
  /// Whether a record of any size could be added.
  bool HasRoom() const;

 private:
  bool HasRoomFor(size_t bytes) const;
  void Put(std::string_view part);

  RingPositions* positions_;
  std::byte* bytes_;
  uint64_t written_;
};

/// The end that reads. Trusts nothing that it finds there. Not thread-safe, but for HasRecords.
class RingReader {
 public:
  RingReader(RingPositions* positions, const std::byte* bytes)
      : positions_(positions), bytes_(bytes), read_(positions->read.load(std::memory_order_relaxed)) {}

  bool HasRecords() const {
    return positions_->written.load(std::memory_order_seq_cst) !=
           positions_->read.load(std::memory_order_relaxed);
  }
  /// Copies the next record to `*record`; false when there is none. kDataLoss when the other side cannot be
  /// right.
  Result<bool> Next(std::string* record);
  /// Makes room of what has been read; true if the writer is to be told.
  bool Release();

 private:
  void Get(uint64_t from, char* to, size_t bytes) const;

  RingPositions* positions_;
  const std::byte* bytes_;
  uint64_t read_;
};

}  // namespace heddle::cluster

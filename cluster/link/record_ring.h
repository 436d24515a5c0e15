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
//
// No wake-up is lost. Whoever sleeps at a doorbell (actor/doorbell.h) first announces that, then looks at the
// ring for the last time; whoever changes the ring first stores the change, then looks at the announcement.
// All four are sequentially consistent, so they have one order, in which one of the two looks comes last and
// finds what the other side has stored. There are two such pairs for each ring:
//
//   for        the one that sleeps                     the other one
//   records    reader: bell = 1; HasRecords, HasUnread writer: Publish; Ring(bell)
//   room       writer: bell = 1; HasRoomOrAsks         reader: Release, which stores `read` and then takes
//                                                      back `wants_room`; if that was set, Ring(bell)
//
// Each request for room is answered once, however little room there is by then. So a writer that wakes and
// still has too little asks again before it sleeps: HasRoomOrAsks stores the request and looks once more.
namespace heddle::cluster {

/// Where both are. Lies in the shared memory, on cache lines of its own; all zero at first.
struct RingPositions {
  alignas(64) std::atomic<uint64_t> written{0};  ///< Bytes so far, changed by the writer,
  alignas(64) std::atomic<uint64_t> read{0};     ///< and by the reader.
  std::atomic<uint32_t> wants_room{0};           ///< 1: the writer waits for the reader to go on.
};

/// A ring in shared memory.
struct RingMemory {
  RingPositions* positions = nullptr;
  std::byte* bytes = nullptr;
  size_t capacity = 0;  ///< Of `bytes`: a power of two.

  /// A record is an eighth of the ring at most.
  size_t most_record_bytes() const { return capacity / 8; }
};

/// The end that writes. Not thread-safe.
class RingWriter {
 public:
  explicit RingWriter(const RingMemory& ring)
      : ring_(ring), written_(ring.positions->written.load(std::memory_order_relaxed)) {}

  /// Adds a record of these parts, for the reader to see after Publish. False: there is no room now.
  bool Append(std::initializer_list<std::string_view> parts);
  void Publish() { ring_.positions->written.store(written_, std::memory_order_seq_cst); }
  /// Whether a record of any size could be added.
  bool HasRoom() const;
  /// The same. If not, the reader is asked to ring (RingReader::Release) when it makes room the next time.
  bool HasRoomOrAsks();

 private:
  bool HasRoomFor(size_t bytes) const;
  void Put(std::string_view part);

  RingMemory ring_;
  uint64_t written_;
};

/// The end that reads. Trusts nothing that it finds there. Not thread-safe, but for HasRecords.
class RingReader {
 public:
  explicit RingReader(const RingMemory& ring)
      : ring_(ring), read_(ring.positions->read.load(std::memory_order_relaxed)) {}

  /// Whether there is a record that Release has not counted yet.
  bool HasRecords() const {
    return ring_.positions->written.load(std::memory_order_seq_cst) !=
           ring_.positions->read.load(std::memory_order_relaxed);
  }
  /// Whether there is a record that has not been read. On the thread of the reader.
  bool HasUnread() const { return ring_.positions->written.load(std::memory_order_seq_cst) != read_; }

  /// Copies the next record to `*record`; false when there is none. kDataLoss when the other side cannot be
  /// right.
  Result<bool> Next(std::string* record);
  /// The same in steps, for records that go straight to where they belong: whether there is one, and how long
  /// it is; parts of it, which lie within it; on to the one behind it.
  Result<bool> Find(size_t* record_bytes) const;
  void CopyPart(size_t begin, void* to, size_t bytes) const;
  void Skip(size_t record_bytes);

  /// Bytes that were read and that the writer may not use yet.
  uint64_t unreleased() const { return read_ - ring_.positions->read.load(std::memory_order_relaxed); }
  /// Makes room of what has been read; true if the writer is to be told.
  bool Release();

 private:
  RingMemory ring_;
  uint64_t read_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/record_ring.h"

#include <algorithm>
#include <cstring>

namespace heddle::cluster {
namespace {

constexpr size_t kSizeBytes = sizeof(uint32_t);  // In front of each record.

}  // namespace

bool RingWriter::HasRoomFor(size_t bytes) const {
  // A reader that claims to have read more than there was gets nothing more.
  const uint64_t used = written_ - ring_.positions->read.load(std::memory_order_seq_cst);
  return used <= ring_.capacity && ring_.capacity - used >= bytes;
}

bool RingWriter::HasRoom() const { return HasRoomFor(kSizeBytes + ring_.most_record_bytes()); }

bool RingWriter::HasRoomOrAsks() {
  if (HasRoom()) return true;
  ring_.positions->wants_room.store(1, std::memory_order_seq_cst);
  return HasRoom();
}

bool RingWriter::Append(std::initializer_list<std::string_view> parts) {
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  HEDDLE_CHECK(bytes <= ring_.most_record_bytes(), "larger records travel another way");
  if (!HasRoomFor(kSizeBytes + bytes)) return false;
  const auto size = static_cast<uint32_t>(bytes);
  Put({reinterpret_cast<const char*>(&size), kSizeBytes});
  for (const std::string_view part : parts) Put(part);
  return true;
}

void RingWriter::Put(std::string_view part) {
  const size_t at = written_ % ring_.capacity;
  const size_t first = std::min(part.size(), ring_.capacity - at);
  std::memcpy(ring_.bytes + at, part.data(), first);
  std::memcpy(ring_.bytes, part.data() + first, part.size() - first);
  written_ += part.size();
}

Result<bool> RingReader::Find(size_t* record_bytes) const {
  const uint64_t there = ring_.positions->written.load(std::memory_order_acquire) - read_;
  if (there == 0) return false;
  uint32_t size = 0;
  if (there >= kSizeBytes) {
    for (size_t i = 0; i < kSizeBytes; ++i)
      reinterpret_cast<std::byte*>(&size)[i] = ring_.bytes[(read_ + i) % ring_.capacity];
  }
  if (there < kSizeBytes || there > ring_.capacity || size > ring_.most_record_bytes() ||
      size > there - kSizeBytes)
    return DataLoss("a peer wrote nonsense into memory that it shares with this executor");
  *record_bytes = size;
  return true;
}

void RingReader::CopyPart(size_t begin, void* to, size_t bytes) const {
  const size_t at = (read_ + kSizeBytes + begin) % ring_.capacity;
  const size_t first = std::min(bytes, ring_.capacity - at);
  std::memcpy(to, ring_.bytes + at, first);
  std::memcpy(static_cast<std::byte*>(to) + first, ring_.bytes, bytes - first);
}

void RingReader::Skip(size_t record_bytes) { read_ += kSizeBytes + record_bytes; }

Result<bool> RingReader::Next(std::string* record) {
  size_t bytes = 0;
  HEDDLE_ASSIGN_OR_RETURN(const bool is_there, Find(&bytes));
  if (!is_there) return false;
  record->resize(bytes);
  CopyPart(0, record->data(), bytes);
  Skip(bytes);
  return true;
}

bool RingReader::Release() {
  ring_.positions->read.store(read_, std::memory_order_seq_cst);
  return ring_.positions->wants_room.load(std::memory_order_seq_cst) != 0 &&
         ring_.positions->wants_room.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/message_ring.h"

#include <algorithm>
#include <cstring>

namespace heddle::cluster {
namespace {

constexpr size_t kSizeBytes = sizeof(uint32_t);  // In front of each record.

}  // namespace

bool RingWriter::HasRoomFor(size_t bytes) const {
  // A reader that claims to have read more than there was gets nothing more.
  const uint64_t used = written_ - positions_->read.load(std::memory_order_seq_cst);
  return used <= kRingBytes && kRingBytes - used >= bytes;
}

bool RingWriter::HasRoom() const { return HasRoomFor(kSizeBytes + kMostRecordBytes); }

bool RingWriter::Append(std::initializer_list<std::string_view> parts) {
  uint32_t size = 0;
  for (const std::string_view part : parts) size += static_cast<uint32_t>(part.size());
  HEDDLE_CHECK(size <= kMostRecordBytes, "larger records travel another way");
  if (!HasRoomFor(kSizeBytes + size)) return false;
  Put({reinterpret_cast<const char*>(&size), kSizeBytes});
  for (const std::string_view part : parts) Put(part);
  return true;
}

void RingWriter::Put(std::string_view part) {
  const size_t at = written_ % kRingBytes;
  const size_t first = std::min(part.size(), kRingBytes - at);
  std::memcpy(bytes_ + at, part.data(), first);
  std::memcpy(bytes_, part.data() + first, part.size() - first);
  written_ += part.size();
}

void RingReader::Get(uint64_t from, char* to, size_t bytes) const {
  const size_t at = from % kRingBytes;
  const size_t first = std::min(bytes, kRingBytes - at);
  std::memcpy(to, bytes_ + at, first);
  std::memcpy(to + first, bytes_, bytes - first);
}

Result<bool> RingReader::Next(std::string* record) {
  const uint64_t there = positions_->written.load(std::memory_order_acquire) - read_;
  if (there == 0) return false;
  uint32_t size = 0;
  if (there >= kSizeBytes) Get(read_, reinterpret_cast<char*>(&size), kSizeBytes);
  if (there < kSizeBytes || there > kRingBytes || size > kMostRecordBytes || size > there - kSizeBytes)
    return DataLoss("a peer wrote nonsense into memory that it shares with this executor");
  record->resize(size);
  Get(read_ + kSizeBytes, record->data(), size);
  read_ += kSizeBytes + size;
  return true;
}

bool RingReader::Release() {
  positions_->read.store(read_, std::memory_order_seq_cst);
  return positions_->wants_room.load(std::memory_order_seq_cst) != 0 &&
         positions_->wants_room.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace heddle::cluster

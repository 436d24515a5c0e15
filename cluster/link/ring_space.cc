// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/ring_space.h"

#include <limits>

namespace heddle::cluster {
namespace {

constexpr uint64_t kLineBytes = 64;

// Where the bytes of a handle begin among all that a ring of `ring_bytes` ever holds; nullopt for one that is
// not inside of the ring.
std::optional<uint64_t> BeginOf(const RingHandle& handle, uint64_t arena, uint64_t ring_bytes) {
  if (handle.arena != arena || handle.offset > ring_bytes || handle.bytes > ring_bytes - handle.offset)
    return std::nullopt;
  if (handle.generation >= std::numeric_limits<uint64_t>::max() / ring_bytes - 2) return std::nullopt;
  return handle.generation * ring_bytes + handle.offset;
}

}  // namespace

uint64_t WrittenRing::NextBegin(uint64_t bytes) const {
  const uint64_t lap_begin = taken_ - taken_ % bytes_;
  const uint64_t offset = (taken_ % bytes_ + kLineBytes - 1) / kLineBytes * kLineBytes;
  return offset <= bytes_ && bytes <= bytes_ - offset ? lap_begin + offset : lap_begin + bytes_;
}

std::optional<RingHandle> WrittenRing::Take(uint64_t bytes) {
  if (!HasRoomFor(bytes)) return std::nullopt;
  const uint64_t begin = NextBegin(bytes);
  taken_ = begin + bytes;
  return RingHandle{arena_, begin % bytes_, bytes, begin / bytes_};
}

bool WrittenRing::Return(const RingHandle& handle) {
  const std::optional<uint64_t> begin = BeginOf(handle, arena_, bytes_);
  if (!begin || *begin + handle.bytes > taken_ || *begin + handle.bytes < returned_) return false;
  returned_ = *begin + handle.bytes;
  return true;
}

bool ReadRing::Accept(const RingHandle& handle) {
  const std::optional<uint64_t> begin = BeginOf(handle, arena_, bytes_);
  if (!begin || *begin < read_ || *begin + handle.bytes - returned_ > bytes_) return false;
  read_ = *begin + handle.bytes;
  last_ = handle;
  return true;
}

RingHandle ReadRing::Return() {
  returned_ = read_;
  return last_;
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/free_buffers.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace heddle::ops {

void FreeBuffers::Keep(Buffer buffer) {
  std::vector<Kept> surplus;
  const int64_t most_bytes = most_bytes_();
  {
    const std::lock_guard lock(mutex_);
    bytes_ += buffer.bytes;
    buffers_.push_back({std::move(buffer), next_number_++});
    surplus = TakeOldest(bytes_ - most_bytes,
                         buffers_.size() > kMostBuffers ? buffers_.size() - kMostBuffers : 0);
  }
  for (const Kept& oldest : surplus) release_(oldest.buffer.handle);
}

std::optional<FreeBuffers::Buffer> FreeBuffers::Take(int64_t bytes) {
  std::vector<Kept> fitting = TakeFitting(bytes);
  std::sort(fitting.begin(), fitting.end(), [](const Kept& a, const Kept& b) {
    return std::tuple(a.buffer.bytes, b.number) < std::tuple(b.buffer.bytes, a.number);
  });
  const auto idle = std::find_if(fitting.begin(), fitting.end(),
                                 [](const Kept& kept) { return kept.buffer.is_idle(); });
  std::optional<Buffer> taken;
  if (idle != fitting.end()) {
    taken = std::move(idle->buffer);
    fitting.erase(idle);
  }
  if (fitting.empty()) return taken;
  const std::lock_guard lock(mutex_);
  for (Kept& kept : fitting) {
    bytes_ += kept.buffer.bytes;
    const auto place =
        std::find_if(buffers_.begin(), buffers_.end(),
                     [&](const Kept& other) { return other.number > kept.number; });
    buffers_.insert(place, std::move(kept));
  }
  return taken;
}

int64_t FreeBuffers::Release(int64_t enough_bytes) {
  std::vector<Kept> oldest;
  {
    const std::lock_guard lock(mutex_);
    oldest = TakeOldest(enough_bytes, 0);
  }
  int64_t released = 0;
  for (const Kept& kept : oldest) {
    release_(kept.buffer.handle);
    released += kept.buffer.bytes;
  }
  return released;
}

int64_t FreeBuffers::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::vector<FreeBuffers::Kept> FreeBuffers::TakeFitting(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const Kept& kept) {
    return kept.buffer.bytes >= bytes && kept.buffer.bytes - bytes <= bytes / 8;
  };
  const auto first =
      std::stable_partition(buffers_.begin(), buffers_.end(), [&](const Kept& kept) { return !fits(kept); });
  std::vector<Kept> fitting(std::make_move_iterator(first), std::make_move_iterator(buffers_.end()));
  buffers_.erase(first, buffers_.end());
  for (const Kept& kept : fitting) bytes_ -= kept.buffer.bytes;
  return fitting;
}

// So many bytes and so many buffers at least.
std::vector<FreeBuffers::Kept> FreeBuffers::TakeOldest(int64_t enough_bytes, size_t least_count) {
  int64_t bytes = 0;
  size_t count = 0;
  for (; count < buffers_.size() && (bytes < enough_bytes || count < least_count); ++count)
    bytes += buffers_[count].buffer.bytes;
  const auto end = buffers_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Kept> oldest(std::make_move_iterator(buffers_.begin()), std::make_move_iterator(end));
  buffers_.erase(buffers_.begin(), end);
  bytes_ -= bytes;
  return oldest;
}

}  // namespace heddle::ops

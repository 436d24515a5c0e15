// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace heddle::ops {

/// Buffers of a device that nobody owns any more, kept for allocations of about their size: to touch the
/// pages of fresh memory takes longer than to compute with it where the memory of the device is the host's,
/// and other drivers take long to make a buffer. What is kept counts as free memory. Thread-safe.
class FreeBuffers {
 public:
  struct Buffer {
    void* handle = nullptr;
    int64_t bytes = 0;
    /// Whether all commands are done that were queued for the buffer. Once true, always true.
    std::function<bool()> is_idle;
  };

  /// Keeps as much as `most_bytes` says at most, which is asked at each Keep. `release` gives a buffer back
  /// to the driver, which holds it until its commands are done.
  FreeBuffers(std::function<int64_t()> most_bytes, std::function<void(void* handle)> release)
      : most_bytes_(std::move(most_bytes)), release_(std::move(release)) {}
  ~FreeBuffers() { Release(INT64_MAX); }
  FreeBuffers(const FreeBuffers&) = delete;
  FreeBuffers& operator=(const FreeBuffers&) = delete;

  /// Keeps it for later, and gives the oldest ones back to the driver that are too many then.
  void Keep(Buffer buffer);
  /// An idle buffer of at least `bytes`, and at most an eighth more: the smallest, of equal ones that which
  /// was kept last. A buffer that commands still need is left alone: whoever takes it may use it in any
  /// queue.
  std::optional<Buffer> Take(int64_t bytes);
  /// Gives the oldest ones back to the driver until it has `enough_bytes` of them, or none is left. How many
  /// bytes it has got.
  int64_t Release(int64_t enough_bytes);

  int64_t bytes() const;  ///< Of all that are kept.

 private:
  /// Small buffers take little memory, and there could be very many of them.
  static constexpr size_t kMostBuffers = 256;

  struct Kept {
    Buffer buffer;
    uint64_t number = 0;  // Of buffers in the order in which they were kept.
  };

  std::vector<Kept> TakeFitting(int64_t bytes);
  std::vector<Kept> TakeOldest(int64_t enough_bytes, size_t least_count);

  const std::function<int64_t()> most_bytes_;
  const std::function<void(void*)> release_;
  // Of what follows. Drivers, which may have locks of their own, are called without it.
  mutable std::mutex mutex_;
  uint64_t next_number_ = 0;
  std::vector<Kept> buffers_;  // The oldest first.
  int64_t bytes_ = 0;
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/environment/descriptor.h"
#include "core/status.h"

namespace heddle::cluster {

/// The memory of a ring that one process writes and another one reads. It has no name: it is gone with the
/// last process that holds it, however that ends. Its size is sealed, so that no access can fail, and nobody
/// but its maker can write to it.
class RingMemory {
 public:
  RingMemory() = default;
  RingMemory(RingMemory&& other) noexcept { *this = std::move(other); }
  RingMemory& operator=(RingMemory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~RingMemory();

  /// The writer's end; pages are there once they are written. kUnavailable where the system does not allow
  /// such memory.
  static Result<RingMemory> Make(uint64_t bytes);
  /// The reader's end, from the descriptor of the writer's. kUnavailable for anything but memory of that size
  /// that is sealed.
  static Result<RingMemory> Map(Descriptor descriptor, uint64_t bytes);

  bool ok() const { return begin_ != nullptr; }
  uint64_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_.get(); }
  char* at(uint64_t offset) const { return begin_ + offset; }

 private:
  Status MapWhole(int protection);

  char* begin_ = nullptr;
  uint64_t bytes_ = 0;
  Descriptor descriptor_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace heddle::ops {

/// Bytes of files in memory. More than 2 MiB come from BlockPool::Process(), which counts them; a process
/// that may hold no piece of a file beside its matrices could not read at all. New bytes are not set to zero.
class CountedBytes {
 public:
  CountedBytes() = default;
  CountedBytes(CountedBytes&& other) noexcept { *this = std::move(other); }
  CountedBytes& operator=(CountedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;
  ~CountedBytes();

  /// `size` bytes of any value. kResourceExhausted with the numbers and the name of the file when memory has
  /// no room.
  Status Renew(int64_t size, std::string_view file);
  /// Keeps what there is. Fails as Renew does.
  Status Append(std::string_view bytes, std::string_view file);

  char* data() { return data_; }
  std::string_view view() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  Status Grow(int64_t capacity, std::string_view file);

  char* data_ = nullptr;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/status.h"

namespace heddle {

/// Where the bytes of a buffer are, and so who can read them.
enum class MemorySpace : uint8_t {
  kHost,  ///< In the memory of the process: a block of its pool (core/memory/block_pool.h), or adopted.
};

/// Memory of a matrix or of a column of a frame, given back when the last owner goes: of the pool, or of
/// somebody else.
class Buffer {
 public:
  /// `bytes` uninitialised bytes, 64-byte aligned (2 MiB aligned huge pages above 2 MiB); kResourceExhausted
  /// past the budget.
  static Result<std::shared_ptr<Buffer>> Allocate(int64_t bytes, MemorySpace space = MemorySpace::kHost);
  /// Memory of somebody else, who has promised that nobody writes to it before `release` is called: once, on
  /// any thread, when the last owner goes; it throws nothing. An empty function where nobody needs to know.
  /// The budget does not count it, and nobody writes to it here.
  static std::shared_ptr<Buffer> Adopt(const void* data, int64_t bytes, std::function<void()> release);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  MemorySpace space() const { return space_; }
  bool IsAdopted() const { return is_adopted_; }

 private:
  Buffer(void* data, int64_t bytes, MemorySpace space) : data_(data), bytes_(bytes), space_(space) {}
  void* data_;
  int64_t bytes_;
  MemorySpace space_;
  bool is_adopted_ = false;
  std::function<void()> release_;
};

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/counted_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/memory/block_pool.h"

namespace heddle::ops {

namespace {

constexpr int64_t kMostUncounted = int64_t{2} << 20;
constexpr int64_t kStep = int64_t{1} << 16;

// nullptr when there is no room.
char* Allocate(int64_t bytes) {
  if (bytes <= kMostUncounted) return static_cast<char*>(std::malloc(static_cast<size_t>(bytes)));
  const Result<void*> block = BlockPool::Process().Allocate(bytes);
  return block.ok() ? static_cast<char*>(*block) : nullptr;
}

void Free(char* data, int64_t bytes) {
  if (data == nullptr) return;
  if (bytes <= kMostUncounted) return std::free(data);
  BlockPool::Process().Free(data, bytes);
}

}  // namespace

CountedBytes::~CountedBytes() { Free(data_, capacity_); }

Status CountedBytes::Renew(int64_t size, std::string_view file) {
  size_ = 0;  // nothing to move
  // The next piece may be a line longer.
  const int64_t rounded = size <= kMostUncounted ? (size + kStep - 1) / kStep * kStep : size;
  if (size > capacity_) HEDDLE_RETURN_IF_ERROR(Grow(rounded, file));
  size_ = size;
  return OkStatus();
}

Status CountedBytes::Append(std::string_view bytes, std::string_view file) {
  const auto count = static_cast<int64_t>(bytes.size());
  // Room for more, or exactly what is needed where that much more does not fit.
  if (size_ + count > capacity_ && !Grow(std::max(size_ + count, capacity_ + capacity_ / 2), file).ok())
    HEDDLE_RETURN_IF_ERROR(Grow(size_ + count, file));
  if (count > 0) std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ += count;
  return OkStatus();
}

Status CountedBytes::Grow(int64_t capacity, std::string_view file) {
  char* const data = Allocate(capacity);
  if (data == nullptr)
    return DoesNotFit(fmt::format("a piece of {} bytes of '{}'", capacity, file),
                      BlockPool::Process().budget());
  if (size_ > 0) std::memcpy(data, data_, static_cast<size_t>(size_));
  Free(data_, capacity_);
  data_ = data;
  capacity_ = capacity;
  return OkStatus();
}

}  // namespace heddle::ops

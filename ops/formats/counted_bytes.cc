// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/counted_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/block_pool.h"

namespace heddle::ops {

namespace {

constexpr int64_t kMostUncounted = int64_t{2} << 20;

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

Status CountedBytes::Resize(int64_t size, std::string_view file) {
  if (size > capacity_) {
    char* const data = Allocate(size);
    if (data == nullptr)
      return DoesNotFit(fmt::format("a piece of {} bytes of '{}'", size, file),
                        BlockPool::Process().budget());
    if (size_ > 0) std::memcpy(data, data_, static_cast<size_t>(size_));
    Free(data_, capacity_);
    data_ = data;
    capacity_ = size;
  }
  size_ = size;
  return OkStatus();
}

Status CountedBytes::Append(std::string_view bytes, std::string_view file) {
  const int64_t before = size_;
  const int64_t after = before + static_cast<int64_t>(bytes.size());
  // Room for more, or exactly what is needed where that much more does not fit.
  if (after > capacity_ && !Resize(std::max(after, capacity_ + capacity_ / 2), file).ok())
    HEDDLE_RETURN_IF_ERROR(Resize(after, file));
  size_ = after;
  if (!bytes.empty()) std::memcpy(data_ + before, bytes.data(), bytes.size());
  return OkStatus();
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/counted_bytes.h"

#include <algorithm>
#include <cstring>

#include "core/block_pool.h"

namespace heddle::ops {

CountedBytes::~CountedBytes() {
  if (data_ != nullptr) BlockPool::Process().Free(data_, capacity_);
}

Status CountedBytes::Resize(int64_t size, std::string_view file) {
  if (size > capacity_) {
    BlockPool& pool = BlockPool::Process();
    const Result<void*> block = pool.Allocate(size);
    if (!block.ok()) return DoesNotFit(fmt::format("a piece of {} bytes of '{}'", size, file), pool.budget());
    char* const data = static_cast<char*>(*block);
    if (size_ > 0) std::memcpy(data, data_, static_cast<size_t>(size_));
    if (data_ != nullptr) pool.Free(data_, capacity_);
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

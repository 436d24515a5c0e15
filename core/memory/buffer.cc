// SPDX-License-Identifier: Apache-2.0
#include "core/memory/buffer.h"

#include <utility>

#include "core/memory/block_pool.h"

namespace heddle {

Result<std::shared_ptr<Buffer>> Buffer::Allocate(int64_t bytes, MemorySpace space) {
  // The buffer comes first: should the heap refuse it, no block is lost.
  std::shared_ptr<Buffer> buffer(new Buffer(nullptr, bytes, space));
  switch (space) {
    case MemorySpace::kHost: {
      HEDDLE_ASSIGN_OR_RETURN(buffer->data_, BlockPool::Process().Allocate(bytes));
      break;
    }
  }
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Adopt(const void* data, int64_t bytes, std::function<void()> release) {
  std::shared_ptr<Buffer> buffer(new Buffer(const_cast<void*>(data), bytes, MemorySpace::kHost));
  buffer->is_adopted_ = true;
  buffer->release_ = std::move(release);
  return buffer;
}

Buffer::~Buffer() {
  if (is_adopted_) {
    if (release_) release_();
    return;
  }
  if (data_ == nullptr) return;  // It got no block.
  switch (space_) {
    case MemorySpace::kHost: BlockPool::Process().Free(data_, bytes_); break;
  }
}

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#include "core/memory/buffer.h"

#include "core/memory/block_pool.h"

namespace heddle {

Result<std::shared_ptr<Buffer>> Buffer::Allocate(int64_t bytes, MemorySpace space) {
  void* data = nullptr;
  switch (space) {
    case MemorySpace::kHost: {
      HEDDLE_ASSIGN_OR_RETURN(data, BlockPool::Process().Allocate(bytes));
      break;
    }
  }
  return std::shared_ptr<Buffer>(new Buffer(data, bytes, space));
}

Buffer::~Buffer() {
  switch (space_) {
    case MemorySpace::kHost: BlockPool::Process().Free(data_, bytes_); break;
  }
}

}  // namespace heddle

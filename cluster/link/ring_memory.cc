// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/ring_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace heddle::cluster {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Status NotAllowed(const char* what) { return Unavailable("no shared memory: {}: {}", what, strerror(errno)); }

}  // namespace

RingMemory::~RingMemory() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

Result<RingMemory> RingMemory::Make(uint64_t bytes) {
  RingMemory memory;
  memory.descriptor_ = Descriptor(memfd_create("heddle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  memory.bytes_ = bytes;
  const int fd = memory.descriptor();
  if (fd < 0) return NotAllowed("memfd_create");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return NotAllowed("ftruncate");
  if (fcntl(fd, F_ADD_SEALS, kSizeSeals) != 0) return NotAllowed("seals");
  HEDDLE_RETURN_IF_ERROR(memory.MapWhole(PROT_READ | PROT_WRITE));
  // Kernels before 5.1 do not know the seal against writing; readers map the memory read-only all the same.
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) errno = 0;
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL) != 0) return NotAllowed("seals");
  return memory;
}

Result<RingMemory> RingMemory::Map(Descriptor descriptor, uint64_t bytes) {
  RingMemory memory;
  memory.descriptor_ = std::move(descriptor);
  memory.bytes_ = bytes;
  struct stat status = {};
  if (fstat(memory.descriptor(), &status) != 0) return NotAllowed("fstat");
  const int seals = fcntl(memory.descriptor(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || bytes == 0 ||
      status.st_size != static_cast<off_t>(bytes))
    return Unavailable("no shared memory: what came is not a ring");
  HEDDLE_RETURN_IF_ERROR(memory.MapWhole(PROT_READ));
  memory.descriptor_ = Descriptor();  // the mapping keeps the memory
  return memory;
}

Status RingMemory::MapWhole(int protection) {
  void* const begin = mmap(nullptr, bytes_, protection, MAP_SHARED, descriptor_.get(), 0);
  if (begin == MAP_FAILED) return NotAllowed("mmap");
  begin_ = static_cast<char*>(begin);
  return OkStatus();
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/shared_inbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "actor/doorbell.h"

namespace heddle::cluster {
namespace {

// Nobody can make the memory smaller, and so kill who reads it.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

size_t SharedInbox::BytesFor(size_t ranks) {
  return sizeof(Header) + ranks * (sizeof(RingPositions) + kRingBytes);
}

Result<std::unique_ptr<SharedInbox>> SharedInbox::Map(int descriptor, size_t ranks) {
  void* const memory =
      mmap(nullptr, BytesFor(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, /*offset=*/0);
  if (memory == MAP_FAILED) return Unavailable("memory cannot be shared: {}", std::strerror(errno));
  return std::unique_ptr<SharedInbox>(new SharedInbox(memory, ranks));
}

Result<std::unique_ptr<SharedInbox>> SharedInbox::Create(size_t ranks) {
  Descriptor descriptor(memfd_create("heddle-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.ok() || ftruncate(descriptor.get(), static_cast<off_t>(BytesFor(ranks))) != 0 ||
      fcntl(descriptor.get(), F_ADD_SEALS, kSeals) != 0)
    return Unavailable("memory cannot be shared: {}", std::strerror(errno));
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedInbox> inbox, Map(descriptor.get(), ranks));
  inbox->descriptor_ = std::move(descriptor);
  return inbox;
}

Result<std::unique_ptr<SharedInbox>> SharedInbox::Open(const Descriptor& descriptor, size_t ranks) {
  struct stat file {};
  if (fstat(descriptor.get(), &file) != 0 || file.st_size != static_cast<off_t>(BytesFor(ranks)) ||
      (fcntl(descriptor.get(), F_GET_SEALS) & kSeals) != kSeals)
    return DataLoss("a peer offers memory of the wrong kind");
  return Map(descriptor.get(), ranks);
}

SharedInbox::~SharedInbox() { munmap(memory_, BytesFor(ranks_)); }

RingPositions* SharedInbox::positions(size_t rank) const {
  return reinterpret_cast<RingPositions*>(memory_ + sizeof(Header)) + rank;
}

std::byte* SharedInbox::bytes(size_t rank) const {
  return memory_ + sizeof(Header) + ranks_ * sizeof(RingPositions) + rank * kRingBytes;
}

bool SharedInbox::RingDoorbells() const {
  const bool waiter = actor::Ring(doorbell_of_waiter(), actor::DoorbellReach::kMachine);
  const bool thread = actor::Ring(doorbell_of_thread(), actor::DoorbellReach::kMachine);
  return waiter || thread;
}

}  // namespace heddle::cluster

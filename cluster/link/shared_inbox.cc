// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/shared_inbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "actor/doorbell.h"

namespace heddle::cluster {
namespace {

// With these nobody can change the size of the memory: who reads behind the end of a file is killed.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr size_t kPageBytes = 4096;  // Sections begin at multiples, so that each can be mapped alone.
constexpr size_t kMessageBytes = 64 << 10;
constexpr size_t kPullBytes = 16 << 10;
// All rings of values of an executor together, and what one of them has.
constexpr size_t kAllValueBytes = 32 << 20;
constexpr size_t kMostValueBytes = 4 << 20;
constexpr size_t kLeastValueBytes = 1 << 20;

// Growing past this bound would end the process by a signal.
bool MayBeThatLarge(size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

Status NotAllowed() { return Unavailable("memory cannot be shared: {}", std::strerror(errno)); }

}  // namespace

SharedInbox::Mapping::~Mapping() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

Result<SharedInbox::Mapping> SharedInbox::Mapping::Make(int descriptor, size_t offset, size_t bytes) {
  void* const begin =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
  if (begin == MAP_FAILED) return NotAllowed();
  Mapping mapping;
  mapping.begin_ = static_cast<std::byte*>(begin);
  mapping.bytes_ = bytes;
  return mapping;
}

size_t SharedInbox::ValueBytes(size_t ranks) {
  size_t bytes = kMostValueBytes;
  while (bytes > kLeastValueBytes && bytes * (ranks - 1) > kAllValueBytes) bytes /= 2;
  return bytes;
}

size_t SharedInbox::SectionBytes() const {
  static_assert(sizeof(Doorbells) <= kPageBytes && sizeof(SectionHead) <= kPageBytes);
  return kPageBytes + kMessageBytes + kPullBytes + ValueBytes(ranks_);
}

size_t SharedInbox::WholeBytes() const { return kPageBytes + ranks_ * SectionBytes(); }

Status SharedInbox::Map(int descriptor, size_t sections) {
  HEDDLE_ASSIGN_OR_RETURN(head_, Mapping::Make(descriptor, 0, kPageBytes));
  HEDDLE_ASSIGN_OR_RETURN(sections_, Mapping::Make(descriptor, kPageBytes + first_rank_ * SectionBytes(),
                                                   sections * SectionBytes()));
  return OkStatus();
}

Result<std::unique_ptr<SharedInbox>> SharedInbox::Create(size_t ranks) {
  std::unique_ptr<SharedInbox> inbox(new SharedInbox(ranks, /*first_rank=*/0));
  if (!MayBeThatLarge(inbox->WholeBytes()))
    return Unavailable("memory cannot be shared: ulimit -f allows no file of {} bytes", inbox->WholeBytes());
  inbox->descriptor_ = Descriptor(memfd_create("heddle-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int descriptor = inbox->descriptor();
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(inbox->WholeBytes())) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, kSeals) != 0 ||
      fallocate(descriptor, 0, 0, static_cast<off_t>(kPageBytes)) != 0)
    return NotAllowed();
  HEDDLE_RETURN_IF_ERROR(inbox->Map(descriptor, ranks));
  return inbox;
}

Result<std::unique_ptr<SharedInbox>> SharedInbox::Open(const Descriptor& descriptor, size_t ranks,
                                                       size_t writer) {
  std::unique_ptr<SharedInbox> inbox(new SharedInbox(ranks, writer));
  // The seals first: a size that is looked at before them may change until they are there. Of a file that
  // cannot be sealed they are -1, which has every bit.
  const int seals = fcntl(descriptor.get(), F_GET_SEALS);
  struct stat file {};
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(descriptor.get(), &file) != 0 ||
      file.st_size != static_cast<off_t>(inbox->WholeBytes()))
    return DataLoss("a peer offers memory of the wrong kind");
  HEDDLE_RETURN_IF_ERROR(inbox->Map(descriptor.get(), /*sections=*/1));
  return inbox;
}

std::byte* SharedInbox::SectionOf(size_t rank) const {
  return sections_.begin() + (rank - first_rank_) * SectionBytes();
}

RingMemory SharedInbox::messages(size_t rank) const {
  return {&HeadOf(rank)->messages, SectionOf(rank) + kPageBytes, kMessageBytes};
}

RingMemory SharedInbox::pulls(size_t rank) const {
  return {&HeadOf(rank)->pulls, SectionOf(rank) + kPageBytes + kMessageBytes, kPullBytes};
}

RingMemory SharedInbox::values(size_t rank) const {
  return {&HeadOf(rank)->values, SectionOf(rank) + kPageBytes + kMessageBytes + kPullBytes,
          ValueBytes(ranks_)};
}

Status SharedInbox::Reserve(size_t rank, size_t begin, size_t bytes) const {
  const size_t offset = kPageBytes + rank * SectionBytes() + begin;
  if (fallocate(descriptor(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0)
    return NotAllowed();
  return OkStatus();
}

Status SharedInbox::ReserveMessages(size_t rank) const {
  return Reserve(rank, 0, kPageBytes + kMessageBytes + kPullBytes);
}

Status SharedInbox::ReserveValues(size_t rank) const {
  return Reserve(rank, kPageBytes + kMessageBytes + kPullBytes, ValueBytes(ranks_));
}

bool SharedInbox::RingForMessages() const {
  const bool waiter = actor::Ring(doorbell_of_waiter(), actor::DoorbellReach::kMachine);
  const bool thread = actor::Ring(doorbell_of_thread(), actor::DoorbellReach::kMachine);
  return waiter || thread;
}

}  // namespace heddle::cluster

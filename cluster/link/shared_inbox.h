// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "cluster/link/record_ring.h"
#include "core/environment/descriptor.h"
#include "core/status.h"

namespace heddle::cluster {

/// The memory into which the other executors of this machine write what they have for one of them: for each
/// rank a ring of messages, one of pulls and one of values, and the doorbells (actor/doorbell.h) of those who
/// look there. It has no name, so that nothing is left of it when the processes are gone, however they end;
/// its size is sealed, so that no access fails. Pages are there once they are reserved or written.
class SharedInbox {
 public:
  /// A new one, of this process, for `ranks` ranks. kUnavailable when the system refuses.
  static Result<std::unique_ptr<SharedInbox>> Create(size_t ranks);
  /// That of another process, by its descriptor: the part into which rank `writer` writes. kDataLoss when it
  /// is not what Create makes.
  static Result<std::unique_ptr<SharedInbox>> Open(const Descriptor& descriptor, size_t ranks, size_t writer);

  /// To hand to another process; -1 when it was opened.
  int descriptor() const { return descriptor_.get(); }

  /// What `rank` writes: messages, pulls of values of the owner, values that the owner pulls.
  RingMemory messages(size_t rank) const;
  RingMemory pulls(size_t rank) const;
  RingMemory values(size_t rank) const;
  /// Of the ring of values of one rank.
  static size_t ValueBytes(size_t ranks);

  /// Takes memory for the rings of `rank`, so that writing there cannot fail: those of messages and pulls, or
  /// that of values. kUnavailable when there is none. Its owner only.
  Status ReserveMessages(size_t rank) const;
  Status ReserveValues(size_t rank) const;

  /// Where the threads sleep: that which waits for messages, that which looks for messages when nobody waits,
  /// that which answers pulls, that which takes values in.
  std::atomic<uint32_t>& doorbell_of_waiter() const { return doorbells()->waiter; }
  std::atomic<uint32_t>& doorbell_of_thread() const { return doorbells()->thread; }
  std::atomic<uint32_t>& doorbell_of_server() const { return doorbells()->server; }
  std::atomic<uint32_t>& doorbell_of_client() const { return doorbells()->client; }
  /// Wakes who is to look for messages. Any process. True if somebody slept.
  bool RingForMessages() const;

 private:
  struct Doorbells {
    alignas(64) std::atomic<uint32_t> waiter{0};
    std::atomic<uint32_t> thread{0};
    alignas(64) std::atomic<uint32_t> server{0};
    alignas(64) std::atomic<uint32_t> client{0};
  };
  struct SectionHead {
    RingPositions messages;
    RingPositions pulls;
    RingPositions values;
  };
  // Pages that this process sees.
  class Mapping {
   public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept { *this = std::move(other); }
    Mapping& operator=(Mapping&& other) noexcept {
      std::swap(begin_, other.begin_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Mapping();
    static Result<Mapping> Make(int descriptor, size_t offset, size_t bytes);
    std::byte* begin() const { return begin_; }

   private:
    std::byte* begin_ = nullptr;
    size_t bytes_ = 0;
  };

  SharedInbox(size_t ranks, size_t first_rank) : ranks_(ranks), first_rank_(first_rank) {}
  size_t SectionBytes() const;
  size_t WholeBytes() const;
  Status Map(int descriptor, size_t sections);
  Status Reserve(size_t rank, size_t begin, size_t bytes) const;
  Doorbells* doorbells() const { return reinterpret_cast<Doorbells*>(head_.begin()); }
  std::byte* SectionOf(size_t rank) const;
  SectionHead* HeadOf(size_t rank) const { return reinterpret_cast<SectionHead*>(SectionOf(rank)); }

  Descriptor descriptor_;
  size_t ranks_;
  size_t first_rank_;  // Of those whose sections are mapped.
  Mapping head_;
  Mapping sections_;
};

}  // namespace heddle::cluster

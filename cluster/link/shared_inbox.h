// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cluster/link/message_ring.h"
#include "core/environment/descriptor.h"
#include "core/status.h"

namespace heddle::cluster {

/// The memory into which the other executors of this machine write what they have to say to one of them: a
/// ring for each rank, and the doorbells (actor/doorbell.h) of those who look there. It has no name, so that
/// nothing is left of it when the processes are gone, however they end.
class SharedInbox {
 public:
  /// A new one, of this process, for messages of `ranks` ranks. kUnavailable when the system refuses.
  static Result<std::unique_ptr<SharedInbox>> Create(size_t ranks);
  /// That of another process, by its descriptor. kDataLoss when it is not what Create makes.
  static Result<std::unique_ptr<SharedInbox>> Open(const Descriptor& descriptor, size_t ranks);
  ~SharedInbox();
  SharedInbox(const SharedInbox&) = delete;
  SharedInbox& operator=(const SharedInbox&) = delete;

  /// To hand to another process; -1 when it was opened.
  int descriptor() const { return descriptor_.get(); }
  RingPositions* positions(size_t rank) const;
  std::byte* bytes(size_t rank) const;
  /// Where the thread that waits for messages sleeps, and the one that looks when nobody waits.
  std::atomic<uint32_t>& doorbell_of_waiter() const { return header()->doorbell_of_waiter; }
  std::atomic<uint32_t>& doorbell_of_thread() const { return header()->doorbell_of_thread; }
  /// Wakes who is to look. Any process. True if somebody slept.
  bool RingDoorbells() const;

 private:
  struct Header {
    alignas(64) std::atomic<uint32_t> doorbell_of_waiter{0};
    std::atomic<uint32_t> doorbell_of_thread{0};
  };
  SharedInbox(void* memory, size_t ranks) : memory_(static_cast<std::byte*>(memory)), ranks_(ranks) {}
  static size_t BytesFor(size_t ranks);
  static Result<std::unique_ptr<SharedInbox>> Map(int descriptor, size_t ranks);
  Header* header() const { return reinterpret_cast<Header*>(memory_); }

  Descriptor descriptor_;
  std::byte* memory_;
  size_t ranks_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actor/link.h"

namespace heddle::actor {

/// Joins several runtimes of one process, for tests of sessions with many ranks on real threads. Messages are
/// handed over on the sender's thread, bodies are shared, not copied. What is sent to a rank before it is
/// attached waits for it.
class InProcessNetwork {
 public:
  explicit InProcessNetwork(uint32_t ranks);
  ~InProcessNetwork();

  /// The link that the runtime of `rank` is created with; lives as long as the network.
  Link& LinkOf(uint32_t rank);
  void Attach(uint32_t rank, LinkHandler& handler);
  /// Drops everything for `rank` from now on; returns when no call of its handler is in progress.
  void Detach(uint32_t rank);

 private:
  class Port;
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace heddle::actor

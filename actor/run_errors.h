// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "core/programs/graph.h"
#include "core/status.h"

namespace heddle::actor {

/// The errors of one run, of which a user sees the first in the order of (node, rank). Errors that blame no
/// node (a lost peer, a cancellation, a stall) come after those that do.
class RunErrors {
 public:
  void Add(NodeId node, uint32_t rank, Status status) {
    const std::pair<uint32_t, uint32_t> place(static_cast<uint32_t>(node),
                                              rank);  // kNoNode becomes the largest.
    if (!first_.ok() && place_ <= place) return;
    place_ = place;
    first_ = std::move(status);
  }
  bool empty() const { return first_.ok(); }
  const Status& First() const { return first_; }
  NodeId node() const { return static_cast<NodeId>(place_.first); }
  uint32_t rank() const { return place_.second; }
  void Clear() { first_ = Status(); }

 private:
  std::pair<uint32_t, uint32_t> place_;
  Status first_;
};

}  // namespace heddle::actor

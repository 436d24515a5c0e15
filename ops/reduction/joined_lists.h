// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// The lists of tree nodes that a reduction makes of one run of rows after the other, joined on the way: two
/// nodes become their parent as soon as both are there, so that of n lists about log2(n) payloads are held.
/// What finishes the reduction makes the same bytes of them as of all lists (docs/numerics.md, section 2).
class JoinedLists {
 public:
  /// Makes one list of two nodes, a list each, that follow each other: kJoinParts (ops/base/stages.h) of all
  /// units. Two rows: they have to stay apart.
  using Join = std::function<Result<Value>(const Value& left, const Value& right)>;

  /// The list of the next rows. Fails as `join` does.
  Status Add(const Value& list, const Join& join);
  /// What is left of all lists, in the order of their rows; at least one list where there was one. Nothing is
  /// held afterwards.
  Result<std::vector<Value>> Finish(const Join& join);

  /// Payloads held now.
  int64_t payloads() const { return payloads_; }

 private:
  struct Held {
    Value list;
    TreeNode node;
    bool is_apart = false;  // It is not to be joined any more.
  };
  void Hold(Value list, const TreeNode& node, bool is_apart);
  // The last two nodes.
  Status JoinLast(const Join& join);

  std::vector<Held> held_;
  Value empty_;  // A list without nodes.
  int64_t payloads_ = 0;
};

/// The most payloads that JoinedLists holds of the lists of leaves [begin, end), `height` leaves each, and of
/// those the most that one list has and how many are left.
struct HeldPayloads {
  int64_t most = 0;
  int64_t of_list = 0;
  int64_t left = 0;
};
HeldPayloads PayloadsHeld(int64_t begin, int64_t end, int64_t height);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/programs/graph.h"

namespace heddle::ops {

/// The attribute of a node in a plan that tells how many bytes its kernel may hold of rows that it reads from
/// a handle to panels.
constexpr std::string_view kHeldBytes = "held.bytes";

/// The number that the attribute says, else `otherwise`.
inline int64_t HeldBytesOf(const Node& node, int64_t otherwise) {
  const Scalar* const held = node.FindAttribute(kHeldBytes);
  return held == nullptr ? otherwise : held->AsInteger();
}

/// What write() holds of such rows where the plan does not say it: those that it reads, and those that they
/// are put together from. A plan never says more.
constexpr int64_t kMostHeldByWrite = int64_t{8} << 20;

}  // namespace heddle::ops

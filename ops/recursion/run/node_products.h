// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// Products of the small matrices that nodes have, one node at a time.
namespace heddle::ops {

/// C = A * B, m x k and k x n without gaps, n more than 8 and k less than 65536: the chain of
/// docs/numerics.md, section 3, of floats that of section 9, rounded.
template <typename Cell>
struct NodeProduct {
  int64_t m, n, k;
  const Cell* a;
  const Cell* b;
  Cell* c;
  const std::atomic<bool>* cancelled = nullptr;
};
template <typename Cell>
void Run(const NodeProduct<Cell>& product);

}  // namespace heddle::ops

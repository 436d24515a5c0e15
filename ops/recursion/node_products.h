// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// Operators on the small matrices that nodes have, one node at a time, without memory of their own for each.
namespace heddle::ops {

/// to = t(from), from rows x columns without gaps.
template <typename Cell>
void TransposeNode(const Cell* from, int64_t rows, int64_t columns, Cell* to);

/// C = A * B, m x k and k x n without gaps, n more than 8 and k less than 65536: the chain of
/// docs/numerics.md, section 3, of floats that of section 9, rounded.
template <typename Cell>
struct NodeProduct {
  int64_t m, n, k;
  const Cell* a;
  const Cell* b;
  Cell* c;
  bool parallel = false;
  const std::atomic<bool>* cancelled = nullptr;
};
void Run(const NodeProduct<double>& product);
void Run(const NodeProduct<float>& product);

}  // namespace heddle::ops

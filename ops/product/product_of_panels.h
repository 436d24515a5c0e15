// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/programs/graph.h"
#include "core/status.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"

// X %*% Y where neither operand needs to fit in memory: blocks of the result that are about as high as they
// are wide, each from thin slices of both operands (docs/streaming.md, "Products").
namespace heddle::ops {

/// How a product is cut: blocks of the result, and the inner indexes of a slice.
struct ProductBlocks {
  int64_t rows = 0, columns = 0, inner = 0;
};
/// Of an m x k by k x n product, so that a block and two slices take at most `held_bytes`, and as few slices
/// are read as can be: with square blocks of S cells 2 m n k / sqrt(S) cells, which is the least of any order
/// (Smith, Lowery, Langou, van de Geijn: A Tight I/O Lower Bound for Matrix Multiplication, 2019).
ProductBlocks BlocksOfProduct(int64_t m, int64_t k, int64_t n, int64_t held_bytes);

/// Whether the kernel of %*% takes these operands as panels: dense ones of one type whose cells are chains.
bool MultipliesPanels(const Node& node, std::span<const ValueInfo> inputs);

/// The product, as panels; operands are panels or matrices. Slices of operands that are wider than a slice
/// are kept by the store first. Every cell is the chain of docs/numerics.md 3.
///
/// Errors: those of the store and of reading; kCancelled.
Result<Value> ProductOfPanels(const KernelCall& call);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/product/matmul.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// How the cells of t(X) %*% Y are accumulated (matmul_transposed.cc).
enum class Accumulation { kLanes, kVectors, kCells };

/// t(X) %*% Y, or some of its rows: sizes, and in which order its cells are added up.
struct TransposedOrder {
  Accumulation accumulation;
  int64_t m, n, k;      // Of the whole.
  int64_t height;       // Rows of a leaf.
  int64_t padded;       // n rounded up to whole vectors (kVectors).
  bool single = false;  // Chains are of floats: kCells of floats.
  bool symmetric;       // t(X) %*% X: only the upper triangle is computed, the root is mirrored.
  Reduction reduction;

  /// `whole_columns`: of an X of which x_columns columns are here, how many it has, on which the order of a
  /// cell depends; -1: these.
  TransposedOrder(const Node& node, std::span<const ValueInfo> infos, int64_t rows, int64_t x_columns,
                  int64_t y_columns, int64_t whole_columns = -1)
      : m(rows), n(x_columns), k(y_columns) {
    const bool is_part = whole_columns >= 0;
    const int64_t all = is_part ? whole_columns : n;
    accumulation = all * k <= 8       ? Accumulation::kLanes
                   : k <= kFewColumns ? Accumulation::kVectors
                                      : Accumulation::kCells;
    height = k <= kFewColumns ? ColumnPanelHeight(m, all) : Granule(m);
    padded = (n + 7) / 8 * 8;
    symmetric = !is_part && accumulation == Accumulation::kCells && node.inputs[0] == node.inputs[1] &&
                node.inputs[0] != kNoNode && infos[0].format == Format::kDense;
    reduction.width = accumulation == Accumulation::kLanes     ? 8 * n * k
                      : accumulation == Accumulation::kVectors ? k * padded
                                                               : n * k;
    reduction.leaf_cells = height * (accumulation == Accumulation::kCells ? n + k : n) + 1;
  }
  TransposedOrder(const KernelCall& call, int64_t rows, int64_t x_columns, int64_t y_columns,
                  int64_t whole_columns = -1)
      : TransposedOrder(call.node, call.input_infos, rows, x_columns, y_columns, whole_columns) {
    single = accumulation == Accumulation::kCells && TakesSinglesTransposed(call);
    reduction.cancelled = call.context.cancelled;
  }

  bool IsEmpty() const { return n == 0 || k == 0; }
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/device/operators/device_commands.h"

namespace heddle::ops {

/// C = A B, m x n, on a device: cell (i, j) is the sum over `terms` products a(i, k) b(k, j) in the order of
/// docs/numerics.md, sections 3 and 9: one chain, or a chain for each leaf of `height` terms and the tree
/// over the leaves.
struct DeviceProduct {
  int64_t m = 0, n = 0, terms = 0;
  int64_t height = 0;  ///< `terms` and more: one chain.
  ElementType type = ElementType::kFloat64;
  PlaceOnDevice a;
  int64_t a_row = 0, a_column = 1;  ///< Cell (i, k) of A is a_row * i + a_column * k cells behind its first.
  PlaceOnDevice b;                  ///< Rows of n cells.
  bool is_symmetric = false;        ///< A is t(B): cells below the diagonal are those above it.

  int64_t leaves() const;
};

/// How a device computes products; none of it can be seen in a result.
struct ProductLimits {
  bool is_in_local_memory = true;  ///< Of the two kernels (product_sources.h).
  int64_t work_of_launch = 0;      ///< Multiplications and additions of a launch, about.
  int64_t least_tiles = 1;         ///< Tiles of a launch that keep the device busy.
  int64_t payload_bytes = 0;       ///< Of leaves that are computed before the tree joins them.

  static ProductLimits Of(const DeviceDescription& device);
};

/// What Multiply, or, where `gives_nodes`, NodesOf takes of the memory of the device at most beside operands
/// and result, in bytes.
int64_t ScratchBytes(const DeviceProduct& product, const ProductLimits& limits, bool gives_nodes);

/// The whole product, in the memory of the device. The launches of a long one are steps of the queue
/// (DeviceSteps), as those of NodesOf.
Result<std::shared_ptr<const CellsOnDevice>> Multiply(const DeviceCommands& commands,
                                                      const DeviceProduct& product,
                                                      const ProductLimits& limits);
/// Its tree nodes, where leaf 0 here is leaf `first_leaf` of all: a list as ReduceLeaves makes it, of a
/// symmetric product as PackTriangles makes it, in the memory of the host. Payloads are there when the
/// commands of the queue are done.
Result<Matrix> NodesOf(const DeviceCommands& commands, const DeviceProduct& product, int64_t first_leaf,
                       const ProductLimits& limits);

}  // namespace heddle::ops

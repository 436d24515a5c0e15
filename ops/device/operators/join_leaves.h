// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/device/operators/device_commands.h"
#include "ops/reduction/reduction_tree.h"

// The tree of docs/numerics.md, section 2, on a device: payloads are joined where the leaves have left them
// (ops/reduction/reduction_tree.h), and what the root of the tree comes to stays there.
namespace heddle::ops {

/// Sums below it are finite however many ranks join theirs; others the host looks at.
constexpr double kFarFromOverflow = 0x1p960;

/// Payloads of leaves that follow each other, one behind the other in the memory of a device.
struct DevicePayloads {
  std::shared_ptr<DeviceMemory> memory;
  int64_t width = 0;  ///< Doubles of each.
  Join join = Join::kSum;
  /// kMoments: how many numbers a leaf counts, and how many all of them do; the last leaf may have fewer.
  int64_t of_leaf = 0, of_all = 0;
};

/// Joins leaves [begin, end), which is one node of the tree or all of it: its payload is then that of leaf
/// `begin`, and those behind it hold nothing any more. `root`, where it is not nullptr, gets a copy of it, of
/// several leaves and no moments.
Status JoinLeaves(DeviceCommands& commands, const DevicePayloads& payloads, int64_t begin, int64_t end,
                  const std::shared_ptr<DeviceMemory>& root = nullptr);

/// How a result is made of the payload of the root, cell by cell: cell (i, j) of it stands at place
/// first + i * row_step + j * column_step.
struct FinishedCells {
  enum class Kind : uint8_t {
    kAsItIs,
    kProduct,    ///< A zero without sign.
    kMean,       ///< Divided by `count`.
    kVariance,   ///< Of `count` numbers, from the sum of their squared deviations.
    kDeviation,  ///< Its root.
  };
  Kind kind = Kind::kAsItIs;
  int64_t rows = 1, columns = 1;
  int64_t first = 0, row_step = 0, column_step = 0;
  /// Not 0: a cell is L (docs/numerics.md, section 3) of eight numbers that are so far from each other.
  int64_t lane_step = 0;
  Join join = Join::kSum;     ///< Of lanes.
  double count = 1;
  bool is_symmetric = false;  ///< Cells below the diagonal are those above it.
  ElementType type = ElementType::kFloat64;
};

/// Writes the cells to `out`, rows without gaps. Where `flags` is not nullptr, its first int becomes 1 if one
/// of their numbers is not below kFarFromOverflow, or is NaN.
Status FinishCells(DeviceCommands& commands, const FinishedCells& cells,
                   const std::shared_ptr<DeviceMemory>& payload, const std::shared_ptr<DeviceMemory>& out,
                   const std::shared_ptr<DeviceMemory>& flags);

}  // namespace heddle::ops

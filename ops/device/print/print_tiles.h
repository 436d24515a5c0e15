// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// What a kernel may take of a device.
struct TileLimits {
  int64_t local_bytes = 32 << 10;  ///< Of a work-group.
  /// Work-items of a group: a multiple of 8; or 1, for devices whose compiler vectorizes loops: processors.
  int64_t group_size = 128;
};

/// A tile program as one kernel in OpenCL C. A work-group computes *tasks*, runs of rows that are whole
/// leaves of every reduction, tile by tile and step by step; its work-items share the cells of a step, and
/// meet at a barrier behind it; a group of one work-item has no barriers. Each lane, chain and column of a
/// reduction belongs to one work-item, so that its order is that of docs/numerics.md.
///
/// Arguments, in this order: rows and tasks (long); for each input of `inputs` its cells and the first of
/// them that counts (long), or of a CSR one its values, columns and offsets (EntriesOnDevice); for each node
/// of `scalars` a double; for each result of `results` its cells, or its values where it has the driver's
/// entries; for each root of the program the payloads of its leaves, one behind the other; two ints (flags):
/// the first is set to 1 where a sum of a row is no finite number, the second where such a result has cells
/// beside the entries that are not 0; the buffers of all work-groups, where `scratch_doubles` is not 0;
/// `patterns` arrays of doubles, one for each entry of the driver; for each input of `checked` an int, not 0
/// where some of its cells are infinite or NaN.
struct PrintedTiles {
  std::string source;
  std::string name = "heddle_tiles";
  std::vector<int> inputs;      ///< Positions of the inputs that are matrices.
  std::vector<bool> sparse;     ///< Of `inputs`: read by entries.
  std::vector<NodeId> scalars;  ///< Of the body.
  std::vector<int> results;     ///< Results with a row for each row of the driver.
  /// Rows of the kernel that are one row of the driver. Not 1: the program goes from cell to cell, so that
  /// what is printed is of one column, and serves all numbers of columns.
  int64_t rows_of_row = 1;
  int64_t task_rows = 0;
  int64_t group_size = 0;
  int64_t scratch_doubles = 0;  ///< Of a work-group; 0: its buffers are in local memory.
  int64_t buffer_columns = 0;   ///< Of all buffers together.
  int patterns = 0;             ///< Arrays of values at the driver's entries.
  std::vector<int> checked;     ///< Positions of inputs.
  bool sets_flags = false;      ///< Whether it may: else the flags stay 0.
};

/// kUnimplemented, with the reason, for programs with steps that no kernel is printed of: over rows that are
/// cut by columns.
Result<PrintedTiles> PrintTiles(const TileProgram& program, const TileLimits& limits);

}  // namespace heddle::ops

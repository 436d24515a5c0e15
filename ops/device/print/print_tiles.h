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
  int64_t busy_tasks = 256;  ///< So many keep the device busy: more may be put together.
  /// By input: a scalar that is a cell in the memory of the device. Empty: none is.
  std::vector<bool> scalars_in_memory = {};
};

/// One pass of a printed program over its rows: a launch, or several one after the other.
struct PrintedPass {
  std::string source;
  int64_t task_rows = 0;  ///< Rows of which `row_tasks` tasks compute some columns each.
  int64_t row_tasks = 1;
};

/// A tile program in OpenCL C: one kernel, or of rows that are cut by columns one for each pass over them
/// (tile_printer_long_rows.cc). A work-group computes *tasks*, runs of rows that are whole
/// leaves of every reduction, tile by tile and step by step; its work-items share the cells of a step, and
/// meet at a barrier behind it; a group of one work-item has no barriers. Each lane, chain and column of a
/// reduction belongs to one work-item, so that its order is that of docs/numerics.md.
///
/// Arguments, in this order: rows, the first task and the one behind the last (long), so that launches may
/// share the tasks of a pass; for each input of `inputs` its cells and the first of them that counts (long),
/// or of a CSR one its values, columns and offsets (EntriesOnDevice); for each node of `scalars` a double,
/// or, of those in memory, its cells and the one that counts (long); for each result of `results` its cells,
/// or its values where it has the driver's entries; for each root of the program the payloads of its leaves,
/// one behind the other (LeavesOf); two ints (flags): the first is set to 1 where a sum of a row is no finite
/// number, the second where such a result has cells beside the entries that are not 0; the buffers of all
/// work-groups, where `scratch_doubles` is not 0; `patterns` arrays of doubles, one for each entry of the
/// driver; rows of saved values, for each of the program's `saved_arrays`; for each input of `checked` an
/// int, not 0 where some of its cells are infinite or NaN.
struct PrintedTiles {
  std::vector<PrintedPass> passes;
  std::string name = "heddle_tiles";
  std::vector<int> inputs;      ///< Positions of the inputs that are matrices.
  std::vector<bool> sparse;     ///< Of `inputs`: read by entries.
  std::vector<NodeId> scalars;  ///< Of the body.
  /// Scalars of the body that come of those in memory (TileLimits), ascending: not only of `scalars`.
  std::vector<NodeId> scalars_in_memory;
  std::vector<int> results;     ///< Results with a row for each row of the driver.
  /// Rows of the kernel that are one row of the driver. Not 1: the program goes from cell to cell, so that
  /// what is printed is of one column, and serves all numbers of columns.
  int64_t rows_of_row = 1;
  int64_t group_size = 0;
  int64_t scratch_doubles = 0;  ///< Of a work-group; 0: its buffers are in local memory.
  int64_t buffer_columns = 0;   ///< Of all buffers together.
  int patterns = 0;             ///< Arrays of values at the driver's entries.
  std::vector<int> checked;     ///< Positions of inputs.
  bool sets_flags = false;      ///< Whether it may: else the flags stay 0.
};

/// A power of two: in so many CSR rows longer than a column chunk, a work-group joins the leaves of a full
/// aggregate to nodes of as many leaves each, so that the nodes of all rows are few. 1 for other roots, whose
/// leaves are joined when all are there.
int64_t JoinedRows(const TileProgram& program, const TileRoot& root);

/// How many leaves, or nodes of JoinedRows leaves, the payload of a root has for so many rows, which begin
/// with one: each chunk of a row that is longer than a column chunk is a leaf, but for sums of columns.
int64_t LeavesOf(const TileProgram& program, const TileRoot& root, int64_t rows);

/// kUnimplemented, with the reason, for programs with steps that no kernel is printed of: some over rows
/// longer than a column chunk.
Result<PrintedTiles> PrintTiles(const TileProgram& program, const TileLimits& limits);

}  // namespace heddle::ops

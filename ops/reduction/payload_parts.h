// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ops/base/stages.h"
#include "ops/reduction/reduction_tree.h"

// Reductions whose results are finished in parts (ops/base/stages.h): the payloads of tree nodes are cut
// between ranks, and every cell is joined in the tree of docs/numerics.md, section 2, whoever joins it and in
// how many steps.
//
// A list that kJoinParts has made of some units has one row for a node, as any other, and one column more:
// -1 - its first unit, index, level, the payload of its units. Of all units of lists as "partial" makes them
// it makes such a list.
namespace heddle::ops {

/// Where the cells of the units are in a payload: `shared` doubles that belong to all units, then `runs`
/// runs, each with unit_cells doubles of every unit, one run `stride` doubles behind the other.
struct PayloadLayout {
  Joins join = Join::kSum;
  int64_t units = 0;
  int64_t shared = 0;
  int64_t runs = 1;
  int64_t stride = 0;
  int64_t unit_cells = 1;
  /// Unit i has units - i cells: the rows of a symmetric result from the diagonal on, one behind the other.
  /// Lists may also have all units * units cells, of which those below the diagonal do not count.
  bool triangle = false;
  /// Units are whole rows of a symmetric result, though lists have the cells on and above the diagonal alone
  /// (or all, of which those below it do not count).
  bool mirrored = false;
  /// Sums that leave the range of doubles are computed from the nodes once more (ops/aggregate/wide_sums.h):
  /// nodes whose join is not finite stay apart, and so do all that have rows of kWideLevel among them.
  bool adds_up = false;
  int64_t leaves = 0;  ///< Of the whole tree.

  /// Doubles of a run before those of `unit`.
  int64_t CellsBefore(int64_t unit) const {
    return triangle ? CellsBeforeRow(units, unit) : unit * unit_cells;
  }
  int64_t Width(int64_t begin, int64_t end) const {
    return shared + runs * (CellsBefore(end) - CellsBefore(begin));
  }
};

/// The cells on and above the diagonal of payloads with n * n cells each: half of the bytes of a list.
Result<Matrix> PackTriangles(const Matrix& nodes, int64_t n);
/// Writes a symmetric n x n result from such a payload.
void UnpackTriangle(const double* packed, int64_t n, double* out);

/// Finished cells in the element type of the node's result; what kAssembleParts reads stays in doubles until
/// then.
Result<Matrix> AsResultCells(const StageCall& call, Matrix cells);

/// The units of a part as they stand in the result, from the root of their tree: `root` is laid out as a
/// payload of just these units without gaps. `nodes` gives the list with the units' payloads, not joined, for
/// what looks at nodes once more.
using ClosePart =
    std::function<Result<Matrix>(const double* root, const std::function<Result<Matrix>()>& nodes)>;

/// StagedForm::run of a reduction whose payload is laid out so.
Status RunReductionStage(const StageCall& call, const PayloadLayout& layout, const ClosePart& close,
                         std::span<Value> outputs);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

// Computes values of the body operator by operator for some rows. A sum that has come out infinite or NaN
// must be added again in a wider range (ops/aggregate/wide_sums.h), and the tiles did not store its terms;
// the plain kernels give the same bits as tiles do.
namespace heddle::ops {

/// Values of the body on some rows, outside of tiles. Thread-safe.
class BodyRows {
 public:
  /// Both outlive it.
  BodyRows(const TileProgram& program, const KernelCall& call) : program_(program), call_(call) {}

  /// Rows [begin, end) of this rank's rows of a body node.
  Result<Matrix> Get(NodeId root, int64_t begin, int64_t end) const;
  /// CorrectRows of the row aggregate `fold` for rows [begin, end), that of the first in out[0].
  Status Correct(NodeId fold, int64_t begin, int64_t end, double* out) const;

 private:
  std::vector<bool> NeededFor(NodeId root) const;
  int64_t FirstRow() const { return call_.phase == Phase::kPartial ? call_.row_begin : 0; }

  const TileProgram& program_;
  const KernelCall& call_;
};

/// True for sums of doubles: what comes out infinite or NaN is added again. Floats are far from the ends of
/// doubles, in which they are added up.
bool MayNeedWideSums(const TileProgram& program, const TileRoot& root);
/// The root as a sum of its operand, in payloads in which it begins at `offset`.
SumsOfMatrix SumsOf(const TileProgram& program, const TileRoot& root, int64_t offset);
/// AddWideNodes for a root, or for all roots, whose payloads these are.
Result<Matrix> AddWideNodes(const TileProgram& program, const TileRoot& root, int64_t offset,
                            const KernelCall& call, Matrix nodes);
Result<Matrix> AddWideNodes(const TileProgram& program, const KernelCall& call, Matrix nodes);

}  // namespace heddle::ops

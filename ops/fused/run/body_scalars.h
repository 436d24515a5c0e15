// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// The scalars of a body as numbers, by node; 0 for nodes that are no scalars, and for strings.
class BodyScalars {
 public:
  /// `program` outlives it.
  explicit BodyScalars(const TileProgram& program);
  /// With the inputs of a call. Literals stay as they are.
  Status Evaluate(const KernelCall& call);
  const double& operator[](size_t node) const { return numbers_[node]; }

 private:
  Status EvaluateOperators(const KernelCall& call);

  const TileProgram& program_;
  std::vector<double> numbers_;
  std::vector<std::pair<size_t, size_t>> inputs_;  // Nodes that stand for scalar inputs, and which.
  bool has_operators_ = false;
};

}  // namespace heddle::ops

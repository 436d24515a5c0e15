// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/recursion/adjoints.h"
#include "engine/recursion/bodies.h"
#include "engine/recursion/rows.h"
#include "engine/variables/session_options.h"
#include "ops/base/kernel.h"

namespace heddle::engine {

/// The kernels of a session with those of the operators of recursions (ops/recursion/recursive_operator.h):
/// runs structurally recursive functions as batches of nodes, children first. Kept for all its calls, from
/// whatever lane: what is known of the functions, and values for ways back. Thread-safe.
class RecursionKernels : public ops::KernelSource {
 public:
  /// All outlive it. `kernels`: those of all other operators.
  RecursionKernels(const Program& program, const SessionOptions& options, const ops::KernelSource& kernels);
  ~RecursionKernels() override;

  Status Run(const ops::KernelCall& call, std::span<Value> results) const override;
  using KernelSource::Run;

  const RecursionBodies& bodies() const { return bodies_; }
  RecursionAdjoints& adjoints() { return adjoints_; }

 private:
  Result<Matrix> RowsOf(const ops::KernelCall& call, const Function& function) const;
  /// In groups of roots, one after the other, where the nodes of all would not fit into the memory that is
  /// left; of each group what its roots are is kept.
  Result<RecursionParts> Evaluate(const Function& function, const std::vector<int64_t>& roots,
                                  const VariableTable& inputs, ops::KernelContext& context) const;

  const Program& program_;
  const ops::KernelSource& kernels_;
  const RecursionBodies bodies_;
  RecursionAdjoints adjoints_;
};

}  // namespace heddle::engine

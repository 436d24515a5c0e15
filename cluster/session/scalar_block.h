// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "cluster/session/variables.h"
#include "core/graph.h"
#include "ops/kernel.h"

namespace heddle::cluster {

/// Evaluates graphs that are scalar arithmetic on known scalars (and renaming of variables) in place, without
/// a plan: loop counters, predicates, arguments of calls. Equal on every rank, because scalars are.
class ScalarBlocks {
 public:
  ScalarBlocks(int rank, const ops::KernelSource& kernels, ops::KernelContext& context)
      : rank_(rank), kernels_(kernels), context_(context) {}

  /// True: done, `frame` has the results and effects have acted (prints on rank 0 only). False: needs a plan,
  /// nothing has happened. An error is one of an effect (stop, assert). `graph` stays where it is while this
  /// lives.
  Result<bool> Evaluate(const Graph& graph, Frame* frame);
  /// The same for a graph that will not be seen again.
  Result<bool> EvaluateOnce(const Graph& graph, Frame* frame);

 private:
  enum class StepKind : uint8_t { kLiteral, kVariable, kAssign, kSize, kPure, kPrint, kCheck };
  struct Prepared {
    bool possible = true;
    std::vector<StepKind> steps;  // one a node
  };
  struct Slot {  // of a node
    const Scalar* scalar = nullptr;
    const Variable* variable = nullptr;
    Scalar own;
  };
  static Prepared Prepare(const Graph& graph);
  Result<bool> Run(const Graph& graph, Prepared* prepared, Frame* frame);
  bool Compute(const Graph& graph, Prepared* prepared, const Frame& frame);
  Status Act(const Node& node);

  int rank_;
  const ops::KernelSource& kernels_;
  ops::KernelContext& context_;
  std::unordered_map<const Graph*, Prepared> prepared_;
  std::vector<Slot> slots_;
  std::vector<const Scalar*> inputs_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/session/session.h"
#include "cluster/session/structure_cache.h"
#include "cluster/session/structure_inputs.h"
#include "compiler/optimize/infer.h"
#include "compiler/recursion/recognise.h"
#include "ops/kernel.h"
#include "ops/recursion/packed_weights.h"
#include "ops/recursion/recursive_body.h"

namespace heddle::compiler {
struct ClassContext;
}

namespace heddle::cluster {

/// The kernels of a session with that of the operator "recursive" (ops/recursion/recursive_operator.h): runs
/// structurally recursive functions as batches of nodes, children first. Kept for all its calls, from
/// whatever lane: what was found at each function, the last structures as arrays, bodies of classes.
/// Thread-safe.
class RecursionKernels : public ops::KernelSource {
 public:
  /// All outlive it. `kernels`: those of all other operators.
  RecursionKernels(const Program& program, const SessionOptions& options, const ops::KernelSource& kernels);
  ~RecursionKernels() override;

  Status Run(const ops::KernelCall& call, std::span<Value> results) const override;
  using KernelSource::Run;

  /// What was found at a function of the program.
  const compiler::Recognition& FoundAt(const Function& function) const;
  /// What the function's results are at one node, as the first node reached from `root` tells: that at which
  /// evaluation begins. nullopt: it is to be interpreted, the user was told why.
  Result<std::optional<std::vector<ValueInfo>>> ResultsAt(const Function& function, int64_t root,
                                                          const Frame& inputs) const;
  /// Tells the user once of each function why it is interpreted.
  void SayWhy(const Function& function, const std::string& why) const;
  /// Of each body that was made, what it runs (recursion_texts.h).
  std::vector<std::string> Texts() const;
  /// How often functions ran in each form (likewise).
  std::map<std::string, int64_t> Forms() const;

 private:
  struct Known;       // of a function
  struct Evaluation;  // of some roots

  Known& KnownOf(const Function& function) const;
  Result<Matrix> RowsOf(const ops::KernelCall& call, const Function& function, bool numbered) const;
  Result<std::optional<Evaluation>> Evaluate(const Function& function, const std::vector<int64_t>& roots,
                                             const Frame& inputs, ops::KernelContext& context) const;
  Result<std::shared_ptr<const ops::Linearized>> StructureOf(const Function& function,
                                                             const std::vector<int64_t>& roots,
                                                             const Frame& inputs) const;
  compiler::ClassContext ContextOf(const Function& function, const Frame& inputs, std::string* sizes) const;
  Result<std::shared_ptr<const ops::RecursiveBody>> BodyOf(const Function& function, const std::string& sizes,
                                                           const ops::Linearized::Class& node_class,
                                                           const std::vector<ValueInfo>& children,
                                                           const compiler::ClassContext& context) const;

  const Program& program_;
  const SessionOptions& options_;
  const ops::KernelSource& kernels_;
  mutable std::mutex known_mutex_;
  mutable std::map<const Function*, std::unique_ptr<Known>> known_;
  mutable std::mutex bodies_mutex_;         // Over the bodies of all functions: they are made one at a time.
  mutable std::vector<std::string> texts_;  // Under the same mutex,
  mutable std::map<std::string, int64_t> forms_;  // the same.
  mutable ops::WeightCache weights_;
  mutable StructureCache structures_;
};

}  // namespace heddle::cluster

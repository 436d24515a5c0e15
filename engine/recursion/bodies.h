// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/recursion/class_body.h"
#include "compiler/recursion/recognise.h"
#include "engine/recursion/structure_cache.h"
#include "engine/recursion/structure_inputs.h"
#include "engine/variables/session_options.h"
#include "ops/base/kernel.h"
#include "ops/recursion/adjoint/recursive_adjoint.h"
#include "ops/recursion/run/recursion_cache.h"

namespace heddle::engine {

/// What all bodies of an evaluation depend on.
struct BodySetting {
  compiler::ClassContext context;  ///< Without results of children.
  std::string sizes;               ///< Of the parameters, as a text that is compared and never read.
};

/// The recursive functions of a program, in a session: what the compiler recognises in each, the last
/// structures as arrays, the bodies of classes and of their derivatives. Thread-safe.
class RecursionBodies {
 public:
  /// Both outlive it.
  RecursionBodies(const Program& program, const SessionOptions& options);
  ~RecursionBodies();

  /// What the compiler recognises in a function of the program.
  const compiler::Recognition& RecognitionOf(const Function& function) const;
  /// Of a forward function (DerivativeRole): the parameters whose adjoints its backward function returns,
  const std::vector<std::string>& WantedOf(const Function& function) const;
  /// and the results, by number, whose adjoints that function takes.
  const std::vector<size_t>& ResultsWithAdjoints(const Function& function) const;
  /// The parameters in the order of the inputs of ops::kRecursiveBackward.
  std::vector<std::string> BackwardInputs(const Function& function) const;
  /// What the function's results are at one node, found at the node at which the evaluation of `root` begins.
  /// nullopt: the function must be interpreted; the user was told why.
  Result<std::optional<std::vector<ValueInfo>>> ResultsAt(const Function& function, int64_t root,
                                                          const VariableTable& inputs) const;
  /// Logs why a function is interpreted, once for each function.
  void ReportInterpreted(const Function& function, const std::string& why) const;
  /// What each body that was made runs (texts.h).
  std::vector<std::string> Texts() const;
  /// Counts an evaluation under a text of texts.h; for -stats.
  void CountEvaluation(const std::string& form) const;
  std::map<std::string, int64_t> EvaluationCounts() const;

  /// The nodes that are reached from the roots; nullptr where only the interpreter can tell them.
  Result<std::shared_ptr<const ops::Linearized>> StructureOf(const Function& function,
                                                             const std::vector<int64_t>& roots,
                                                             const VariableTable& inputs) const;
  /// The parameters of these names, which are the inputs of an operator from number `first` on.
  static VariableTable InputsOf(const std::vector<std::string>& names, const ops::KernelCall& call,
                                size_t first);
  BodySetting SettingOf(const Function& function, const VariableTable& inputs) const;
  /// The body of a class; nullptr where the interpreter must run. `children`: what results are at one node;
  /// empty while no node has been computed.
  Result<std::shared_ptr<const ops::RecursiveBody>> BodyOf(const Function& function,
                                                           const BodySetting& setting,
                                                           const ops::Linearized::Class& node_class,
                                                           const std::vector<ValueInfo>& children) const;
  /// The derivative of this body, whose forward body saves values or whose backward body computes them again.
  Result<std::shared_ptr<const ops::RecursiveAdjoint>> AdjointOf(const Function& function,
                                                                 const BodySetting& setting,
                                                                 const ops::Linearized::Class& node_class,
                                                                 const std::vector<ValueInfo>& children,
                                                                 bool saves) const;
  ops::RecursionCache& cache() const { return cache_; }

 private:
  struct FunctionBodies;

  FunctionBodies& BodiesOfFunction(const Function& function) const;

  const Program& program_;
  const SessionOptions& options_;
  mutable std::mutex functions_mutex_;
  mutable std::map<const Function*, std::unique_ptr<FunctionBodies>> functions_;
  // Held while a body is made, and for the bodies of all functions and the two lists below.
  mutable std::mutex bodies_mutex_;
  mutable std::vector<std::string> texts_;
  mutable std::map<std::string, int64_t> evaluation_counts_;
  mutable ops::RecursionCache cache_;
  mutable StructureCache structures_;
};

}  // namespace heddle::engine

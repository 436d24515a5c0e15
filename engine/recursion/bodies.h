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

/// What is known of the recursive functions of a program: what was found at each, the last structures as
/// arrays, the bodies of classes and of their derivatives. Thread-safe.
class RecursionBodies {
 public:
  /// Both outlive it.
  RecursionBodies(const Program& program, const SessionOptions& options);
  ~RecursionBodies();

  /// What was found at a function of the program.
  const compiler::Recognition& FoundAt(const Function& function) const;
  /// Of a forward function (DerivativeRole): the parameters whose adjoints its backward function returns,
  const std::vector<std::string>& WantedOf(const Function& function) const;
  /// and the results, by number, whose adjoints that function takes.
  const std::vector<size_t>& ResultsWithAdjoints(const Function& function) const;
  /// The parameters in the order of the inputs of ops::kRecursiveBackward.
  std::vector<std::string> BackwardInputs(const Function& function) const;
  /// What the function's results are at one node, as the first node reached from `root` tells: that at which
  /// evaluation begins. nullopt: it is to be interpreted, the user was told why.
  Result<std::optional<std::vector<ValueInfo>>> ResultsAt(const Function& function, int64_t root,
                                                          const VariableTable& inputs) const;
  /// Tells the user once of each function why it is interpreted.
  void SayWhy(const Function& function, const std::string& why) const;
  /// Of each body that was made, what it runs (texts.h).
  std::vector<std::string> Texts() const;
  /// An evaluation in this form (likewise), and how many there were of each.
  void CountForm(const std::string& form) const;
  std::map<std::string, int64_t> Forms() const;

  /// The nodes that are reached from the roots; nullptr where only the interpreter can tell them.
  Result<std::shared_ptr<const ops::Linearized>> StructureOf(const Function& function,
                                                             const std::vector<int64_t>& roots,
                                                             const VariableTable& inputs) const;
  /// The parameters of these names, which are the inputs of an operator from number `first` on.
  static VariableTable InputsOf(const std::vector<std::string>& names, const ops::KernelCall& call,
                                size_t first);
  /// What all bodies of an evaluation depend on; in `sizes` as a text.
  compiler::ClassContext ContextOf(const Function& function, const VariableTable& inputs,
                                   std::string* sizes) const;
  /// The body of a class. nullptr where there is none.
  Result<std::shared_ptr<const ops::RecursiveBody>> BodyOf(const Function& function, const std::string& sizes,
                                                           const ops::Linearized::Class& node_class,
                                                           const std::vector<ValueInfo>& children,
                                                           const compiler::ClassContext& context) const;
  /// Its derivative, which keeps values or makes them again. nullptr where there is none.
  Result<std::shared_ptr<const ops::RecursiveAdjoint>> AdjointOf(
      const Function& function, const std::string& sizes, const ops::Linearized::Class& node_class,
      const std::vector<ValueInfo>& children, const compiler::ClassContext& context, bool keeps) const;
  ops::RecursionCache& cache() const { return cache_; }

 private:
  struct Known;  // of a function

  Known& KnownOf(const Function& function) const;

  const Program& program_;
  const SessionOptions& options_;
  mutable std::mutex known_mutex_;
  mutable std::map<const Function*, std::unique_ptr<Known>> known_;
  mutable std::mutex bodies_mutex_;         // Over the bodies of all functions: they are made one at a time.
  mutable std::vector<std::string> texts_;  // Under the same mutex,
  mutable std::map<std::string, int64_t> forms_;  // the same.
  mutable ops::RecursionCache cache_;
  mutable StructureCache structures_;
};

}  // namespace heddle::engine

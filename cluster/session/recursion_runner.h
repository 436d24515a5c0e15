// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/session/session.h"
#include "cluster/variables/variables.h"
#include "compiler/recursion/find_roots.h"
#include "compiler/recursion/recognise.h"
#include "ops/parallel.h"
#include "ops/recursion/packed_weights.h"
#include "ops/recursion/recursive_body.h"

namespace heddle::compiler {
struct ClassContext;
}

namespace heddle::cluster {

class BlockRunner;

/// Runs calls of structurally recursive functions as batches of nodes, children first, in place of the calls
/// (docs/recursion.md). What it keeps: what was found at each function, the last structures as arrays, bodies
/// of classes for the last sizes of parameters.
class RecursionRunner {
 public:
  /// All outlive it.
  RecursionRunner(const Program& program, const SessionOptions& options, BlockRunner& blocks);
  ~RecursionRunner();

  /// Whether a call of the function may be run here.
  bool Knows(const Function& function);
  /// Runs a call whose arguments are in `callee` and leaves the function's results there. False: nothing has
  /// happened, it is to be interpreted; the user was told why, once. Errors name nodes.
  Result<bool> Run(const Function& function, Frame* callee);
  /// Before the rounds of a loop whose counter takes these values. True if calls of a function in them will
  /// be run as one, when the first of them is made; such a loop runs in order.
  bool EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of, uint64_t rounds,
                 const Frame& frame);
  /// Behind the last round of any loop.
  void LeaveLoop(const Block& loop);

 private:
  struct Known;       // of a function
  struct Structure;   // as arrays, and what it was made of
  struct Forest;      // the roots of a loop
  struct Evaluation;  // of some roots
  struct Work;

  Known& KnownOf(const Function& function);
  Result<bool> RunInForest(Forest* forest, const Function& function, Frame* callee);
  Result<std::optional<Evaluation>> Evaluate(const Function& function, const std::vector<int64_t>& roots,
                                             Frame* callee);
  Result<std::optional<Evaluation>> EvaluateParts(Known* known, const Function& function,
                                                  const std::vector<int64_t>& roots, const Frame& callee,
                                                  const Work& work);
  Status TakeResults(const Function& function, const Evaluation& evaluation, size_t root,
                     Frame* callee) const;
  Result<std::shared_ptr<const ops::Linearized>> StructureOf(const Known& known, const Function& function,
                                                             const std::vector<int64_t>& roots,
                                                             const Frame& callee);
  Result<std::shared_ptr<const ops::RecursiveBody>> BodyOf(Known* known, const Function& function,
                                                           const ops::Linearized::Class& node_class,
                                                           const std::vector<ValueInfo>& children,
                                                           const compiler::ClassContext& context);
  void SayWhy(Known* known, const Function& function, const std::string& why);

  const Program& program_;
  const SessionOptions& options_;
  BlockRunner& blocks_;
  const bool is_on_;
  std::map<const Function*, std::unique_ptr<Known>> known_;
  std::map<const Block*, std::optional<compiler::LoopRoots>> loops_;  // what was found at each
  std::mutex mutex_;  // Over what the parts of an evaluation find together: bodies.
  ops::WeightCache weights_;
  std::vector<std::unique_ptr<ops::Arena>> alone_;  // Of one thread, one a part of an evaluation.
  std::list<Structure> structures_;                 // the last first
  std::vector<std::unique_ptr<Forest>> forests_;    // of the loops that run
};

}  // namespace heddle::cluster

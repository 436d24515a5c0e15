// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/session/session.h"
#include "cluster/session/structure_cache.h"
#include "cluster/variables/variables.h"
#include "compiler/recursion/find_roots.h"
#include "compiler/recursion/recognise.h"
#include "ops/recursion/packed_weights.h"
#include "ops/recursion/recursive_adjoint.h"

namespace heddle::compiler {
struct ClassContext;
}

namespace heddle::cluster {

class BlockRunner;

/// Runs the functions that gradient() has made of a recursive one (compiler/gradient/gradient.h) as batches
/// of nodes, where that one is a structural recursion (docs/gradient.md): "forward ..." for all roots of a
/// loop at once, "backward ..." and "rounds of ..." as one way back through the batches. What is kept between
/// the two hangs on the list that the program keeps.
class RecursionGradient {
 public:
  /// All outlive it.
  RecursionGradient(const Program& program, const SessionOptions& options, BlockRunner& blocks);
  ~RecursionGradient();

  /// Whether a call of the function may be run here.
  bool Knows(const Function& function);
  /// Runs a call whose arguments are in `callee` and leaves the results there. False: nothing has happened,
  /// it is to be interpreted; the user was told why, once. Errors name nodes.
  Result<bool> Run(const Block& call, const Function& function, Frame* callee);
  /// Before the rounds of a loop whose counter takes these values. True if the calls of one block in them
  /// will be run as one, when the first of them is made.
  Result<bool> EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of,
                         uint64_t rounds, Frame* frame);
  /// Behind the last round of any loop.
  void LeaveLoop(const Block& loop);

 private:
  struct Known;
  struct Forest;
  struct Evaluation;
  struct Kept;
  struct Setting;
  using Given = std::map<std::shared_ptr<const Evaluation>, std::vector<ops::AdjointAt>>;

  Known& KnownOf(const Function& function);
  bool HasRounds(const Function& backward);
  Result<bool> RunForward(const Block& call, const Function& function, Frame* callee);
  Result<bool> RunBackward(const Function& function, Frame* callee);
  Result<bool> RunRounds(const Function& function, Frame* callee);
  Result<bool> Sum(const Function& backward,
                   const std::vector<std::shared_ptr<const Evaluation>>& evaluations, const Given& given,
                   Frame* callee);
  Result<std::shared_ptr<const Evaluation>> Evaluate(const Function& function,
                                                     const std::vector<int64_t>& roots, Frame* callee);
  Result<std::optional<Setting>> SettingFor(const Function& function, Frame* callee);
  Result<std::shared_ptr<const ops::RecursiveAdjoint>> AdjointOf(const Function& function,
                                                                 const ops::Linearized::Class& node_class,
                                                                 const std::vector<ValueInfo>& children,
                                                                 const Setting& setting, int64_t* room);
  Result<std::vector<Value>> AdjointsIn(const Function& backward, const std::vector<Variable>& given);
  void SayWhy(Known* known, const Function& function, const std::string& why);
  std::vector<const Parameter*> AdjointParameters(const Function& backward) const;

  const Program& program_;
  const SessionOptions& options_;
  BlockRunner& blocks_;
  const bool is_on_;
  std::map<const Function*, std::unique_ptr<Known>> known_;
  std::map<const Block*, std::optional<compiler::LoopRoots>> loops_;
  ops::WeightCache weights_;
  StructureCache structures_;
  std::vector<std::unique_ptr<Forest>> forests_;  // of the loops that run
};

}  // namespace heddle::cluster

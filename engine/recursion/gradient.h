// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/recursion/forests.h"
#include "engine/recursion/plans.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

class GraphRunner;

/// Runs the functions that gradient() has made of a recursive one (compiler/gradient/gradient.h) as plans,
/// where that one is a structural recursion (docs/gradient.md): "forward ..." for all roots of a loop at
/// once, "backward ..." and "rounds of ..." as one way back through the batches. What is kept between the two
/// hangs on the list that the program keeps. Every rank takes part and has the results.
class RecursionGradient {
 public:
  /// All outlive it.
  RecursionGradient(const Program& program, const SessionOptions& options, GraphRunner& runner);
  ~RecursionGradient();

  /// Whether a call of the function may be run here.
  bool Knows(const Function& function);
  /// Runs a call whose arguments are in `callee` and leaves the results there. False: nothing has happened,
  /// it is to be interpreted; the user was told why, once. Errors name nodes.
  Result<bool> Run(const Block& call, const Function& function, VariableTable* callee);
  /// Before the rounds of a loop whose counter takes these values. True if the calls of one block in them
  /// will be run as one, when the first of them is made.
  Result<bool> EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of,
                         uint64_t rounds, VariableTable* frame);
  /// Behind the last round of any loop.
  void LeaveLoop(const Block& loop);

 private:
  struct Known;
  struct Kept;
  // By evaluation, in the order in which rounds name them.
  using Given = std::vector<std::pair<int64_t, GivenAdjoints>>;

  Known& KnownOf(const Function& function);
  bool HasRounds(const Function& backward);
  std::string NodeOf(const std::string& function);
  Result<bool> RunForward(const Block& call, const Function& function, VariableTable* callee);
  Result<std::shared_ptr<ListOf<Variable>>> KeptAt(const RecursionEvaluation& evaluation, size_t root) const;
  Result<bool> RunBackward(const Block& call, const Function& function, VariableTable* callee);
  Result<bool> RunRounds(const Block& call, const Function& function, VariableTable* callee);
  Result<bool> AddRound(const Function& backward, const Variable& kept, const std::vector<Variable>& adjoints,
                        Given* given);
  Result<bool> Sum(const Block& call, const Function& backward, const Given& given, VariableTable* callee);
  Result<std::vector<Value>> AdjointsIn(const Function& backward, const std::vector<Variable>& given);
  std::vector<const Parameter*> AdjointParameters(const Function& backward) const;

  const Program& program_;
  const SessionOptions& options_;
  GraphRunner& runner_;
  const bool is_on_;
  std::map<const Function*, std::unique_ptr<Known>> known_;
  RecursionPlans plans_;
  RecursionForests forests_;
};

}  // namespace heddle::engine

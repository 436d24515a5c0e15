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
#include "engine/recursion/saved_call.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

class GraphRunner;

/// Runs the functions that gradient() has made of a recursive one (DerivativeRole) as plans, where that one
/// is a structural recursion (docs/gradient.md): a forward function for all roots of a loop together, a
/// backward one, or one for the rounds of a loop, as one sweep back through the batches. What the forward
/// call saves hangs on the list that the program passes to the backward call (SavedCall). Every rank takes
/// part and has the results.
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
  // A function of a derivative that batches may run; of all others kNone.
  struct Derived {
    DerivativeRole::Kind kind = DerivativeRole::Kind::kNone;
    size_t node_parameter = 0;          // Of a forward function.
    const Function* partner = nullptr;  // DerivativeRole::partner
  };
  // Adjoints of one evaluation, which `first` is a call of.
  struct OfEvaluation {
    SavedCall first;
    GivenAdjoints adjoints;
  };
  using Given = std::vector<OfEvaluation>;  // In the order in which rounds name the evaluations.

  const Derived& DerivedOf(const Function& function);
  bool HasRounds(const Function& backward);
  std::string NodeOf(const std::string& function);
  Result<bool> RunForward(const Block& call, const Function& function, VariableTable* callee);
  Result<Variable> SavedAt(const RecursionEvaluation& evaluation, size_t root) const;
  Result<bool> RunBackward(const Block& call, const Function& function, VariableTable* callee);
  Result<bool> RunRounds(const Block& call, const Function& function, VariableTable* callee);
  Status AddRound(const Function& backward, const SavedCall& saved, const std::vector<Variable>& adjoints,
                  Given* given);
  Status Sum(const Block& call, const Function& backward, const Given& given, VariableTable* callee);
  Result<std::vector<Value>> AdjointsIn(const Function& backward, const std::vector<Variable>& given);
  static std::vector<std::string> AdjointParameters(const Function& backward);

  const Program& program_;
  const SessionOptions& options_;
  GraphRunner& runner_;
  const bool is_on_;
  std::map<const Function*, Derived> derived_;
  RecursionPlans plans_;
  RecursionForests forests_;
};

}  // namespace heddle::engine

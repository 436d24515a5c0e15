// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "engine/recursion/forests.h"
#include "engine/recursion/plans.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

class GraphRunner;

/// Runs calls of structurally recursive functions as plans (docs/recursion.md); the calls of a loop as one,
/// if their roots are known before it. Every rank takes part and has the results.
class RecursionRunner {
 public:
  /// All outlive it.
  RecursionRunner(const Program& program, const SessionOptions& options, GraphRunner& runner);
  ~RecursionRunner();

  /// Whether a call of the function may be run here.
  bool Knows(const Function& function);
  /// Runs a call whose arguments are in `callee` and leaves the function's results there. False: nothing has
  /// happened, it is to be interpreted; the user was told why, once. Errors name nodes.
  Result<bool> Run(const Block& call, const Function& function, VariableTable* callee);
  /// Before the rounds of a loop whose counter takes these values. True if calls of a function in them will
  /// be run as one, when the first of them is made.
  Result<bool> EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of,
                         uint64_t rounds, VariableTable* frame);
  /// Behind the last round of any loop.
  void LeaveLoop(const Block& loop);

  /// For rounds that run at once, of the innermost loop: the block that makes the calls, nullptr where they
  /// are not run as one; and what they find, evaluated before them, for a call whose arguments are in
  /// `callee` but for the node.
  const Block* CallOf(const Block& loop) const { return forests_.CallOf(loop); }
  const std::string& NodeOf(const Function& function) const;
  Result<RecursionForests::Evaluated> EvaluateLoop(const Function& function, VariableTable* callee);
  /// What rounds of another program's loop find (RecursionForests::Adopt).
  void Adopt(RecursionForests::Evaluated forest) { forests_.Adopt(std::move(forest)); }

 private:
  const compiler::Recognition& RecognitionOf(const Function& function) const;

  GraphRunner& runner_;
  const bool is_on_;
  RecursionPlans plans_;
  RecursionForests forests_;
};

}  // namespace heddle::engine

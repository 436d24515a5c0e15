// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/recursion/find_roots.h"
#include "engine/recursion/plans.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

class GraphRunner;

/// The loops that run, as far as their rounds call a recursion for nodes that are known before the first of
/// them: one forest, whose roots are evaluated together when the first call is made, or before the rounds,
/// which may run at once, then.
class RecursionForests {
 public:
  struct Forest;
  /// One that is evaluated: nothing changes it any more.
  using Evaluated = std::shared_ptr<const Forest>;

  /// Both outlive it. `node_of`: the node parameter of a function, "" where calls of it are no batches.
  RecursionForests(const SessionOptions& options, GraphRunner& runner,
                   std::function<std::string(const std::string& function)> node_of);
  ~RecursionForests();

  /// Before the rounds of a loop whose counter takes these values. True if calls in them will be run as one.
  Result<bool> EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of,
                         uint64_t rounds, VariableTable* frame);
  /// Behind the last round of any loop.
  void LeaveLoop(const Block& loop);

  /// The block that makes the calls of the innermost loop; nullptr where they are no forest.
  const Block* CallOf(const Block& loop) const;

  /// A root of an evaluation.
  struct Root {
    const RecursionEvaluation* evaluation = nullptr;
    size_t number = 0;
  };
  /// Evaluates the roots of a loop.
  using Evaluate = std::function<Result<std::optional<RecursionEvaluation>>(
      const Block& loop, const std::vector<int64_t>& roots)>;
  /// The node that a call is made for, among the roots of the loop around it. What else the call passes is
  /// the same in all rounds (compiler::FindRoots). nullopt where it is none of them, or one of them fails or
  /// is for the interpreter: each round comes to it by itself.
  Result<std::optional<Root>> Find(const Block& call, int64_t node, const Evaluate& evaluate);

  /// Evaluates the forest of the innermost loop, unless that was done.
  Result<Evaluated> EvaluateLoop(const Evaluate& evaluate);
  /// What rounds of another program's loop find, from now on; nullptr: nothing.
  void Adopt(Evaluated forest) { adopted_ = std::move(forest); }

 private:
  static Status EvaluateForest(const Evaluate& evaluate, Forest* forest);
  static std::optional<Root> FindIn(const Forest& forest, int64_t node);

  const SessionOptions& options_;
  GraphRunner& runner_;
  const std::function<std::string(const std::string& function)> node_of_;
  std::map<const Block*, std::optional<compiler::LoopRoots>> loops_;  // What was found at each.
  std::vector<std::shared_ptr<Forest>> forests_;                      // Of the loops that run.
  Evaluated adopted_;
};

}  // namespace heddle::engine

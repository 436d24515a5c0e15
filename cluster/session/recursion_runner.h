// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/session/recursion_kernels.h"
#include "cluster/session/recursion_lists.h"
#include "cluster/session/session.h"
#include "cluster/variables/variables.h"
#include "compiler/recursion/find_roots.h"

namespace heddle::cluster {

class BlockRunner;

/// Makes plans of calls of structurally recursive functions in place of the calls (docs/recursion.md): one
/// operator "recursive" that has the roots and the parameters. The calls of a loop are one such plan, if
/// their roots are known before it. Every rank takes part and has the results.
class RecursionRunner {
 public:
  /// All outlive it.
  RecursionRunner(const Program& program, const SessionOptions& options, BlockRunner& blocks);
  ~RecursionRunner();

  /// Whether a call of the function may be run here.
  bool Knows(const Function& function);
  /// Runs a call whose arguments are in `callee` and leaves the function's results there. False: nothing has
  /// happened, it is to be interpreted; the user was told why, once. Errors name nodes.
  Result<bool> Run(const Block& call, const Function& function, Frame* callee);
  /// Before the rounds of a loop whose counter takes these values. True if calls of a function in them will
  /// be run as one, when the first of them is made; such a loop runs in order.
  Result<bool> EnterLoop(const Block& loop, const std::function<int64_t(uint64_t round)>& value_of,
                         uint64_t rounds, Frame* frame);
  /// Behind the last round of any loop.
  void LeaveLoop(const Block& loop);

 private:
  struct Evaluation;  // of some roots
  struct Forest;      // the roots of a loop

  RecursionKernels& kernels() const;
  Result<bool> RunInForest(Forest* forest, const Function& function, Frame* callee);
  Result<std::optional<Evaluation>> Evaluate(const Block& call, const Function& function,
                                             const std::vector<int64_t>& roots, bool may_fail, Frame* callee);
  Result<std::optional<std::vector<ValueInfo>>> ResultsOf(const Function& function, int64_t root,
                                                          const std::string& sizes, Frame* callee);
  Graph GraphOf(const Block& call, const Function& function, const std::vector<ValueInfo>& infos,
                bool may_fail, const Frame& callee) const;
  Status TakeResults(const Function& function, const Evaluation& evaluation, int64_t row,
                     Frame* callee) const;

  const Program& program_;
  const SessionOptions& options_;
  BlockRunner& blocks_;
  RecursionLists lists_;
  const bool is_on_;
  std::map<const Block*, std::optional<compiler::LoopRoots>> loops_;  // what was found at each
  // By function and the sizes of the parameters: what results are; nullopt where the function is interpreted.
  std::map<std::pair<const Function*, std::string>, std::optional<std::vector<ValueInfo>>> results_;
  std::map<std::pair<const Block*, std::string>, std::optional<Graph>> graphs_;  // by call and sizes
  std::vector<std::unique_ptr<Forest>> forests_;                                 // of the loops that run
};

}  // namespace heddle::cluster

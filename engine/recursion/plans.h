// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/recently_used.h"
#include "engine/recursion/adjoints.h"
#include "engine/recursion/bodies.h"
#include "engine/recursion/lists.h"
#include "engine/recursion/saved_call.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

class GraphRunner;

/// A recursive function at some roots.
struct RecursionEvaluation {
  std::vector<int64_t> roots;
  int64_t roots_hash = 0;        ///< HashOfRoots, of a forward function.
  std::vector<ValueInfo> infos;  ///< Of the results at one root.
  Matrix rows;                   ///< As the operators of recursions make them.
  /// Of a forward function: its roots in groups (ops::RowsOfGroups), and what is saved of them.
  Matrix groups;
  std::shared_ptr<const SavedEvaluation> saved;
};

/// Adjoints that are given for roots of one evaluation of a forward function.
struct GivenAdjoints {
  struct OfRoot {
    int64_t group = 0, place = 0;   ///< In the group.
    std::vector<Value> of_results;  ///< By result of the function; empty for one that has no adjoint.
  };
  std::shared_ptr<const SavedEvaluation> saved;  ///< nullptr: this session has saved nothing of it.
  std::map<int64_t, Matrix> groups;              ///< Rows of ops::RowsOfGroups, by the number of the group.
  std::vector<OfRoot> roots;                     ///< In the order in which they are given.
};

/// Makes plans of structurally recursive functions at some roots (docs/recursion.md, section 2), of one
/// operator (ops/recursion/recursive_operator.h) that has the roots and the parameters. Every rank takes part
/// and has the results.
class RecursionPlans {
 public:
  /// All outlive it.
  RecursionPlans(const Program& program, const SessionOptions& options, GraphRunner& runner);

  /// The function at `roots`, its parameters in `callee`. `call`: the block that makes the calls. nullopt:
  /// nothing has happened, it is to be interpreted; the user was told why, once. may_fail: where it fails,
  /// too.
  Result<std::optional<RecursionEvaluation>> Evaluate(const Block& call, const Function& function,
                                                      const std::vector<int64_t>& roots, bool may_fail,
                                                      VariableTable* callee);
  /// Sets the function's results at root number `root`.
  Status TakeResults(const Function& function, const RecursionEvaluation& evaluation, size_t root,
                     VariableTable* callee) const;
  /// What these adjoints add to those of the parameters of a forward function that are wanted
  /// (RecursionBodies::WantedOf), in their order.
  Result<std::vector<Matrix>> SweepBack(const Block& call, const Function& forward,
                                        const GivenAdjoints& given, VariableTable* callee);

 private:
  const RecursionBodies& bodies() const;
  std::optional<std::string> SizesOf(const Function& function, const VariableTable& callee) const;
  Result<std::optional<std::vector<ValueInfo>>> ResultsOf(const Function& function, int64_t root,
                                                          const std::string& sizes, VariableTable* callee);
  const std::string& KeyOf(const Function& function) const;
  /// What tells the graph of an evaluation, or of a backward sweep, from others of the same call.
  struct GraphKey {
    const Block* call = nullptr;
    std::string function;  ///< Key in Program::functions: a call may have several candidates.
    bool is_backward = false, may_fail = false;
    size_t roots = 0, groups = 0;
    int64_t columns = 0;  ///< Of the result, or of the given adjoints.
    std::string sizes;    ///< SizesOf
    auto operator<=>(const GraphKey&) const = default;
    uint64_t Hash() const;
  };
  Node OperatorOf(const Block& call, const Function& function, std::string_view op,
                  const std::vector<std::string>& variables, const VariableTable& callee, Graph* graph) const;
  Graph ForwardGraph(const Block& call, const Function& function, const RecursionEvaluation& evaluation,
                     bool may_fail, const VariableTable& callee) const;
  Graph BackwardGraph(const Block& call, const Function& function, const VariableTable& callee) const;
  Result<std::shared_ptr<const SharedParameters>> ShareParameters(const Function& function,
                                                                  VariableTable* callee);
  void SetMatrix(const char* name, Matrix matrix, VariableTable* callee) const;
  const Graph& GraphOf(const GraphKey& key, const std::function<Graph()>& make);

  const Program& program_;
  const SessionOptions& options_;
  GraphRunner& runner_;
  RecursionLists lists_;
  // By function and the sizes of the parameters: what results are; nullopt where the function is interpreted.
  RecentlyUsedMap<std::pair<const Function*, std::string>, std::optional<std::vector<ValueInfo>>> results_;
  RecentlyUsedMap<GraphKey, Graph> graphs_;
};

}  // namespace heddle::engine

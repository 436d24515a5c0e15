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

#include "engine/recursion/adjoints.h"
#include "engine/recursion/bodies.h"
#include "engine/recursion/lists.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

class GraphRunner;

/// Parameters that every one of so many ranks has whole.
struct SharedParameters {
  int ranks = 1;
  VariableTable variables;
};

/// A recursive function at some roots.
struct RecursionEvaluation {
  std::vector<int64_t> roots;
  std::vector<ValueInfo> infos;  ///< Of the results at one root.
  Matrix rows;                   ///< As the operators of recursions make them.
  /// Of the "forward ..." of a derivative: its roots in groups (ops::RowsOfGroups), and what is kept of them
  /// until nobody has the place.
  Matrix groups;
  /// The parameters as the ranks of the session had them for it, where these are several.
  std::shared_ptr<const SharedParameters> parameters;
  std::shared_ptr<const RecursionAdjoints::Place> place;
};

/// Adjoints that are given for roots of one evaluation.
struct GivenAdjoints {
  struct OfRoot {
    int64_t group = 0, place = 0;  ///< In the group.
    std::vector<Value> of_results;
  };
  /// nullptr: nothing is kept here.
  std::shared_ptr<const RecursionAdjoints::Place> place;
  std::shared_ptr<const SharedParameters> parameters;
  std::map<int64_t, Matrix> groups;  ///< Rows of RowsOfGroups, by their numbers.
  std::vector<size_t> results;       ///< Of the function, those of which they are.
  std::vector<OfRoot> roots;         ///< In order.
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
  /// What this adds to the adjoints of the parameters of a "forward ..." that are wanted, in their order.
  Result<std::vector<Matrix>> SweepBack(const Block& call, const Function& forward,
                                        const GivenAdjoints& given, VariableTable* callee);

 private:
  const RecursionBodies& bodies() const;
  std::optional<std::string> SizesOf(const Function& function, const VariableTable& callee) const;
  Result<std::optional<std::vector<ValueInfo>>> ResultsOf(const Function& function, int64_t root,
                                                          const std::string& sizes, VariableTable* callee);
  const std::string& KeyOf(const Function& function) const;
  Node OperatorOf(const Block& call, const Function& function, std::string_view op,
                  const std::vector<const char*>& before, const std::vector<const char*>& behind,
                  const VariableTable& callee, Graph* graph) const;
  Graph ForwardGraph(const Block& call, const Function& function, const RecursionEvaluation& evaluation,
                     bool may_fail, const VariableTable& callee) const;
  Graph BackwardGraph(const Block& call, const Function& function, const GivenAdjoints& given,
                      const VariableTable& callee) const;
  Status ShareParameters(const Function& function, VariableTable* callee, RecursionEvaluation* evaluation);
  void SetMatrix(const char* name, Matrix matrix, VariableTable* callee) const;
  const Graph& Kept(const Block& call, const std::string& key, const std::function<Graph()>& make);

  const Program& program_;
  const SessionOptions& options_;
  GraphRunner& runner_;
  RecursionLists lists_;
  // By function and the sizes of the parameters: what results are; nullopt where the function is interpreted.
  std::map<std::pair<const Function*, std::string>, std::optional<std::vector<ValueInfo>>> results_;
  std::map<std::pair<const Block*, std::string>, Graph> graphs_;  // By call and sizes.
};

}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/optimize/infer.h"
#include "compiler/recursion/recognise.h"
#include "ops/recursion/body/recursive_body.h"

namespace heddle::compiler {

/// What the body of a class depends on beside the decisions of its nodes.
struct ClassContext {
  LiveIns parameters;               ///< Of the function, with the values of scalars where they are known.
  std::vector<ValueInfo> children;  ///< Results of one node; empty while no node has been computed.
  ElementType element_type = ElementType::kFloat64;
  std::set<std::string, std::less<>> disabled;  ///< Passes.
  std::string fusion = "cost";  ///< Of the operators of a body, as of a job (compiler/fuse/fuse.h).
  /// Whether products with a child's result may be computed with the child (MoveProductsToChildren): batches
  /// must then run by height, with one NodeResults.
  bool moves_products = false;
};

/// What a variable of a ClassGraph stands for that is no parameter of the function.
struct ClassInput {
  enum class Kind : uint8_t {
    kNumber,       ///< Number `index` of those that the structure program gives to the node's operators.
    kChildResult,  ///< Result `result` of the function at the node of call `index`.
  } kind = Kind::kNumber;
  int32_t index = 0, result = 0;
};

/// The operators of one node of a class: the blocks that the node runs, joined, each after the passes that
/// its entry in the interpreter would run.
struct ClassGraph {
  Graph graph;
  /// By the names of variables, which nothing else is read from; all other variables are parameters.
  std::map<std::string, ClassInput, std::less<>> inputs;
  std::vector<NodeId> results;  ///< Of the function, in order.

  /// nullptr for a parameter.
  const ClassInput* InputNamed(std::string_view name) const {
    const auto found = inputs.find(name);
    return found == inputs.end() ? nullptr : &found->second;
  }
};

/// Whether batches can have the value of a node: one dense matrix of known size, or a number.
bool IsPlain(const Node& node);
/// "line 7: 'S' is sparse".
std::string WhyNotPlain(const Node& node);

/// nullopt, with `why`, where the interpreter is to run: sizes that only a run tells, sparse matrices, what
/// fails (it says so in its own words).
std::optional<ClassGraph> JoinBlocks(const Recursion& recursion, const Function& function,
                                     const std::vector<bool>& path, const ClassContext& context,
                                     std::string* why);

/// The graph of one node as operators on all nodes of its class (ops/recursion/body/recursive_body.h).
/// nullopt, with `why`, as above.
std::optional<ops::RecursiveBody> BatchOperators(const ClassGraph& graph, const ClassContext& context,
                                                 std::string* why);

}  // namespace heddle::compiler

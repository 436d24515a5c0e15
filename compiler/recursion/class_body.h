// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/optimize/infer.h"
#include "compiler/recursion/recognise.h"
#include "ops/recursion/body/recursive_body.h"

namespace heddle::compiler {

/// What a body of a class depends on beside the way that its nodes go.
struct ClassContext {
  LiveIns parameters;               ///< Of the function, with known scalars.
  std::vector<ValueInfo> children;  ///< Results of one node, as far as calls are made.
  ElementType element_type = ElementType::kFloat64;
  std::set<std::string, std::less<>> disabled;  ///< Passes.
  std::string fusion = "cost";  ///< Of the operators of a body, as of a job (compiler/fuse/fuse.h).
  /// Products of a child's result are computed with the child (PushProductsDown): where batches run in the
  /// order of their heights with one NodeResults.
  bool pushes_down = false;
};

/// The operators of one node of a class: the blocks on its way, each through the passes as at its entry in
/// the interpreter, joined. Variables of the graph: parameters by their names, "%number0" for the numbers
/// given,
/// "%child0.1" for results of calls.
struct ClassGraph {
  Graph graph;
  std::vector<NodeId> results;  ///< Of the function, in order.
};

/// Whether batches take what a node of a graph makes: dense, of known size, one result, a number or a matrix.
bool IsPlain(const Node& node);
/// "line 7: 'S' is sparse".
std::string WhyNotPlain(const Node& node);

/// nullopt, with `why`, where the interpreter is to run: sizes that only a run tells, sparse matrices, what
/// fails (it says so in its own words).
std::optional<ClassGraph> JoinBlocks(const Recursion& recursion, const Function& function,
                                     const std::vector<bool>& path, const ClassContext& context,
                                     std::string* why);

/// The graph of one node as operators on all nodes of its class (ops/recursion/body/recursive_body.h). nullopt,
/// with `why`, as above.
std::optional<ops::RecursiveBody> BatchOperators(const ClassGraph& graph, const ClassContext& context,
                                                 std::string* why);

}  // namespace heddle::compiler

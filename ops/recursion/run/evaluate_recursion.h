// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/values/value.h"
#include "ops/base/kernel.h"
#include "ops/recursion/body/recursive_body.h"
#include "ops/recursion/run/tree_parts.h"
#include "ops/recursion/structure/linearize.h"

namespace heddle::ops {

class RecursionCache;  // ops/recursion/run/recursion_cache.h

/// Finds the body of a class when its first nodes are to be computed. `children`: what the function's results
/// are at one node; empty while no node has been computed. nullptr: there is no body, the interpreter must
/// run.
using FindBody = std::function<Result<std::shared_ptr<const RecursiveBody>>(
    const Linearized::Class& node_class, const std::vector<ValueInfo>& children)>;

/// The results of a function at all nodes.
struct NodeResults {
  std::vector<ValueInfo> infos;  ///< ResultsOf
  std::vector<Matrix> rows;      ///< By place: the cells of the node's result; a number is one.
  /// Products of the nodes' results with a parameter (BodyValue::with_child), rows by place.
  struct Product {
    size_t result = 0;
    std::string parameter;
    Matrix rows;
  };
  std::vector<Product> products;
  TreeParts parts;  ///< How they were computed.
};

/// About how many bytes all nodes take: results, products with them, and values of Stage::kPerClass. 0 where
/// a class has no body.
Result<int64_t> BytesOfNodes(const Linearized& structure, const FindBody& find_body);

/// Computes the results of all nodes, children first. `parameters` are the function's, dense. nullopt where a
/// class has no body, classes do not agree on what results look like, or an integer comes up that a double
/// cannot hold. Errors name nodes; those of operators have their place.
Result<std::optional<NodeResults>> EvaluateRecursion(const Linearized& structure, const FindBody& find_body,
                                                     const std::map<std::string, Value>& parameters,
                                                     const KernelSource& kernels, KernelContext& context,
                                                     RecursionCache& cache);

}  // namespace heddle::ops

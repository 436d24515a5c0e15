// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/recursion/run/evaluate_recursion.h"

namespace heddle::ops {

/// The derivative of a recursive function at the nodes of one class (docs/gradient.md): a forward body, which
/// also saves what the backward body reads, and that backward body. Plain data.
struct RecursiveAdjoint {
  /// A value of a node as a row.
  struct Row {
    int64_t cells = 1;
    ElementType type = ElementType::kFloat64;
  };
  /// Its results are those of the function, then the saved values.
  RecursiveBody forward;
  std::vector<Row> saved;

  /// Its results are `outputs`. It reads rows of the children and, as those of one call more, rows of the
  /// node itself (BodyValue::Source::kChild). `result` counts the node's outputs first, then the function's
  /// results, the saved values, and the adjoints of results.
  RecursiveBody backward;
  std::vector<Row> outputs;
  /// Adjoints of the children's results.
  struct OfChild {
    int32_t call = 0, result = 0, output = 0;
  };
  std::vector<OfChild> children;
  /// What a node adds to the adjoint of a parameter, or to a rectangle of its cells.
  struct Term {
    enum class Kind : uint8_t {
      kProduct,  ///< t(left) %*% right, each a row of a node: one product of all nodes' rows
      kRow,      ///< right, a row or a number: column sums
      kCells,    ///< right, a matrix: added up node by node
      kLookup,   ///< right, added to the row that number `number` says
    };
    Kind kind = Kind::kRow;
    std::string parameter;
    int32_t left = 0, right = 0;  ///< Outputs.
    int32_t number = 0;
    int64_t row = 0, column = 0;  ///< First cell of the rectangle.
    Shape shape;                  ///< Of the rectangle.
  };
  std::vector<Term> terms;
};

/// Finds the derivative of a class when its first nodes are to be computed. `children`: as of FindBody.
using FindAdjoint = std::function<Result<std::shared_ptr<const RecursiveAdjoint>>(
    const Linearized::Class& node_class, const std::vector<ValueInfo>& children)>;

/// Results of all nodes, and what the backward sweep reads of them.
struct SavedNodes {
  NodeResults results;
  /// By class: saved values, rows by place. Classes share matrices, as their places differ.
  std::vector<std::vector<Matrix>> saved;
  std::vector<std::shared_ptr<const RecursiveAdjoint>> classes;
};

/// As EvaluateRecursion, with the forward bodies.
Result<std::optional<SavedNodes>> EvaluateForward(const Linearized& structure,
                                                  const FindAdjoint& find_adjoint,
                                                  const std::map<std::string, Value>& parameters,
                                                  const KernelSource& kernels, KernelContext& context,
                                                  RecursionCache& cache);

/// Adjoints of results at a place.
struct AdjointAt {
  int32_t place = 0;
  std::vector<Value> of_results;  ///< Matrices and numbers; empty: zeros.
};

class AdjointSums;  // ops/recursion/adjoint/adjoint_sums.h

/// What the nodes add to the adjoints of parameters. Batches run in the reverse order, so a node's adjoints
/// are complete when its batch begins. Order of sums: docs/numerics.md. `wanted`, which outlives the sums:
/// the parameters, and what they are.
Result<AdjointSums> SweepBackward(const Linearized& structure, const SavedNodes& nodes,
                                  const std::vector<AdjointAt>& given,
                                  const std::map<std::string, ValueInfo>& wanted,
                                  const std::map<std::string, Value>& parameters, const KernelSource& kernels,
                                  KernelContext& context, RecursionCache& cache);

}  // namespace heddle::ops

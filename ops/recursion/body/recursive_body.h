// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/programs/graph.h"

namespace heddle::ops {

/// A value that a recursive function has at a node: a parameter, a result of a call, or what an operator
/// computes of earlier values. A body (below) computes it for many nodes together.
struct BodyValue {
  static constexpr int32_t kNone = -1;

  /// How often it is computed.
  enum class Stage : uint8_t {
    kPerEvaluation,  ///< Once: it is the same for all nodes.
    kPerClass,       ///< For all nodes of the class together, before the first batch: it depends on no call.
    kPerBatch,       ///< For the nodes of a batch together, when the results of their children are there.
  };
  /// How the values of many nodes lie in memory.
  enum class Layout : uint8_t {
    kShared,  ///< One value for all nodes, as it is.
    kColumn,  ///< A number of each node: w x 1.
    kRows,    ///< A matrix of each node, its cells row-major in a row: w x cells.
  };
  enum class Source : uint8_t {
    kParameter,  ///< `name` of the function.
    kLiteral,    ///< The value of `node`.
    kNumber,     ///< Number `index` that the structure program gives (Linearized::Class).
    kLookup,     ///< The row of inputs[0], a shared matrix, that number `index` says.
    kChild,      ///< Result `result` of call `index`.
    kOperator,   ///< `node`, applied to `inputs`.
    kConvert,    ///< The cells of inputs[0] as cells of the type of `node`: numbers are doubles in any
                 ///< precision.
  };
  struct Operand {
    int32_t id = kNone;  ///< An earlier value; kNone: left out.
    /// It is written out to as many cells as the result has: the operator would not repeat it by itself.
    bool spread = false;
  };
  Source source = Source::kOperator;
  Stage stage = Stage::kPerEvaluation;
  Layout layout = Layout::kShared;
  /// The operator runs on one node after the other: nobody has said that its rows do not see each other.
  bool node_by_node = false;
  Node node;  ///< Its info is that of one node.
  std::vector<Operand> inputs;
  int32_t index = 0, result = 0;
  /// Of products per batch with one matrix on the right that do not depend on each other: the first of them.
  /// Their left rows stand below each other, so that all are one product. kNone: a product of its own.
  int32_t stacked = kNone;
  /// The fused operator that computes it, in one loop over the cells of a row (body_region.h); kNone: it is
  /// computed by itself.
  int32_t fused_operator = kNone;
  /// Of a product of a child's result with a parameter: it is computed for each node when the node's own
  /// results are there, and not again for each of its parents.
  bool with_child = false;
  std::string name;
};

/// What a recursive function computes at the nodes of one class, for all of them together. What a node has as
/// a row 1 x c is w x c for w nodes, what it has as a number is w x 1. The rows of an operator do not see
/// each other (docs/numerics.md, section 3), so the bits are those of one call after the other. Plain data.
struct RecursiveBody {
  std::vector<BodyValue> values;  ///< Operands before what reads them.
  std::vector<int32_t> results;   ///< Of the function, in order: values.
  int32_t fused_operators = 0;    ///< How many there are.
};

/// Cells of a node's value, of which a number has one.
inline int64_t CellsOf(const ValueInfo& info) {
  return info.IsScalar() ? 1 : info.shape.rows * info.shape.columns;
}
inline int64_t CellsOf(const BodyValue& value) { return CellsOf(value.node.info); }
/// Bytes of one of them: numbers are doubles in any precision.
inline int64_t CellBytes(const BodyValue& value) {
  return value.node.info.IsScalar() ? 8 : BytesOf(value.node.info.element_type);
}

/// What the function's results are at one node of the class: matrices of known sizes, and numbers, which are
/// doubles here (a caller makes of them what the function declares); nullopt where they are something else.
std::optional<std::vector<ValueInfo>> ResultsOf(const RecursiveBody& body);

}  // namespace heddle::ops

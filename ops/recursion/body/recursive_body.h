// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/programs/graph.h"

namespace heddle::ops {

/// What a recursive function computes at the nodes of one class, as operators on all of them at once. A value
/// that a call of the function has once, a batch of w nodes has in w rows: a row 1 x c becomes w x c, a
/// number w x 1. Each operator's rows do not see each other (docs/numerics.md, section 3), so the bits are
/// those of one call after the other. An operator of which that is not true, or that nobody has said it of,
/// runs node by node on the rows. Plain data.
struct RecursiveBody {
  /// When a value is computed.
  enum class Stage : uint8_t {
    kOnce,   ///< Once an evaluation: it is the same for all nodes.
    kAhead,  ///< For all nodes of the class at once, before the levels: no call's result is in it.
    kLevel,  ///< Batch by batch.
  };
  enum class Form : uint8_t {
    kSame,    ///< One value for all nodes, as it is.
    kColumn,  ///< A number of each node: w x 1.
    kRows,    ///< A matrix of each node, in a row of its cells, row-major: w x cells.
  };
  enum class Source : uint8_t {
    kParameter,  ///< `name` of the function
    kLiteral,    ///< The value of `node`
    kNumber,     ///< Number `index` given to the operators (Linearized::Class)
    kLookup,     ///< The row of inputs[0], a matrix that is the same for all, that number `index` says
    kChild,      ///< Result `result` of call `index`
    kOperator,   ///< `node` of `inputs`
    kConvert,    ///< The cells of inputs[0] as those of `node`: numbers are doubles in any precision
  };
  struct Operand {
    int32_t value = -1;   ///< kNone: left out.
    bool spread = false;  ///< As many cells as the result has: an operand that the operator would not repeat.
  };
  static constexpr int32_t kNone = -1;
  struct Item {
    Source source = Source::kOperator;
    Stage stage = Stage::kOnce;
    Form form = Form::kSame;
    bool node_by_node = false;
    Node node;  ///< Its info is that of one node.
    std::vector<Operand> inputs;
    int32_t index = 0, result = 0;
    /// Of products of a level with one matrix on the right that are independent of each other: the first of
    /// them, whose rows stand above those of the others in one product; kNone: alone.
    int32_t joined = -1;
    /// Of cell-wise operators: the fused operator that computes it, one loop over the cells of a row for all
    /// of its items (ops/recursion/body/item_region.h); kNone: it is computed by itself.
    int32_t group = -1;
    /// Of a product of a child's result with a parameter: it is computed once for each node, behind the
    /// node's own results, and not for each parent.
    bool pushed = false;
    std::string name;
  };
  std::vector<Item> items;       ///< Inputs come first.
  std::vector<int32_t> results;  ///< Of the function, in order: items.
  int32_t groups = 0;            ///< Fused operators.
};

/// Cells of a node's value, of which a number has one.
inline int64_t CellsOf(const ValueInfo& info) {
  return info.IsScalar() ? 1 : info.shape.rows * info.shape.columns;
}
inline int64_t CellsOf(const RecursiveBody::Item& item) { return CellsOf(item.node.info); }
/// Bytes of one of them: numbers are doubles in any precision.
inline int64_t CellBytes(const RecursiveBody::Item& item) {
  return item.node.info.IsScalar() ? 8 : BytesOf(item.node.info.element_type);
}

/// What the function's results are at one node of the class: matrices of known sizes, and numbers, which are
/// doubles here (a caller makes of them what the function declares); nullopt where they are something else.
std::optional<std::vector<ValueInfo>> ResultsOf(const RecursiveBody& body);

}  // namespace heddle::ops

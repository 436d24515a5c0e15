// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/source_position.h"
#include "core/status.h"
#include "core/values/data_type.h"
#include "core/values/scalar.h"
#include "core/values/schema.h"
#include "core/values/shape.h"

namespace heddle {

struct FusedOperator;   // core/programs/fused_operator.h
struct PhasedOperator;  // core/programs/phased_operator.h

/// Index of a node in Graph::nodes.
using NodeId = int32_t;
constexpr NodeId kNoNode = -1;

/// Type, size and format of a value. Scalars have shape 0 x 0.
struct ValueInfo {
  DataType data_type = DataType::kUnknown;
  ValueType value_type = ValueType::kUnknown;
  Shape shape;
  Format format = Format::kDense;
  ElementType element_type = ElementType::kFloat64;  ///< Of a matrix; the same for all matrices of a program.
  std::shared_ptr<const Schema> schema;  ///< Of a frame, as many columns as the shape; nullptr: not known.

  bool IsScalar() const { return data_type == DataType::kScalar; }
  bool IsMatrix() const { return data_type == DataType::kMatrix; }
  bool IsTuple() const { return data_type == DataType::kTuple; }
  bool IsFrame() const { return data_type == DataType::kFrame; }
  /// True of what has rows and columns of cells.
  bool IsTabular() const;
  /// True if the type, the size and the types of columns, whichever of them such a value has, are known.
  /// Formats and types of scalars may not be.
  bool IsSized() const;
  /// The same without rows, columns and schema.
  ValueInfo WithoutSize() const;
  /// Schemas are compared by what is in them.
  bool operator==(const ValueInfo& other) const;
  static ValueInfo OfScalar(ValueType type) {
    return {.data_type = DataType::kScalar, .value_type = type, .shape = {0, 0}};
  }
  static ValueInfo OfMatrix(Shape shape, Format format = Format::kDense) {
    return {
        .data_type = DataType::kMatrix, .value_type = ValueType::kDouble, .shape = shape, .format = format};
  }
  static ValueInfo OfTuple() { return {.data_type = DataType::kTuple, .shape = {0, 0}}; }
  /// What a declaration in the script tells: no size.
  static ValueInfo OfDeclared(DataType data_type, ValueType value_type);
  static ValueInfo OfFrame(int64_t rows, std::shared_ptr<const Schema> schema) {
    const int64_t columns = schema == nullptr ? kUnknown : schema->columns();
    return {.data_type = DataType::kFrame, .shape = {rows, columns}, .schema = std::move(schema)};
  }
};

/// Bytes of the cells of a matrix or frame of that size, as far as the info tells: of CSR the row offsets
/// alone, of a frame FixedBytes of its schema. 0 where that is not known, INT64_MAX when there are more.
int64_t KnownBytes(const ValueInfo& info);

/// One operator of a block. Operators that every folder must know by name:
///   "literal"   attribute value=<scalar>; no inputs
///   "variable"  attribute name=<string>; the block's live-in of that name; no inputs
///   "assign"    attribute name=<string>; one input: the block's live-out of that name
///   "result"    attribute index=<integer from 0>; one input: that result of a node with several
/// All others are described in ops/catalog.h. Named arguments of an operator whose value is a graph value
/// (rows= of rand) are inputs in the fixed order that the operator's file documents; a missing optional one
/// is kNoNode. Attributes are what is fixed by the text of the script (pdf="normal", the format of a read).
///
/// A node with several results (eigen) has a tuple for its info, and `results` tells what each of them is.
/// Only nodes "result" read it; everything else reads those, which have infos like any other node.
struct Node {
  std::string op;
  std::vector<NodeId>
      inputs;  ///< Data; ids smaller than the node's own, or kNoNode for an optional one left out.
  std::vector<NodeId> after;  ///< Order only: these act before this one (prints, writes, whatever may fail).
  std::vector<std::pair<std::string, Scalar>> attributes;  ///< Sorted by name.
  ValueInfo info;
  std::vector<ValueInfo> results;  ///< Of a tuple, in order; else empty.
  SourcePosition position;
  /// The operators that a node "fused" or "fusedSeveral" computes in one pass; nullptr in every other node.
  /// Copies of the node share them, so that what is derived from them is found by their address. The text
  /// form of the graph has them as the attribute "operator".
  std::shared_ptr<const FusedOperator> fused = nullptr;
  /// The operators that a node "phased" runs; nullptr in every other node. Shared and written as `fused`.
  std::shared_ptr<const PhasedOperator> phased = nullptr;

  const Scalar* FindAttribute(std::string_view name) const;
  void SetAttribute(std::string_view name, Scalar value);
  /// The string attribute of that name; empty when absent.
  const std::string& Text(std::string_view name) const;
  bool Is(std::string_view name) const { return op == name; }
  /// Of a node "result": which one it is.
  size_t ResultIndex() const { return static_cast<size_t>(FindAttribute("index")->AsInteger()); }
};

/// What a node leaves: the results of a tuple, else the one that its info tells.
inline std::span<const ValueInfo> ResultsOf(const Node& node) {
  return node.info.IsTuple() ? std::span(node.results) : std::span(&node.info, 1);
}

/// A straight-line block as a DAG, in an order in which inputs come first (also the order of the script).
struct Graph {
  std::vector<Node> nodes;

  NodeId Add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<NodeId>(nodes.size()) - 1;
  }
  Node& operator[](NodeId id) { return nodes[static_cast<size_t>(id)]; }
  const Node& operator[](NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }

  /// Text form, one node a line:  %3 = sum(%1, %2) after(%0) name="x" : scalar double 0x0 dense @ "file":12:9
  /// The results of a tuple stand behind its info:  results(matrix double 3x1 dense, matrix double 3x3 dense)
  std::string ToText() const;
  static Result<Graph> Parse(std::string_view text);
};

/// A node "result", with the info of the tuple's result `index` where that is known.
Node ResultOf(const Graph& graph, NodeId tuple, size_t index);

/// Checks ids, order, attributes of the four special operators, and that only "result" reads a tuple. An
/// error here is our bug (kInternal).
Status Verify(const Graph& graph);

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"
#include "ops/base/operator.h"

namespace heddle::compiler::fusion {

constexpr int kMaxArity = 3;  ///< More inputs of a node are never fused.
constexpr double kGuessedSparsity =
    0.1;  ///< Of a CSR matrix of which nothing else is known; favours sparse plans.

/// What the optimiser looks at, for one node of the graph.
struct DagNode {
  const ops::Operator* op = nullptr;  ///< nullptr: cannot be part of a fused operator.
  std::vector<NodeId> inputs;         ///< Of the graph node; kNoNode where left out.
  int arity = 0;                      ///< Inputs 0..arity-1 may be fused.
  std::vector<NodeId> consumers;      ///< Distinct, ascending.
  bool matrix = false;
  bool sparse = false;  ///< CSR.
  int64_t rows = 0, columns = 0;
  double cells = 1;     ///< 1 for a scalar.
  double sparsity = 1;  ///< Estimated share of cells that are present; 1 when dense.
  NodeId pattern =
      kNoNode;  ///< Of a CSR value: the node that its present cells follow; itself when they are its own.
  /// Of a dense value that is equal at all cells of a row where a CSR value has no entry: the share of the
  /// others (ops/fused/lower/row_background.h). 1 of any other value.
  double entry_share = 1;
  double bytes = 8;         ///< Memory of the value.
  int64_t range_begin = 0;  ///< Of kColumnRange: its first column, from 1.
  std::vector<uint8_t>
      by_rows;          ///< By input: read row by row (1) or whole (0), as placement asks (ops::InputUseOf).
  bool split = false;   ///< Every rank has its own rows of it, when nothing is fused.
  bool spread = false;  ///< Every rank computes its own rows of it, or of what it reduces.
  NodeId copied_for =
      kNoNode;  ///< The first that all ranks compute and that reads it whole: copies are sent once.
};

/// A graph with consumers, sizes and estimated sparsity. Node i of the dag is node i of the graph.
struct Dag {
  const Graph* graph = nullptr;
  std::vector<DagNode> nodes;

  const DagNode& operator[](NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }
};

/// Share of cells of a CSR live-in that are present; negative when unknown.
using SparsityOf = std::function<double(std::string_view variable)>;

/// Share of cells that a "rand" of literal sparsity fills; negative for any other node.
double DrawnSparsity(const Graph& graph, const Node& node);

/// Needs: inferred infos. Linear in the graph. `sparsity_of` may be empty. The graph must outlive the result.
Dag MakeDag(const Graph& graph, const SparsityOf& sparsity_of);

/// Whether every rank has its own rows of a live-in.
using IsSplitVariable = std::function<bool(std::string_view variable)>;

/// Foresees placement on several ranks: DagNode::split, spread and copied_for. Linear in the graph; nothing
/// to do for one rank. `is_split` may be empty: no live-in is.
void MarkSplit(int ranks, int64_t min_distributed_bytes, const IsSplitVariable& is_split, Dag* dag);

/// Column ranges with known bounds cannot fail: they leave the order of effects (what was before and after
/// them stays so).
Graph WithoutHarmlessOrder(Graph graph);

/// True if `input` lies row by row beside the rows of the cell-wise node `node` (not a row vector that is
/// repeated).
bool IsRowAligned(const DagNode& node, const DagNode& input);

/// Height of the rows that a fused operator with this node walks.
int64_t HeightOf(const Dag& dag, NodeId id);

}  // namespace heddle::compiler::fusion

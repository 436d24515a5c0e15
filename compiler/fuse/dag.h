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

/// One node of the graph as the optimiser sees it.
struct DagNode {
  const ops::Operator* op = nullptr;  ///< nullptr: cannot be part of a fused operator.
  std::vector<NodeId> inputs;     ///< Those of the graph node; kNoNode for an argument that was not given.
  int arity = 0;                  ///< Inputs 0..arity-1 may be fused.
  std::vector<NodeId> consumers;  ///< Distinct, ascending.
  bool matrix = false;
  bool sparse = false;  ///< CSR.
  int64_t rows = 0, columns = 0;
  double cells = 1;     ///< 1 for a scalar.
  double sparsity = 1;  ///< Estimated share of cells that are present; 1 when dense.
  /// The node whose entries a CSR value has, as abs(S) has those of S; the node itself when its entries are
  /// unlike those of any operand.
  NodeId pattern = kNoNode;
  /// Share of the cells of a dense value that must be computed one by one. Less than 1 for a value such as
  /// exp(S - rowMaxs(S)) of a CSR matrix S: in a row all cells without an entry of S are equal
  /// (ops/fused/lower/row_background.h).
  double entry_share = 1;
  double bytes = 8;         ///< Memory of the value.
  int64_t range_begin = 0;  ///< Of kColumnRange: its first column, from 1.
  std::vector<uint8_t>
      by_rows;          ///< By input: read row by row (1) or whole (0), as placement asks (ops::InputUseOf).
  bool split = false;   ///< Every rank holds its own rows of the value, when nothing is fused.
  bool spread = false;  ///< Every rank computes its own rows of the value, or of the operand that it reduces.
  /// The first node that all ranks compute and that reads this value whole. It pays for the copies that other
  /// ranks get; later readers find them there.
  NodeId copied_for = kNoNode;
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

/// Takes products of dense matrices with more than 8 columns out of what may be fused: devices compute them
/// by kernels of their own (ops/device/operators), which take a fraction of what tiles of rows take for them.
void ExcludeWideProducts(Dag* dag);

/// Whether every rank has its own rows of a live-in.
using IsSplitVariable = std::function<bool(std::string_view variable)>;

/// Sets DagNode::split, spread and copied_for as placement on several ranks will decide them. Linear in the
/// graph; nothing to do for one rank. `is_split` may be empty: then no live-in is split.
void MarkSplit(int ranks, int64_t min_distributed_bytes, const IsSplitVariable& is_split, Dag* dag);

/// Column ranges with known bounds cannot fail, so they need no place in the order of effects: their edges
/// `after` are removed, and nodes that came after them come after what they came after.
Graph WithoutHarmlessOrder(Graph graph);

/// True if `input` lies row by row beside the rows of the cell-wise node `node` (not a row vector that is
/// repeated).
bool IsRowAligned(const DagNode& node, const DagNode& input);

/// Height of the rows that a fused operator with this node walks.
int64_t HeightOf(const Dag& dag, NodeId id);

}  // namespace heddle::compiler::fusion

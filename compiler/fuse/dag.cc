// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/dag.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/programs/input_infos.h"
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/base/split.h"
#include "ops/base/stages.h"
#include "ops/base/whole_number.h"
#include "ops/product/matmul.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::compiler::fusion {
namespace {

// The first column of X[, a:b] when both bounds are known and within X, else 0. The last column follows from
// the shape.
int64_t RangeBegin(const Graph& graph, const Node& node) {
  if (ops::RowUseOf(node) != ops::RowUse::kColumnRange || node.inputs.size() != 5) return 0;
  const auto given = [&](size_t i) { return node.inputs[i] != kNoNode; };
  if (given(1) || given(2) || !given(3) || !given(4)) return 0;
  const Node& lower = graph[node.inputs[3]];
  if (!lower.Is("literal")) return 0;
  const Scalar* value = lower.FindAttribute("value");
  if (value == nullptr) return 0;
  const std::optional<int64_t> begin = ops::WholeNumber(*value);
  const int64_t width = node.info.shape.columns, columns = graph[node.inputs[0]].info.shape.columns;
  return begin && *begin >= 1 && width >= 1 && columns >= width && *begin <= columns - width + 1 ? *begin : 0;
}

bool IsKnownMatrix(const ValueInfo& info) {
  return info.IsMatrix() && info.value_type == ValueType::kDouble && info.shape.IsKnown();
}

// All operands are numbers or matrices of known size.
bool HasPlainInputs(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
    if (input == kNoNode) return true;
    const ValueInfo& info = graph[input].info;
    return info.IsScalar() ? info.value_type != ValueType::kString : IsKnownMatrix(info);
  });
}

// Whether a matrix has several rows, or one row of several column chunks. One short row is not worth the time
// that a fused operator takes to compile.
bool HasTiles(const Shape& shape) {
  return shape.rows > 1 || (shape.rows == 1 && shape.columns > kColumnChunk);
}

bool HasCells(const ValueInfo& info) {
  return !info.IsMatrix() || (info.shape.rows != 0 && info.shape.columns != 0);
}

const ops::Operator* CandidateOperator(const Graph& graph, const Node& node, const std::vector<bool>& ordered,
                                       NodeId id) {
  const ops::Operator* op = ops::FindOperator(node.op);
  if (op == nullptr || op->fusion.use == ops::RowUse::kNone || node.inputs.empty() ||
      ordered[static_cast<size_t>(id)] || !HasPlainInputs(graph, node))
    return nullptr;
  if (op->fusion.use != ops::RowUse::kFullAggregate && !IsKnownMatrix(node.info)) return nullptr;
  // An empty matrix has no cells to keep out of memory.
  if (!HasCells(node.info) || std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
        return input != kNoNode && !HasCells(graph[input].info);
      }))
    return nullptr;
  if (op->fusion.use == ops::RowUse::kColumnRange && RangeBegin(graph, node) == 0) return nullptr;
  if (const int i = op->fusion.literal_input;
      i >= 0 && !graph[node.inputs[static_cast<size_t>(i)]].Is("literal"))
    return nullptr;
  // Kernels of CSR matrices move entries; a tile would hold the cells between them as well.
  if ((op->fusion.use == ops::RowUse::kColumnRange || op->fusion.use == ops::RowUse::kCbind) &&
      node.info.format == Format::kSparse)
    return nullptr;
  if (op->fusion.use == ops::RowUse::kCells &&
      std::any_of(node.inputs.begin(), node.inputs.end() - 1, [](NodeId input) { return input == kNoNode; }))
    return nullptr;
  if (op->fusion.use == ops::RowUse::kCells) return HasTiles(node.info.shape) ? op : nullptr;
  if (op->fusion.use == ops::RowUse::kCbind &&
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
        return !graph[input].info.IsMatrix() || graph[input].info.shape.rows != node.info.shape.rows;
      }))
    return nullptr;
  // The operand whose rows are walked has at least two, or an aggregate goes over it cell by cell.
  const ValueInfo& walked = graph[node.inputs[0]].info;
  const bool aggregates = op->fusion.use == ops::RowUse::kFullAggregate ||
                          op->fusion.use == ops::RowUse::kRowAggregate ||
                          op->fusion.use == ops::RowUse::kColumnAggregate;
  return walked.IsMatrix() && (aggregates ? HasTiles(walked.shape) : walked.shape.rows > 1) ? op : nullptr;
}

// Estimates the sparsity of a CSR result and finds its pattern from those of its operands. Two operands of
// different patterns count as independent: an entry of one says nothing about the other.
void PropagateSparsity(const Dag& dag, NodeId id, const Node& node, DagNode* dag_node) {
  double product = 1, absent = 1, first = kGuessedSparsity;
  dag_node->pattern = kNoNode;
  int patterns = 0;
  for (NodeId input : node.inputs) {
    if (input == kNoNode || !dag[input].sparse) continue;
    if (patterns > 0 && dag[input].pattern == dag_node->pattern) continue;
    if (patterns++ == 0) {
      first = dag[input].sparsity;
      dag_node->pattern = dag[input].pattern;
    }
    product *= dag[input].sparsity;
    absent *= 1 - dag[input].sparsity;
  }
  const std::optional<ops::BinaryCode> code = ops::FindBinaryCode(node.op);
  dag_node->sparsity = patterns < 2                                ? first
                       : code && ops::SkipsAbsentCells(*code)      ? product
                       : code && *code == ops::BinaryCode::kDivide ? first
                                                                   : 1 - absent;
  const bool is_product = ops::RowUseOf(node) == ops::RowUse::kProduct;
  if (is_product)
    dag_node->sparsity = std::min(1.0, product * static_cast<double>(dag[node.inputs[0]].columns));
  const bool cell_wise =
      dag_node->matrix && dag_node->pattern != kNoNode && dag[dag_node->pattern].cells == dag_node->cells;
  if (patterns != 1 || !cell_wise || is_product) dag_node->pattern = id;
}

// DagNode::entry_share: a cell-wise function of a CSR value, of columns and of scalars is f(0, ...) at every
// cell of a row without an entry.
double EntryShareOf(const Dag& dag, const DagNode& dag_node) {
  double share = 1;
  if (dag_node.op == nullptr || dag_node.op->fusion.use != ops::RowUse::kCells || dag_node.sparse ||
      dag_node.columns < 2)
    return 1;
  for (const NodeId input : dag_node.inputs) {
    if (input == kNoNode || !dag[input].matrix) continue;
    const DagNode& operand = dag[input];
    if (operand.rows != dag_node.rows || (operand.columns != dag_node.columns && operand.columns != 1))
      return 1;
    if (operand.columns == 1) {
      if (operand.sparse) return 1;
      continue;
    }
    const double own = operand.sparse ? operand.sparsity : operand.entry_share;
    if (own >= 1 || (share < 1 && own != share)) return 1;
    share = own;
  }
  return share;
}

}  // namespace

double DrawnSparsity(const Graph& graph, const Node& node) {
  constexpr size_t kSparsity = 4;  // Among the inputs of rand (ops/generate/generate.cc).
  if (ops::RoleOf(node) != ops::Role::kRandom || node.inputs.size() <= kSparsity ||
      node.inputs[kSparsity] == kNoNode)
    return -1;
  const Node& sparsity = graph[node.inputs[kSparsity]];
  const Scalar* value = sparsity.Is("literal") ? sparsity.FindAttribute("value") : nullptr;
  return value != nullptr && !value->IsString() ? value->AsDouble() : -1;
}

Graph WithoutHarmlessOrder(Graph graph) {
  std::vector<std::vector<NodeId>> instead(graph.nodes.size());
  std::vector<bool> harmless(graph.nodes.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node& node = graph[id];
    std::vector<NodeId> after;
    const auto add = [&after](NodeId earlier) {
      if (std::find(after.begin(), after.end(), earlier) == after.end()) after.push_back(earlier);
    };
    for (NodeId earlier : node.after) {
      if (!harmless[static_cast<size_t>(earlier)]) add(earlier);
      for (NodeId other : instead[static_cast<size_t>(earlier)]) add(other);
    }
    harmless[static_cast<size_t>(id)] = RangeBegin(graph, node) != 0;
    if (harmless[static_cast<size_t>(id)])
      instead[static_cast<size_t>(id)] = std::move(after);
    else
      node.after = std::move(after);
    if (harmless[static_cast<size_t>(id)]) node.after.clear();
  }
  return graph;
}

bool IsRowAligned(const DagNode& node, const DagNode& input) {
  return input.matrix && input.rows == node.rows && (input.columns == node.columns || input.columns == 1);
}

int64_t HeightOf(const Dag& dag, NodeId id) {
  const DagNode& node = dag[id];
  return node.op != nullptr && node.op->fusion.use != ops::RowUse::kCells ? dag[node.inputs[0]].rows
                                                                          : node.rows;
}

Dag MakeDag(const Graph& graph, const SparsityOf& sparsity_of) {
  Dag dag;
  dag.graph = &graph;
  dag.nodes.resize(graph.nodes.size());
  std::vector<bool> ordered(graph.nodes.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!graph[id].after.empty()) ordered[static_cast<size_t>(id)] = true;
    for (NodeId earlier : graph[id].after) ordered[static_cast<size_t>(earlier)] = true;
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    DagNode& dag_node = dag.nodes[static_cast<size_t>(id)];
    dag_node.inputs = node.inputs;
    for (NodeId input : node.inputs) {
      if (input == kNoNode) continue;
      std::vector<NodeId>& consumers = dag.nodes[static_cast<size_t>(input)].consumers;
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
    dag_node.matrix = IsKnownMatrix(node.info);
    dag_node.range_begin = RangeBegin(graph, node);
    const std::vector<ValueInfo> infos = InputInfos(graph, node);
    const bool is_whole = ops::RowRuleOf(node, infos) == ops::RowRule::kWhole;
    for (size_t i = 0; i < infos.size(); ++i)
      dag_node.by_rows.push_back(node.inputs[i] != kNoNode && !is_whole &&
                                 ops::InputUseOf(node, infos, static_cast<int>(i)) == ops::InputUse::kRows);
    if (dag_node.matrix) {
      dag_node.rows = node.info.shape.rows;
      dag_node.columns = node.info.shape.columns;
      dag_node.cells = static_cast<double>(std::max<int64_t>(dag_node.rows, 1)) *
                       static_cast<double>(std::max<int64_t>(dag_node.columns, 1));
      dag_node.sparse = node.info.format == Format::kSparse;
      if (dag_node.sparse) {
        PropagateSparsity(dag, id, node, &dag_node);
        const double reported =
            node.Is("variable") && sparsity_of ? sparsity_of(node.Text("name")) : DrawnSparsity(graph, node);
        if (reported >= 0) dag_node.sparsity = std::min(reported, 1.0);
      }
      const double cell_bytes = static_cast<double>(BytesOf(node.info.element_type));
      dag_node.bytes = dag_node.sparse ? (cell_bytes + 4) * dag_node.sparsity * dag_node.cells +
                                             8 * static_cast<double>(dag_node.rows + 1)
                                       : cell_bytes * dag_node.cells;
    }
    dag_node.op = CandidateOperator(graph, node, ordered, id);
    dag_node.entry_share = EntryShareOf(dag, dag_node);
    if (dag_node.op != nullptr)
      dag_node.arity = dag_node.op->fusion.use == ops::RowUse::kColumnRange
                           ? 1
                           : std::min<int>(kMaxArity, static_cast<int>(node.inputs.size()));
  }
  return dag;
}

void ExcludeWideProducts(Dag* dag) {
  for (DagNode& node : dag->nodes) {
    if (node.op == nullptr || (node.op->fusion.use != ops::RowUse::kProduct &&
                               node.op->fusion.use != ops::RowUse::kTransposedProduct))
      continue;
    const DagNode &left = (*dag)[node.inputs[0]], &right = (*dag)[node.inputs[1]];
    if (!left.sparse && !right.sparse && !ops::IsNarrow(right.columns)) node.op = nullptr;
  }
}

namespace {

// Whether each rank has its own rows of the result of an operator that all share.
bool LeavesRows(const Node& node, std::span<const ValueInfo> inputs, const ops::Operator& op,
                ops::Sharing sharing) {
  if (sharing == ops::Sharing::kMovedRows) return true;
  if (sharing == ops::Sharing::kStages && op.row_rule != nullptr &&
      ops::RowRuleOf(node, inputs) != ops::RowRule::kWhole)
    return false;
  if (sharing == ops::Sharing::kStages) {
    const auto forms = ops::StagedFormsOf(op, node, inputs);
    return std::all_of(forms.begin(), forms.end(),
                       [](const auto& form) { return form.second->result != ops::StagedResult::kEach; });
  }
  const ops::RowRule rule = ops::RowRuleOf(node, inputs);
  return rule != ops::RowRule::kReduce && rule != ops::RowRule::kMixed;
}

}  // namespace

void MarkSplit(int ranks, int64_t min_distributed_bytes, const IsSplitVariable& is_split, Dag* dag) {
  if (ranks < 2) return;
  const Graph& graph = *dag->graph;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    DagNode& dag_node = dag->nodes[static_cast<size_t>(id)];
    if (node.Is("variable")) dag_node.split = dag_node.matrix && is_split && is_split(node.Text("name"));
    if (node.Is("assign") || node.Is("result")) dag_node.split = (*dag)[node.inputs[0]].split;
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr || op->effect) continue;
    const std::vector<ValueInfo> infos = InputInfos(graph, node);
    const ops::Sharing sharing = ops::SharingOf(
        node, infos, [&](size_t i) { return (*dag)[node.inputs[i]].split; }, min_distributed_bytes);
    if (sharing == ops::Sharing::kNone) continue;
    dag_node.spread = true;
    dag_node.split = LeavesRows(node, infos, *op, sharing);
    if (sharing == ops::Sharing::kMovedRows) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoNode || dag_node.by_rows[i] != 0) continue;
      DagNode& input = dag->nodes[static_cast<size_t>(node.inputs[i])];
      if (input.matrix && input.copied_for == kNoNode) input.copied_for = id;
    }
  }
}

}  // namespace heddle::compiler::fusion

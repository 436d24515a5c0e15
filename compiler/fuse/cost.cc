// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/cost.h"

#include <algorithm>

#include "ops/matmul.h"

namespace heddle::compiler {

namespace fusion {
namespace {

constexpr double kGatherWaste = 8;  // Cells of a line that a gather along non-zeros brings in.
// Narrow products of dense rows join lanes for each cell of the result, at so much work; so do folds of rows.
constexpr double kWorkOfJoin = 40;
constexpr double kWorkOfRowFold = 25;

bool IsSquare(const Dag& dag, NodeId id) {
  const Node& node = (*dag.graph)[id];
  if (!node.Is("^")) return false;
  const Node& exponent = (*dag.graph)[node.inputs[1]];
  const Scalar* value = exponent.FindAttribute("value");
  return exponent.Is("literal") && value != nullptr && !value->IsString() && value->AsDouble() == 2;
}

bool HasBase(const DagNode& node) { return node.inputs.size() == 2 && node.inputs[1] != kNoNode; }

// Share of the cells that an operator visits.
double VisitedShare(const Dag& dag, const OperatorWork& operation) {
  double share = 0;
  for (NodeId root : operation.roots) {
    const NodeId walked = WalkedValue(dag, root);
    if (walked == kNoNode || operation.kind == FusionTemplate::kRow || !dag[walked].sparse) return 1;
    double driver = 1;
    for (NodeId input : operation.inputs)
      if (dag[input].sparse && dag[input].cells == dag[walked].cells)
        driver = std::min(driver, dag[input].sparsity);
    share = std::max({share, driver < 1 ? driver : 0, dag[walked].sparsity});
  }
  return std::min(1.0, share);
}

// The published rule for Outer operators: all of it by the sparsity of the largest input.
double PublishedShare(const Dag& dag, const OperatorWork& operation) {
  if (operation.kind != FusionTemplate::kOuter || operation.inputs.empty()) return 1;
  const auto largest = std::max_element(operation.inputs.begin(), operation.inputs.end(),
                                        [&](NodeId a, NodeId b) { return dag[a].cells < dag[b].cells; });
  return dag[*largest].sparsity;
}

// Operators on spread rows: every rank does its part, needs a copy of what is not walked, and sends its
// partial result.
void Distribute(const Dag& dag, const OperatorWork& operation, const CostModel& model, OperatorTime* time) {
  const NodeId root = operation.roots[0];
  const int64_t height = HeightOf(dag, root);
  double spread = 0, copied = 0;
  for (NodeId input : operation.inputs) (dag[input].rows == height ? spread : copied) += dag[input].bytes;
  if (model.ranks < 2 || spread < static_cast<double>(model.min_distributed_bytes)) return;
  const bool reduces = !dag[root].matrix || dag[root].rows != height;
  const double sent = copied * (model.ranks - 1) + (reduces ? dag[root].bytes * model.ranks : 0);
  time->total = time->total / model.ranks + sent / model.constants.broadcast;
}

}  // namespace

NodeId WalkedValue(const Dag& dag, NodeId root) {
  const DagNode& node = dag[root];
  if (node.op == nullptr) return kNoNode;
  switch (node.op->use) {
    case RowUse::kCells:
    case RowUse::kSampledProduct: return root;
    case RowUse::kFullAggregate:
    case RowUse::kRowAggregate:
    case RowUse::kColumnAggregate: return node.inputs[0];
    case RowUse::kProduct: return dag[node.inputs[0]].sparse ? node.inputs[0] : kNoNode;
    case RowUse::kTransposedProduct:
      return dag[node.inputs[0]].sparse   ? node.inputs[0]
             : dag[node.inputs[1]].sparse ? node.inputs[1]
                                          : kNoNode;
    case RowUse::kColumnRange:
    case RowUse::kCbind: return kNoNode;
  }
  return kNoNode;
}

NodeWork WorkOf(const Dag& dag, NodeId id, const MachineConstants& constants) {
  const DagNode& node = dag[id];
  const double unit = constants.published ? node.op->published_flops : node.op->flops;
  const auto operand = [&](size_t i) -> const DagNode& { return dag[node.inputs[i]]; };
  switch (node.op->use) {
    case RowUse::kCells:
      if (IsSquare(dag, id)) return {.along = node.cells};
      return {.along = node.cells * unit * ((*dag.graph)[id].Is("log") && HasBase(node) ? 2 : 1)};
    case RowUse::kFullAggregate:
    case RowUse::kColumnAggregate: return {.along = unit * operand(0).cells};
    case RowUse::kRowAggregate:
      return {.along = unit * operand(0).cells, .fixed = constants.published ? 0 : kWorkOfRowFold * node.cells};
    case RowUse::kProduct: {
      const double products = unit * node.cells * static_cast<double>(operand(0).columns) * operand(0).sparsity;
      const bool joins = !constants.published && !operand(0).sparse && ops::IsNarrow(node.columns);
      return {.fixed = products + (joins ? kWorkOfJoin * node.cells : 0)};
    }
    case RowUse::kTransposedProduct: {
      const double products = unit * node.cells * static_cast<double>(operand(0).rows);
      if (constants.published) return {.fixed = products * operand(0).sparsity + operand(0).cells};
      // Half of a symmetric result is computed.
      return {.fixed = products * std::min(operand(0).sparsity, operand(1).sparsity) *
                       (node.inputs[0] == node.inputs[1] ? 0.5 : 1.0)};
    }
    case RowUse::kSampledProduct:
      return {.along = unit * node.cells * static_cast<double>(operand(1).columns)};
    case RowUse::kColumnRange:
    case RowUse::kCbind: return {.along = unit * node.cells};
  }
  return {};
}

double WriteBytes(const Dag& dag, NodeId id, const MachineConstants& constants) {
  return constants.published ? 8 * dag[id].cells : dag[id].bytes;
}

OperatorTime TimeOf(const Dag& dag, const OperatorWork& operation, const CostModel& model) {
  const MachineConstants& constants = model.constants;
  OperatorTime time;
  double out = 0;
  for (NodeId root : operation.roots) out += WriteBytes(dag, root, constants);
  time.write = out / constants.write;
  double bytes = 0, held = out;
  if (constants.published) {
    const double share = PublishedShare(dag, operation);
    for (NodeId input : operation.inputs) bytes += dag[input].bytes;
    held += bytes;
    time.read = bytes / constants.read;
    time.compute = (operation.work.along + operation.work.fixed) / constants.compute;
    time.total = share * (time.write + std::max(time.read, time.compute));
  } else {
    const double share = VisitedShare(dag, operation);
    const NodeId walked = WalkedValue(dag, operation.roots[0]);
    for (NodeId input : operation.inputs) {
      const bool gathered = walked != kNoNode && !dag[input].sparse && dag[input].cells == dag[walked].cells;
      bytes += dag[input].bytes * (gathered ? std::min(1.0, kGatherWaste * share) : 1);
      held += dag[input].bytes;
    }
    time.read = bytes / constants.read;
    time.compute = (operation.work.along * share + operation.work.fixed) / constants.compute;
    time.total = time.write + std::max(time.read, time.compute);
  }
  Distribute(dag, operation, model, &time);
  time.total += constants.operator_seconds;
  if (model.memory_budget > 0 && held > static_cast<double>(model.memory_budget))
    time.total += kInfeasibleSeconds;
  return time;
}

}  // namespace fusion
}  // namespace heddle::compiler

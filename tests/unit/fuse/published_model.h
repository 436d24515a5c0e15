// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compiler/fuse/plan_cost.h"

namespace heddle::compiler::fusion {

/// The cost model of the published optimiser (docs/fusion.md, section 2), for tests of its worked examples:
/// which operators a plan consists of is known there by what they cost. Its table of operations a cell is
/// that of scalar code, results are written as if dense, an Outer operator is scaled as a whole by the
/// sparsity of its largest input and nothing else by sparsity, and t(X) %*% Y transposes X.
class PublishedModel {
 public:
  PublishedModel(const Dag& dag, int cores) : dag_(dag), operations_per_second_(2 * kGibi * cores) {}

  double Seconds(const PlannedOperator& planned) const {
    double written = 0, read = 0, work = 0;
    for (const NodeId root : planned.work.roots) written += 8 * dag_[root].cells;
    for (const NodeId input : planned.inputs) read += dag_[input].bytes;
    for (const NodeId id : planned.covered) work += OperationsOf(id);
    double share = 1;
    if (planned.work.kind == FusionTemplate::kOuter && !planned.inputs.empty())
      share = dag_[*std::max_element(planned.inputs.begin(), planned.inputs.end(), [&](NodeId a, NodeId b) {
                return dag_[a].cells < dag_[b].cells;
              })].sparsity;
    return share *
           (written / kWrittenPerSecond + std::max(read / kReadPerSecond, work / operations_per_second_));
  }

  double Seconds(PlanCost& cost, const Assignment& plan) const {
    double seconds = 0;
    for (const PlannedOperator& planned : cost.Operators(plan)) seconds += Seconds(planned);
    return seconds;
  }

 private:
  static constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;
  static constexpr double kWrittenPerSecond = 2 * kGibi, kReadPerSecond = 32 * kGibi;

  double OperationsOf(NodeId id) const {
    static const std::map<std::string, double, std::less<>> kTable = {
        {"/", 22},      {"^", 16},      {"exp", 18}, {"log", 32}, {"asin", 93},         {"sum", 4},
        {"rowSums", 4}, {"colSums", 4}, {"%*%", 2},  {"t%*%", 2}, {"sampledProduct", 2}};
    const DagNode& node = dag_[id];
    const auto found = kTable.find((*dag_.graph)[id].op);
    const double unit = found == kTable.end() ? 1 : found->second;
    const auto operand = [&](size_t i) -> const DagNode& { return dag_[node.inputs[i]]; };
    switch (node.op->fusion.use) {
      case ops::RowUse::kFullAggregate:
      case ops::RowUse::kColumnAggregate:
      case ops::RowUse::kRowAggregate: return unit * operand(0).cells;
      case ops::RowUse::kProduct:
        return unit * node.cells * static_cast<double>(operand(0).columns) * operand(0).sparsity;
      case ops::RowUse::kTransposedProduct:
        return unit * node.cells * static_cast<double>(operand(0).rows) * operand(0).sparsity +
               operand(0).cells;
      case ops::RowUse::kSampledProduct: return unit * node.cells * static_cast<double>(operand(1).columns);
      default: return unit * node.cells;
    }
  }

  const Dag& dag_;
  double operations_per_second_;
};

}  // namespace heddle::compiler::fusion

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/place.h"

#include <algorithm>

#include "ops/base/split.h"

namespace heddle::scheduler {
namespace {

// Places the nodes of one graph in order; the placements of a node's inputs are there when it is placed.
class Placer {
 public:
  Placer(const Graph& graph, const std::map<std::string, Distribution>& live_in,
         const ScheduleOptions& options)
      : graph_(graph), live_in_(live_in), options_(options), placements_(graph.nodes.size()) {}

  Result<std::vector<Placement>> Run() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      placements_[static_cast<size_t>(id)].inputs.assign(graph_[id].inputs.size(), Distribution::One());
      HEDDLE_RETURN_IF_ERROR(PlaceNode(graph_[id], placements_[static_cast<size_t>(id)]));
    }
    return std::move(placements_);
  }

 private:
  const Distribution& DistributionOf(NodeId input) const {
    return placements_[static_cast<size_t>(input)].result;
  }

  Status PlaceNode(const Node& node, Placement& placement) {
    if (node.Is("literal")) {
      placement.result = Distribution::Each();
      return OkStatus();
    }
    if (node.Is("variable")) {
      const auto found = live_in_.find(node.Text("name"));
      if (found == live_in_.end()) return Internal("variable {} has no distribution", node.Text("name"));
      placement.result = options_.ranks == 1 && !node.info.IsScalar() ? Distribution::One() : found->second;
      return OkStatus();
    }
    if (node.Is("assign")) {
      const auto wanted = options_.live_out.find(node.Text("name"));
      placement.result = node.info.IsScalar()                ? Distribution::Each()
                         : wanted != options_.live_out.end() ? wanted->second
                                                             : DistributionOf(node.inputs[0]);
      placement.inputs[0] = placement.result;
      return OkStatus();
    }
    if (node.Is("result")) {
      placement.result = placement.inputs[0] =
          Reduces(node) ? Distribution::One() : DistributionOf(node.inputs[0]);
      return OkStatus();
    }
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr) return Internal("unknown operator {}", node.op).At(node.position);
    infos_.clear();
    for (NodeId input : node.inputs) infos_.push_back(input == kNoNode ? ValueInfo{} : graph_[input].info);
    if (IsComputedEverywhere(node, *op)) {
      placement.result = Distribution::Each();
      std::fill(placement.inputs.begin(), placement.inputs.end(), Distribution::Each());
      return OkStatus();
    }
    placement.rule = op->effect ? ops::RowRule::kWhole : ops::RowRuleOf(node, infos_);
    if (options_.ranks == 1 || placement.rule == ops::RowRule::kWhole) return OkStatus();
    DecideSplit(node, placement);
    const bool is_even = placement.rule == ops::RowRule::kReduce && HasEvenRows(node);
    placement.split |= is_even && placement.total_rows > 1;
    if (!placement.split) return OkStatus();
    const Distribution split = is_even ? EvenRows(placement.total_rows)
                                       : Distribution::SplitRows(placement.total_rows, options_.ranks);
    placement.cuts = split.split;
    for (size_t i = 0; i < infos_.size(); ++i)
      placement.inputs[i] = IsReadByRows(node, i) ? split : Distribution::Each();
    // Rows that are few, each of much work, are few bytes: every rank puts them together for itself.
    placement.result = is_even                                   ? Distribution::Each()
                       : placement.rule == ops::RowRule::kReduce ? Distribution::One()
                                                                 : split;
    return OkStatus();
  }

  // Scalars computed from scalars that every rank has: every rank computes them.
  bool IsComputedEverywhere(const Node& node, const ops::Operator& op) const {
    if (!node.info.IsScalar() || op.effect || !op.pure) return false;
    for (size_t i = 0; i < infos_.size(); ++i) {
      if (infos_[i].IsTabular()) return false;
      if (node.inputs[i] != kNoNode && !DistributionOf(node.inputs[i]).IsEach()) return false;
    }
    return true;
  }

  // Whether a "result" is one of an operator's reductions, of which every rank makes a part.
  bool Reduces(const Node& result) const {
    const Node& tuple = graph_[result.inputs[0]];
    return placements_[static_cast<size_t>(result.inputs[0])].rule == ops::RowRule::kMixed &&
           ops::FindOperator(tuple.op)->reduces(tuple, result.ResultIndex());
  }

  static bool HasEvenRows(const Node& node) {
    const Scalar* const even = node.FindAttribute("even.rows");
    return even != nullptr && even->AsBoolean();
  }

  Distribution EvenRows(int64_t rows) const {
    Distribution even{.kind = Distribution::Kind::kSplit};
    for (int64_t rank = 0; rank <= options_.ranks; ++rank)
      even.split.cuts.push_back(rows / options_.ranks * rank + rows % options_.ranks * rank / options_.ranks);
    return even;
  }

  bool IsReadByRows(const Node& node, size_t i) const {
    return node.inputs[i] != kNoNode &&
           ops::InputUseOf(node, infos_, static_cast<int>(i)) == ops::InputUse::kRows;
  }

  void DecideSplit(const Node& node, Placement& placement) const {
    std::vector<ops::RowsInput> by_rows;
    for (size_t i = 0; i < infos_.size(); ++i)
      if (IsReadByRows(node, i)) by_rows.push_back({infos_[i], DistributionOf(node.inputs[i]).IsSplit()});
    for (const ValueInfo& result : ResultsOf(node))
      placement.split |= ops::IsSplit(placement.rule, by_rows, result, options_.min_distributed_bytes);
    placement.total_rows = by_rows.empty() ? node.info.shape.rows : by_rows.back().info.shape.rows;
  }

  const Graph& graph_;
  const std::map<std::string, Distribution>& live_in_;
  const ScheduleOptions& options_;
  std::vector<Placement> placements_;
  std::vector<ValueInfo> infos_;  // Of the inputs of the node that is being placed.
};

}  // namespace

Result<std::vector<Placement>> Place(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                     const ScheduleOptions& options) {
  return Placer(graph, live_in, options).Run();
}

}  // namespace heddle::scheduler

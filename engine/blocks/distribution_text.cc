// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/distribution_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/programs/fused_operator.h"
#include "engine/blocks/amount.h"
#include "engine/session/planning.h"
#include "ops/fused/fused.h"
#include "scheduler/place.h"
#include "scheduler/transition.h"

namespace heddle::engine {
namespace {

constexpr int32_t kMostCutsShown = 4;

std::string TextOf(const Distribution& distribution) {
  switch (distribution.kind) {
    case Distribution::Kind::kOne: return fmt::format("on worker {}", distribution.rank);
    case Distribution::Kind::kEach: return "on each worker";
    case Distribution::Kind::kPartial: return "as parts of a sum";
    case Distribution::Kind::kSplit: break;
  }
  const Split& split = distribution.split;
  if (split.cuts.empty()) return "by rows, as many as each worker has";
  const auto ranks = static_cast<int32_t>(split.cuts.size()) - 1;
  std::string text = fmt::format("by {}", Name(split.axis));
  for (int32_t rank = 0; rank < std::min(ranks, kMostCutsShown); ++rank)
    text += fmt::format("{}{}", rank == 0 ? " " : " + ", split.End(rank) - split.Begin(rank));
  return ranks > kMostCutsShown ? text + fmt::format(" + ... ({} workers)", ranks) : text;
}

std::string TextOfResults(const scheduler::Placement& placement) {
  std::string text;
  for (const Distribution& where : placement.result_at)
    text += (text.empty() ? "result " : ", ") + TextOf(where);
  return text;
}

std::string TextOf(const scheduler::Placement& placement, int32_t ranks) {
  const Distribution cuts{.kind = Distribution::Kind::kSplit, .split = placement.cuts};
  if (placement.staged != nullptr && placement.staged->units != nullptr)
    return fmt::format("reduced {}, finished in parts, {}", TextOf(cuts), TextOfResults(placement));
  if (placement.staged != nullptr && placement.staged->result == ops::StagedResult::kTurned)
    return fmt::format("{}, each part turned where it is", TextOf(placement.result));
  if (placement.staged != nullptr && placement.staged->axis == Axis::kColumns)
    return TextOf(placement.result);
  if (placement.staged != nullptr) {
    const ops::RankGrid grid = placement.Grid(ranks);
    const std::string on_grid = placement.staged->on_grid
                                    ? fmt::format(" on a grid of {} x {} workers", grid.rows(), grid.columns)
                                    : std::string();
    return fmt::format("in {} stages{}, {}", placement.staged->stages.size(), on_grid,
                       TextOf(placement.result));
  }
  if (placement.moves_rows)
    return fmt::format("each worker fetches its {}, {}", Name(placement.cuts.axis), TextOf(placement.result));
  if (!placement.split) return TextOf(placement.result);
  switch (placement.rule) {
    case ops::RowRule::kReduce:
      return fmt::format("reduced {}, result {}", TextOf(cuts), TextOf(placement.result));
    case ops::RowRule::kMixed: return fmt::format("{}, its sums {}", TextOf(cuts), TextOf(placement.reduced));
    default: return TextOf(cuts);
  }
}

std::string Time(double ns) {
  return ns < 1e6 ? fmt::format("{:.0f} us", ns / 1e3) : fmt::format("{:.1f} ms", ns / 1e6);
}

std::string NameOf(const Node& node) { return IsFused(node) ? ops::NameOf(*node.fused) : node.op; }

// An operand as the text names it: a variable, or the operator that makes it.
std::string OperandName(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.Is("variable")) return node.Text("name");
  return node.Is("result") ? NameOf(graph[node.inputs[0]]) : NameOf(node);
}

}  // namespace

Result<std::string> DistributionText::Of(const Graph& graph) {
  if (options_.ranks < 2) return std::string();
  const scheduler::ScheduleOptions options = ScheduleOptionsOf(options_);
  std::map<std::string, Distribution> live_in;
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    const auto found = variables_.find(node.Text("name"));
    live_in[node.Text("name")] = found != variables_.end() ? found->second
                                 : node.info.IsScalar()    ? Distribution::Each()
                                                           : Distribution::One();
  }
  scheduler::PlacementReport report;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<scheduler::Placement> placements,
                          scheduler::Place(graph, live_in, options, &report));
  std::string text;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const scheduler::Placement& placement = placements[static_cast<size_t>(id)];
    if (node.Is("assign")) variables_[node.Text("name")] = placement.result;
    const bool is_operator =
        !node.Is("assign") && !node.Is("result") && !node.Is("literal") && !node.Is("variable");
    const bool touches_tables = std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
      return input != kNoNode && graph[input].info.IsTabular();
    });
    if (!is_operator || (!touches_tables && !ResultsOf(node)[0].IsTabular())) continue;
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
          return input != kNoNode && graph[input].info.IsTabular() && !graph[input].info.IsSized();
        })) {
      text +=
          fmt::format("  line {} {}: chosen when its operands are there\n", node.position.line, NameOf(node));
      continue;
    }
    std::string size;
    for (const ValueInfo& info : ResultsOf(node))
      if (info.IsTabular()) size += fmt::format(" {}", info.shape);
    text += fmt::format("  line {} {}{}: {}\n", node.position.line, NameOf(node), size,
                        TextOf(placement, options_.ranks));
    std::vector<NodeId> told;
    for (size_t i = 0; i < node.inputs.size() && !placement.moves_rows; ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode || std::find(told.begin(), told.end(), input) != told.end()) continue;
      told.push_back(input);
      const Distribution& home = placements[static_cast<size_t>(input)].result;
      const scheduler::Transition moved = scheduler::TransitionOf(scheduler::BytesToMove(graph[input].info),
                                                                  home, placement.inputs[i], options_.ranks);
      if (moved.sent_bytes > 0)
        text += fmt::format("    moves {}, {}, to {}: {} sent, {}\n", OperandName(graph, input), TextOf(home),
                            TextOf(placement.inputs[i]), Amount(moved.sent_bytes),
                            Time(scheduler::NanosecondsOf(moved, options.constants)));
    }
    if (report.alternatives.empty()) continue;
    const std::vector<scheduler::Alternative>& alternatives = report.alternatives[static_cast<size_t>(id)];
    for (size_t i = 0; i < alternatives.size(); ++i)
      text += fmt::format("    {} {}: {}\n", i == 0 ? "costs" : "rejected:",
                          i == 0 ? std::string("so") : TextOf(alternatives[i].placement, options_.ranks),
                          Time(alternatives[i].cost_ns));
  }
  if (!text.empty() && options.constants.links.measured)
    text = fmt::format("  links {}\n", ops::ToText(options.constants.links)) + text;
  if (!text.empty() && !report.is_exact) text += "  the best that a fixed search found\n";
  return text;
}

}  // namespace heddle::engine

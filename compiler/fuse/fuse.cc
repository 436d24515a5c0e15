// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/fuse.h"

#include <algorithm>
#include <charconv>

#include "compiler/fuse/memo.h"
#include "compiler/fuse/partition.h"
#include "compiler/fuse/phases.h"
#include "compiler/fuse/plan_cost.h"
#include "compiler/fuse/replace.h"
#include "compiler/fuse/select.h"
#include "core/environment/random.h"

namespace heddle::compiler {
namespace {

using namespace fusion;  // The parts of this folder.

constexpr std::pair<FusionMode, std::string_view> kModes[] = {
    {FusionMode::kOff, "off"},
    {FusionMode::kAll, "all"},
    {FusionMode::kNoRedundancy, "no-redundancy"},
    {FusionMode::kCost, "cost"},
    {FusionMode::kRandom, "random"},
};

EntryChoice ChoiceOf(FusionMode mode) {
  if (mode == FusionMode::kNoRedundancy) return EntryChoice::kNoRedundancy;
  return mode == FusionMode::kRandom ? EntryChoice::kRandom : EntryChoice::kBest;
}

std::string SetText(const std::vector<NodeId>& ids) {
  std::string text = "{";
  for (NodeId id : ids) text += (text.size() > 1 ? "," : "") + std::to_string(id);
  return text + "}";
}

std::string BitsText(const Assignment& assignment) {
  std::string text;
  for (uint8_t bit : assignment) text += bit != 0 ? '1' : '0';
  return text;
}

std::string OperatorText(const PlannedOperator& planned) {
  std::string text;
  for (NodeId root : planned.work.roots) text += (text.empty() ? "" : "+") + std::to_string(root);
  return fmt::format("{} {}{} write {:.3g} read {:.3g} compute {:.3g} total {:.3g} ms",
                     Name(planned.work.kind), text, SetText(planned.covered), planned.time.write / 1e6,
                     planned.time.read / 1e6, planned.time.compute / 1e6, planned.time.total / 1e6);
}

std::string PlanText(const CostedPlan& plan, const std::vector<Point>& points) {
  std::vector<Point> materialized;
  for (size_t i = 0; i < points.size(); ++i)
    if (plan.assignment[i] != 0) materialized.push_back(points[i]);
  return fmt::format("{:.4g} ms: {}", plan.cost / 1e6,
                     materialized.empty() ? "nothing" : fusion::ToText(materialized));
}

PartitionReport Describe(const Partition& partition) {
  PartitionReport report;
  report.nodes = SetText(partition.nodes);
  report.roots = SetText(partition.roots);
  report.inputs = SetText(partition.inputs);
  report.materialization = SetText(partition.materialization);
  report.external = SetText(partition.external);
  report.points = fusion::ToText(partition.points);
  report.log2_plans = static_cast<double>(partition.points.size());
  return report;
}

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options)
      : options_(options),
        graph_(WithoutHarmlessOrder(graph)),
        dag_(DagOf(graph_, options)),
        memo_(PrunedMemo(dag_)),
        picker_(dag_, memo_, ChoiceOf(options.mode), options.seed),
        random_(options.seed) {
    MarkSplit(options.ranks, options.min_distributed_bytes, options.is_split, &dag_);
    model_ = {ops::OrBuiltIn(options.constants, options.threads),
              options.memory_budget,
              options.threads,
              options.ranks,
              options.min_distributed_bytes,
              options.can_run};
    search_.reported_plans = options.reported_plans;
    search_.clock = options.clock != nullptr ? options.clock : &SystemClock();
    search_.deadline_ns = search_.clock->MonotonicNs() + options.deadline_ms * 1'000'000;
  }

  Result<Graph> Run(FuseReport* report) {
    report->memo = fusion::ToText(memo_, graph_);
    ReplaceOptions replace;
    for (const Partition& partition : FindPartitions(dag_, memo_)) Choose(partition, report);
    replace.model = model_;
    replace.stitch.by_cost = options_.mode == FusionMode::kCost;
    if (options_.mode == FusionMode::kRandom) replace.stitch.wants = [this] { return random_.Below(2) == 0; };
    ReplaceReport replaced;
    HEDDLE_ASSIGN_OR_RETURN(Graph result, Replace(dag_, memo_, picker_, replace, &replaced));
    report->fused = std::move(replaced.fused);
    report->again = std::move(replaced.again);
    report->refused = std::move(replaced.refused);
    PhaseOptions phases{.ranks = options_.ranks,
                        .min_distributed_bytes = options_.min_distributed_bytes,
                        .memory_budget = options_.memory_budget,
                        .is_split = options_.is_split,
                        .constants = model_.constants,
                        .can_run = options_.can_run_in_phases};
    if (options_.mode == FusionMode::kRandom) phases.wants = [this] { return random_.Below(2) == 0; };
    return JoinPhases(result, phases, &report->phased);
  }

 private:
  static Dag DagOf(const Graph& graph, const FuseOptions& options) {
    Dag dag = MakeDag(graph, options.sparsity_of);
    if (!options.fuses_wide_products) ExcludeWideProducts(&dag);
    return dag;
  }
  static Memo PrunedMemo(const Dag& dag) {
    Memo memo = Explore(dag);
    Prune(dag, &memo);
    return memo;
  }

  void Choose(const Partition& partition, FuseReport* report) {
    PartitionReport described = Describe(partition);
    Assignment chosen(partition.points.size(), 0);
    if (options_.mode == FusionMode::kRandom)
      for (uint8_t& bit : chosen) bit = random_.Below(2) == 0;
    if (options_.mode == FusionMode::kCost) chosen = Search(partition, &described);
    for (size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] != 0) picker_.Block(partition.points[i].consumer, partition.points[i].target);
    described.chosen = BitsText(chosen);
    report->partitions.push_back(std::move(described));
  }

  Assignment Search(const Partition& partition, PartitionReport* described) {
    PlanCost cost(dag_, memo_, partition, model_, EntryChoice::kBest);
    const SearchResult found = Select(cost, search_);
    described->costed = found.costed;
    described->cost = found.cost;
    described->fuse_all = found.all_zero;
    described->cut_all = found.all_one;
    described->gap = found.cost > 0 ? (found.cost - found.lower_bound) / found.cost : 0;
    if (options_.reported_plans > 0) TellCosts(partition, found, &cost, described);
    return found.assignment;
  }

  void TellCosts(const Partition& partition, const SearchResult& found, PlanCost* cost,
                 PartitionReport* described) const {
    PlanCost heuristic(dag_, memo_, partition, model_, EntryChoice::kNoRedundancy);
    heuristic.CountStitches(true);
    described->no_redundancy = heuristic.Cost(Assignment(partition.points.size(), 0));
    cost->CountStitches(true);
    for (const CostedPlan& plan : found.plans) described->plans.push_back(PlanText(plan, partition.points));
    for (const PlannedOperator& planned : cost->Operators(found.assignment))
      described->operators.push_back(OperatorText(planned));
  }

  const FuseOptions& options_;
  Graph graph_;
  Dag dag_;
  Memo memo_;
  EntryPicker picker_;
  SeededRandom random_;
  CostModel model_;
  SearchOptions search_;
};

}  // namespace

std::string_view Name(FusionMode mode) {
  return std::find_if(std::begin(kModes), std::end(kModes),
                      [mode](const auto& entry) { return entry.first == mode; })
      ->second;
}

std::optional<FusionMode> ParseFusionMode(std::string_view name) {
  const auto* found = std::find_if(std::begin(kModes), std::end(kModes),
                                   [name](const auto& entry) { return entry.second == name; });
  return found == std::end(kModes) ? std::nullopt : std::optional(found->first);
}

Status SetMode(std::string_view text, FuseOptions* options) {
  constexpr std::string_view kSeeded = "random:";
  if (text.starts_with(kSeeded)) {
    const std::string_view seed = text.substr(kSeeded.size());
    const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), options->seed);
    if (error != std::errc() || end != seed.data() + seed.size())
      return InvalidArgument("'{}' is no seed of a fusion plan", seed);
    options->mode = FusionMode::kRandom;
    return OkStatus();
  }
  const std::optional<FusionMode> mode = ParseFusionMode(text);
  if (!mode) return InvalidArgument("unknown fusion mode {}", text);
  options->mode = *mode;
  return OkStatus();
}

Result<Graph> Fuse(const Graph& graph, const FuseOptions& options, FuseReport* report) {
  FuseReport unread;
  if (report == nullptr) report = &unread;
  *report = {};
  if (options.mode == FusionMode::kOff) return graph;
  HEDDLE_ASSIGN_OR_RETURN(Graph result, Fuser(graph, options).Run(report));
  if (options.observe) options.observe(ToText(*report, true));
  return result;
}

}  // namespace heddle::compiler

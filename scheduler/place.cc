// SPDX-License-Identifier: Apache-2.0
#include "scheduler/place.h"

#include <algorithm>
#include <limits>
#include <set>

#include "scheduler/candidates.h"
#include "scheduler/choice/choose.h"
#include "scheduler/spread_whole.h"
#include "scheduler/transition.h"

namespace heddle::scheduler {
namespace {

constexpr double kExcluded = std::numeric_limits<double>::infinity();
// Of a value that several operators read, so many different distributions are counted once each; with more,
// each reader pays for its own.
constexpr size_t kMostShared = 5;
// Variables of at most so many bytes are taken for wanted by all ranks so often.
constexpr int64_t kMostBytesOfAll = int64_t{1} << 20;
constexpr double kShareWantedByAll = 0.9;

// Places the nodes of one graph. Operators are the variables of the problem; a value that several operators
// read has one more, the set of the distributions in which it is made, so that what is boxed once for all of
// them is paid once.
class Placer {
 public:
  Placer(const Graph& graph, const std::map<std::string, Distribution>& live_in,
         const ScheduleOptions& options)
      : graph_(graph),
        live_in_(live_in),
        options_(options),
        finder_(graph, live_in, options),
        placements_(graph.nodes.size()),
        candidates_(graph.nodes.size()),
        variable_of_(graph.nodes.size(), -1),
        readers_(graph.nodes.size()) {}

  Result<std::vector<Placement>> Run(PlacementReport* report) {
    for (NodeId id = 0; id < graph_.size(); ++id) HEDDLE_RETURN_IF_ERROR(Prepare(id));
    if (options_.ranks == 1) {  // There is nothing to choose.
      for (NodeId id = 0; id < graph_.size(); ++id) Settle(id, {});
      return std::move(placements_);
    }
    bool is_exact = true;
    ChoiceProblem problem = ProblemOf(true);
    std::vector<int> choices = problem.Solve(&is_exact);
    if (!is_exact) {
      problem = ProblemOf(false);
      choices = problem.Solve(&is_exact);
    }
    for (NodeId id = 0; id < graph_.size(); ++id) Settle(id, choices);
    SpreadWhole(graph_, options_, &placements_);
    if (report != nullptr) {
      report->is_exact = is_exact;
      // Transitions that readers share have no cost of any one of them: here each pays for its own.
      problem = ProblemOf(false);
      choices.resize(static_cast<size_t>(problem.size()));
      Tell(problem, choices, report);
    }
    return std::move(placements_);
  }

 private:
  static size_t Index(NodeId id) { return static_cast<size_t>(id); }

  // Placements that do not depend on others, and the candidates of the others.
  Status Prepare(NodeId id) {
    const Node& node = graph_[id];
    Placement& placement = placements_[Index(id)];
    placement.inputs.assign(node.inputs.size(), Distribution::One());
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
    if (node.Is("assign") || node.Is("result")) {
      finder_.SetLike(id, node.inputs[0]);
      if (IsReduction(id)) finder_.SetWhole(id);
      return OkStatus();
    }
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr) return Internal("unknown operator {}", node.op).At(node.position);
    if (IsComputedEverywhere(node, *op)) {
      placement.result = Distribution::Each();
      std::fill(placement.inputs.begin(), placement.inputs.end(), Distribution::Each());
    } else if (options_.ranks > 1) {
      candidates_[Index(id)] = finder_.Of(id);
      if (candidates_[Index(id)].size() == 1) placement = candidates_[Index(id)][0].placement;
    }
    return OkStatus();
  }

  // Scalars computed from scalars that every rank has: every rank computes them.
  bool IsComputedEverywhere(const Node& node, const ops::Operator& op) const {
    if (!node.info.IsScalar() || op.effect || !op.pure) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
      return input == kNoNode || (!graph_[input].info.IsTabular() && !IsOpen(Root(input)) &&
                                  placements_[Index(input)].result.IsEach());
    });
  }

  // A result that comes of all rows, of an operator others of whose results are rows.
  bool IsReduction(NodeId id) const {
    const Node& node = graph_[id];
    if (!node.Is("result")) return false;
    const NodeId tuple = node.inputs[0];
    const Placement& placement = candidates_[Index(tuple)].empty() ? placements_[Index(tuple)]
                                                                   : candidates_[Index(tuple)][0].placement;
    return placement.split && placement.rule == ops::RowRule::kMixed &&
           ops::FindOperator(graph_[tuple].op)->reduces(graph_[tuple], node.ResultIndex());
  }
  // The node that makes a value: of a result, its tuple.
  NodeId Root(NodeId value) const { return graph_[value].Is("result") ? graph_[value].inputs[0] : value; }
  bool IsOpen(NodeId node) const { return candidates_[Index(node)].size() > 1; }

  // Where a value is if its node is placed so.
  Distribution HomeOf(NodeId value, const Placement& placement) const {
    const Node& node = graph_[value];
    return node.Is("result") ? DistributionOf(graph_[node.inputs[0]], placement, node.ResultIndex())
                             : placement.result;
  }
  Distribution WantedOf(NodeId assign) const {
    const Node& node = graph_[assign];
    if (node.info.IsScalar()) return Distribution::Each();
    const auto wanted = options_.live_out.find(node.Text("name"));
    return wanted != options_.live_out.end() ? wanted->second
                                             : Distribution{.kind = Distribution::Kind::kPartial};
  }
  bool IsWanted(NodeId assign) const { return WantedOf(assign).kind != Distribution::Kind::kPartial; }

  // What makes a value: the placements that it may have.
  size_t MakersOf(NodeId root) const { return std::max<size_t>(1, candidates_[Index(root)].size()); }
  const Placement& Maker(NodeId root, size_t choice) const {
    return IsOpen(root) ? candidates_[Index(root)][choice].placement : placements_[Index(root)];
  }
  // What the c-th candidate of a reader wants of a value; several of it where it reads it in several ways.
  std::vector<Distribution> WantedBy(NodeId reader, size_t choice, NodeId value) const {
    const Node& node = graph_[reader];
    std::vector<Distribution> wanted;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != value) continue;
      if (node.Is("assign")) {
        if (IsWanted(reader)) wanted.push_back(WantedOf(reader));
        continue;
      }
      const Placement& placement = Maker(reader, choice);
      if (!placement.moves_rows) wanted.push_back(placement.inputs[i]);
    }
    return wanted;
  }
  double MoveNs(NodeId value, const Distribution& from, const Distribution& to) const {
    return NanosecondsOf(TransitionOf(BytesToMove(graph_[value].info), from, to, options_.ranks),
                         options_.constants);
  }

  ChoiceProblem ProblemOf(bool shares) {
    ChoiceProblem problem;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      variable_of_[Index(id)] = -1;
      if (!IsOpen(id)) continue;
      std::vector<double> costs;
      for (const CandidateFinder::Candidate& candidate : candidates_[Index(id)])
        costs.push_back(candidate.own_ns);
      variable_of_[Index(id)] = problem.Add(std::move(costs));
    }
    for (std::vector<NodeId>& readers : readers_) readers.clear();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_[id].Is("result")) continue;
      const std::set<NodeId> values(graph_[id].inputs.begin(), graph_[id].inputs.end());
      for (const NodeId value : values)
        if (value != kNoNode) readers_[Index(value)].push_back(id);
    }
    for (NodeId value = 0; value < graph_.size(); ++value) AddMoves(value, shares, &problem);
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (graph_[id].Is("assign") && !IsWanted(id)) AddLater(id, &problem);
    return problem;
  }

  // The costs of moving a value to where its readers want it.
  void AddMoves(NodeId value, bool shares, ChoiceProblem* problem) {
    if (graph_[value].info.IsTuple() || readers_[Index(value)].empty()) return;
    const NodeId root = Root(value);
    std::vector<Distribution> targets;
    int open_readers = 0;
    for (const NodeId reader : readers_[Index(value)]) {
      open_readers += IsOpen(reader);
      for (size_t choice = 0; choice < MakersOf(reader); ++choice)
        for (const Distribution& wanted : WantedBy(reader, choice, value))
          if (std::find(targets.begin(), targets.end(), wanted) == targets.end()) targets.push_back(wanted);
    }
    if (!IsOpen(root) && open_readers == 0) return;
    if (shares && readers_[Index(value)].size() > 1 && targets.size() > 1 && targets.size() <= kMostShared)
      AddSharedMoves(value, targets, problem);
    else
      for (const NodeId reader : readers_[Index(value)]) AddMove(value, reader, problem);
  }

  // A small variable on one rank is mostly wanted by all later: by the next round of a loop, for one.
  void AddLater(NodeId assign, ChoiceProblem* problem) {
    const NodeId value = graph_[assign].inputs[0], root = Root(value);
    if (!IsOpen(root) || !graph_[value].info.IsSized() || KnownBytes(graph_[value].info) > kMostBytesOfAll)
      return;
    std::vector<double> costs;
    for (size_t i = 0; i < MakersOf(root); ++i) {
      const Distribution home = HomeOf(value, Maker(root, i));
      costs.push_back(home.IsOne() ? kShareWantedByAll * MoveNs(value, home, Distribution::Each()) : 0);
    }
    problem->AddCosts(variable_of_[Index(root)], costs);
  }

  void AddMove(NodeId value, NodeId reader, ChoiceProblem* problem) {
    const NodeId root = Root(value);
    const size_t makers = MakersOf(root), choices = MakersOf(reader);
    std::vector<double> costs;
    for (size_t i = 0; i < makers; ++i)
      for (size_t j = 0; j < choices; ++j) {
        double cost = 0;
        for (const Distribution& wanted : WantedBy(reader, j, value))
          cost += MoveNs(value, HomeOf(value, Maker(root, i)), wanted);
        costs.push_back(cost);
      }
    AddCosts(variable_of_[Index(root)], variable_of_[Index(reader)], makers, choices, std::move(costs),
             problem);
  }

  // A variable whose choices are the sets of distributions in which the value is made.
  void AddSharedMoves(NodeId value, const std::vector<Distribution>& targets, ChoiceProblem* problem) {
    const NodeId root = Root(value);
    const size_t sets = size_t{1} << targets.size(), makers = MakersOf(root);
    const int made = problem->Add(std::vector<double>(sets, 0));
    std::vector<double> costs;
    for (size_t i = 0; i < makers; ++i)
      for (size_t set = 0; set < sets; ++set) {
        double cost = 0;
        for (size_t t = 0; t < targets.size(); ++t)
          if ((set >> t & 1) != 0) cost += MoveNs(value, HomeOf(value, Maker(root, i)), targets[t]);
        costs.push_back(cost);
      }
    AddCosts(variable_of_[Index(root)], made, makers, sets, std::move(costs), problem);
    for (const NodeId reader : readers_[Index(value)]) {
      const size_t choices = MakersOf(reader);
      std::vector<double> excluded;
      for (size_t set = 0; set < sets; ++set)
        for (size_t j = 0; j < choices; ++j) {
          double cost = 0;
          for (const Distribution& wanted : WantedBy(reader, j, value)) {
            const auto place = std::find(targets.begin(), targets.end(), wanted) - targets.begin();
            if ((set >> place & 1) == 0) cost = kExcluded;
          }
          excluded.push_back(cost);
        }
      AddCosts(made, variable_of_[Index(reader)], sets, choices, std::move(excluded), problem);
    }
  }

  // Costs of a pair, of which one or both may be decided already.
  static void AddCosts(int a, int b, size_t rows, size_t columns, std::vector<double> costs,
                       ChoiceProblem* problem) {
    if (a >= 0 && b >= 0) {
      if (a != b) problem->AddPair(a, b, std::move(costs));
      return;
    }
    if (a >= 0 && columns == 1) problem->AddCosts(a, costs);
    if (b >= 0 && rows == 1) problem->AddCosts(b, costs);
  }

  void Settle(NodeId id, const std::vector<int>& choices) {
    const Node& node = graph_[id];
    Placement& placement = placements_[Index(id)];
    if (node.Is("assign")) {
      placement.result = IsWanted(id) ? WantedOf(id) : placements_[Index(node.inputs[0])].result;
      placement.inputs[0] = placement.result;
    } else if (node.Is("result")) {
      placement.result = placement.inputs[0] = HomeOf(id, placements_[Index(node.inputs[0])]);
    } else if (IsOpen(id)) {
      const auto choice = static_cast<size_t>(choices[static_cast<size_t>(variable_of_[Index(id)])]);
      placement = candidates_[Index(id)][choice].placement;
    }
  }

  void Tell(const ChoiceProblem& problem, const std::vector<int>& choices, PlacementReport* report) const {
    report->alternatives.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const int variable = variable_of_[Index(id)];
      if (variable < 0) continue;
      const std::vector<double> costs = problem.CostsOf(variable, choices);
      const auto chosen = static_cast<size_t>(choices[static_cast<size_t>(variable)]);
      std::vector<Alternative>& alternatives = report->alternatives[Index(id)];
      for (size_t i = 0; i < costs.size(); ++i)
        alternatives.insert(i == chosen ? alternatives.begin() : alternatives.end(),
                            {candidates_[Index(id)][i].placement, costs[i]});
    }
  }

  const Graph& graph_;
  const std::map<std::string, Distribution>& live_in_;
  const ScheduleOptions& options_;
  CandidateFinder finder_;
  std::vector<Placement> placements_;
  std::vector<std::vector<CandidateFinder::Candidate>>
      candidates_;                            // By node; of those placed already, <= 1.
  std::vector<int> variable_of_;              // By node; -1: placed already.
  std::vector<std::vector<NodeId>> readers_;  // By value.
};

}  // namespace

Distribution DistributionOf(const Node& node, const Placement& placement, size_t i) {
  if (!placement.result_at.empty()) return placement.result_at[i];
  if (placement.staged != nullptr && i > 0 && !placement.staged->all_alike) return Distribution::Each();
  if (!placement.split || placement.rule != ops::RowRule::kMixed) return placement.result;
  return ops::FindOperator(node.op)->reduces(node, i) ? placement.reduced : placement.result;
}

Result<std::vector<Placement>> Place(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                     const ScheduleOptions& options, PlacementReport* report) {
  return Placer(graph, live_in, options).Run(report);
}

}  // namespace heddle::scheduler

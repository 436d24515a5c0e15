// SPDX-License-Identifier: Apache-2.0
// The search against all assignments, on random blocks.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/fuse/replace.h"
#include "compiler/fuse/select.h"
#include "tests/support/all_plans.h"
#include "tests/unit/fuse/examples.h"
#include "tests/unit/fuse/random_graph.h"

namespace heddle::compiler::fusion {
namespace {

// A block with its partitions, under some cost model of that seed: threads, limits, several ranks.
struct Case {
  explicit Case(uint64_t seed) : graph(RandomGraph(seed).Make(8 + static_cast<int>(seed % 17))) {
    SeededRandom random(seed + 1'000'000);
    const double sparsity = 1.0 / static_cast<double>(1 + random.Below(1000));
    dag = MakeDag(graph, [sparsity](std::string_view) { return sparsity; });
    memo = Explore(dag);
    Prune(dag, &memo);
    partitions = FindPartitions(dag, memo);
    const int threads = 1 << random.Below(6);
    model.constants = ops::BuiltInConstants(threads);
    if (random.Below(3) == 0) model.memory_budget = static_cast<int64_t>(1'000'000) << random.Below(8);
    if (random.Below(3) == 0) {
      model.ranks = 2 + static_cast<int>(random.Below(3));
      model.min_distributed_bytes = 1 << 20;
      MarkSplit(model.ranks, model.min_distributed_bytes, {}, &dag);
    }
  }

  Graph graph;
  Dag dag;
  Memo memo;
  std::vector<Partition> partitions;
  CostModel model;
};

Assignment AssignmentOf(uint64_t bits, size_t points) {
  Assignment q(points);
  for (size_t i = 0; i < points; ++i) q[i] = bits >> (points - 1 - i) & 1;
  return q;
}

double CheapestOfAll(PlanCost& cost) {
  const size_t points = cost.partition().points.size();
  double best = cost.Cost(AssignmentOf(0, points));
  for (uint64_t i = 1; i < uint64_t{1} << points; ++i)
    best = std::min(best, cost.Cost(AssignmentOf(i, points)));
  return best;
}

constexpr double kRounding = 1e-12;

TEST(SearchTest, EveryPruningFindsTheCheapestOfAllPlans) {
  const int wanted = testing_support::RunsAllPlans() ? 5000 : 300;
  const size_t most_points = testing_support::RunsAllPlans() ? 14 : 11;
  int checked = 0, with_cuts = 0, below_heuristics = 0, stitched = 0;
  int64_t all = 0, costed = 0, enumerated = 0, bounded = 0, without_cuts = 0;
  for (uint64_t seed = 0; checked < wanted; ++seed) {
    Case random(seed);
    for (const Partition& partition : random.partitions) {
      if (partition.points.empty() || partition.points.size() > most_points) continue;
      SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
      PlanCost cost(random.dag, random.memo, partition, random.model);
      // Above, the search is exact for operators by themselves, and stitches come last.
      if (cost.can_stitch() && !cost.counts_stitches()) continue;
      stitched += cost.counts_stitches();
      const double best = CheapestOfAll(cost);
      for (const bool pruned : {false, true}) {
        SearchOptions options;
        options.prune_by_cost = options.prune_by_structure = pruned;
        options.max_bounds_in_vain = INT64_MAX;
        options.max_enumerated_points = 20;
        SearchResult found = Select(cost, options);
        ASSERT_NEAR(found.cost, best, kRounding * best) << "enumerated, pruned " << pruned << "\n"
                                                        << random.graph.ToText() << ToText(partition.points);
        ASSERT_NEAR(cost.Cost(found.assignment), found.cost, kRounding * best);
        if (pruned) enumerated += found.costed;
        options.max_enumerated_points = 0;
        found = Select(cost, options);
        ASSERT_NEAR(found.cost, best, kRounding * best) << "bounded, by cut sets " << pruned << "\n"
                                                        << random.graph.ToText() << ToText(partition.points);
        ASSERT_NEAR(cost.Cost(found.assignment), found.cost, kRounding * best);
        ASSERT_LE(found.lower_bound, best * (1 + kRounding));
        if (static_cast<int>(partition.points.size()) > SearchOptions().max_enumerated_points)
          (pruned ? bounded : without_cuts) += found.costed;
      }
      const SearchResult found = Select(cost, SearchOptions());
      ASSERT_NEAR(found.cost, best, kRounding * best);
      // Where passes are shared the bound is that of the whole block: it is close where memory counts, which
      // random blocks do not show.
      if (!cost.counts_stitches()) costed += found.costed;
      below_heuristics += found.cost < std::min(found.all_zero, found.all_one) * (1 - 1e-9);
      with_cuts += !FindCutSets(random.dag, partition).empty();
      if (!cost.counts_stitches()) all += int64_t{1} << partition.points.size();
      ++checked;
    }
  }
  // The population is worth something: cut sets occur, some optima are no heuristic's, and many plans are
  // never costed.
  EXPECT_GT(with_cuts, 0);
  EXPECT_GT(stitched, wanted / 20);
  EXPECT_GT(below_heuristics, wanted / 50);
  EXPECT_LT(static_cast<double>(costed), 0.7 * static_cast<double>(all));
  fmt::print(
      "{} partitions of up to {} points, {} with cut sets: of {} plans {} ({:.0f} %) costed, {} by enumeration "
      "alone; branch and bound {}, without cut sets {}\n",
      checked, most_points, with_cuts, all, costed,
      100.0 * static_cast<double>(costed) / static_cast<double>(all), enumerated, bounded, without_cuts);
}

// The nodes of a block whose lines tell their ids.
std::set<NodeId> NodesOf(const FusedOperator& fused) {
  std::set<NodeId> nodes;
  for (const Node& node : fused.body.nodes)
    if (!node.Is("variable") && !node.Is("literal")) nodes.insert(node.position.line - 1);
  return nodes;
}

// Of each fused operator "results <- all that it computes".
std::multiset<std::string> OperatorsOf(const std::vector<std::shared_ptr<const FusedOperator>>& made) {
  std::multiset<std::string> operators;
  for (const auto& fused : made) {
    std::set<NodeId> roots;
    for (const NodeId root : fused->roots) roots.insert(fused->body[root].position.line - 1);
    operators.insert(fmt::format("{} <- {}", fmt::join(roots, ","), fmt::join(NodesOf(*fused), ",")));
  }
  return operators;
}

std::multiset<std::string> OperatorsOf(const std::vector<PlannedOperator>& planned) {
  std::multiset<std::string> operators;
  for (const PlannedOperator& one : planned) {
    if (one.covered.size() < 2) continue;
    const std::set<NodeId> roots(one.work.roots.begin(), one.work.roots.end());
    operators.insert(fmt::format("{} <- {}", fmt::join(roots, ","), fmt::join(one.covered, ",")));
  }
  return operators;
}

// A plan costs what it is: the operators and stitches that the search sees are those that are made of it.
// Partitions that are searched apart may share passes all the same, which no search sees.
TEST(SearchTest, TheReplacementMakesWhatTheSearchPlanned) {
  int checked = 0, stitched = 0, shared = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Case random(seed);
    for (NodeId id = 0; id < random.graph.size(); ++id) random.graph[id].position = {"block.dml", id + 1, 1};
    std::vector<int> partition_of(random.graph.nodes.size(), -1);
    for (size_t p = 0; p < random.partitions.size(); ++p)
      for (const NodeId id : random.partitions[p].nodes)
        partition_of[static_cast<size_t>(id)] = static_cast<int>(p);
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    SeededRandom draw(seed);
    for (int round = 0; round < 3; ++round) {
      EntryPicker picker(random.dag, random.memo, EntryChoice::kBest, 0);
      ReplaceOptions replace;
      replace.model = random.model;
      std::multiset<std::string> planned;
      bool stitches = true;
      int stitches_planned = 0;
      for (const Partition& partition : random.partitions) {
        PlanCost cost(random.dag, random.memo, partition, random.model);
        cost.CountStitches(true);
        stitches &= cost.counts_stitches();
        Assignment plan(partition.points.size());
        for (uint8_t& bit : plan) bit = round < 2 ? static_cast<uint8_t>(round) : draw.Below(2) == 0;
        for (size_t i = 0; i < plan.size(); ++i)
          if (plan[i] != 0) picker.Block(partition.points[i].consumer, partition.points[i].target);
        const std::vector<PlannedOperator> operators = cost.Operators(plan);
        for (const PlannedOperator& one : operators)
          stitches_planned += one.work.kind == FusionTemplate::kStitch;
        planned.merge(OperatorsOf(operators));
      }
      if (!stitches) continue;
      ReplaceReport report;
      const Result<Graph> replaced = Replace(random.dag, random.memo, picker, replace, &report);
      ASSERT_TRUE(replaced.ok()) << replaced.status().ToString();
      if (std::any_of(report.fused.begin(), report.fused.end(), [&](const auto& fused) {
            std::set<int> parts;
            for (const NodeId id : NodesOf(*fused)) parts.insert(partition_of[static_cast<size_t>(id)]);
            return parts.size() > 1 || parts.contains(-1);
          })) {
        ++shared;
        continue;
      }
      ++checked;
      stitched += stitches_planned;
      EXPECT_EQ(OperatorsOf(report.fused), planned) << "round " << round << "\n" << random.graph.ToText();
    }
  }
  EXPECT_GT(checked, 500);
  EXPECT_GT(stitched, 500);
  EXPECT_LT(shared, checked / 10);
}

TEST(SearchTest, TheLowerBoundIsBelowEveryPlanThatHasItsOnes) {
  int checked = 0;
  for (uint64_t seed = 0; checked < 200; ++seed) {
    Case random(seed);
    for (const Partition& partition : random.partitions) {
      const size_t points = partition.points.size();
      if (points == 0 || points > 7) continue;
      SCOPED_TRACE(testing::Message() << "replay with seed " << seed << "\n" << random.graph.ToText());
      PlanCost cost(random.dag, random.memo, partition, random.model);
      for (uint64_t more = 0; more < uint64_t{1} << points; ++more) {
        const double exact = cost.Cost(AssignmentOf(more, points));
        for (uint64_t less = more;; less = (less - 1) & more) {
          ASSERT_LE(cost.LowerBound(AssignmentOf(less, points)), exact * (1 + kRounding))
              << less << " in " << more;
          if (less == 0) break;
        }
      }
      ++checked;
    }
  }
}

TEST(SearchTest, ThePartialBoundIsBelowEveryPlanThatAgrees) {
  int checked = 0;
  for (uint64_t seed = 0; checked < 200; ++seed) {
    Case random(seed);
    for (const Partition& partition : random.partitions) {
      const size_t points = partition.points.size();
      if (points == 0 || points > 6) continue;
      SCOPED_TRACE(testing::Message() << "replay with seed " << seed << "\n" << random.graph.ToText());
      PlanCost cost(random.dag, random.memo, partition, random.model);
      const uint64_t all = (uint64_t{1} << points) - 1;
      for (uint64_t plan = 0; plan <= all; ++plan) {
        const Assignment q = AssignmentOf(plan, points);
        const double exact = cost.Cost(q);
        for (uint64_t known = 0; known <= all; ++known)
          ASSERT_LE(cost.PartialBound(q, AssignmentOf(known, points)), exact * (1 + kRounding))
              << plan << " known " << known;
        ASSERT_NEAR(cost.PartialBound(q, AssignmentOf(all, points)), exact, kRounding * exact);
      }
      ++checked;
    }
  }
}

TEST(SearchTest, ACostThatReachesTheLimitIsInfinite) {
  Case random(3);
  for (const Partition& partition : random.partitions) {
    PlanCost cost(random.dag, random.memo, partition, random.model);
    const Assignment zero(partition.points.size(), 0);
    const double exact = cost.Cost(zero);
    EXPECT_EQ(cost.Cost(zero, exact), std::numeric_limits<double>::infinity());
    EXPECT_EQ(cost.Cost(zero, exact * (1 + 1e-9)), exact);
  }
}

// A chain of values that all have two consumers: two points each.
Graph LongChain(int links) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1'000'000, 100), y = make.Matrix("Y", 1'000'000, 100);
  NodeId value = x;
  for (int i = 0; i < links; ++i) {
    const NodeId shared = make.Add(i % 2 == 0 ? "asin" : "exp", {value});
    const NodeId left = make.Add("+", {shared, y});
    value = make.Add("*", {left, shared});
  }
  make.Assign("out", value);
  return make.graph();
}

// The first partition of a block, and what its plans cost.
struct LargeSearch {
  explicit LargeSearch(Graph of, ops::MachineConstants constants = ops::BuiltInConstants(2))
      : graph(std::move(of)), model{.constants = constants} {}

  Graph graph;
  Dag dag = MakeDag(graph, {});
  Memo memo = PrunedMemo(dag);
  std::vector<Partition> partitions = FindPartitions(dag, memo);
  CostModel model;
  PlanCost cost{dag, memo, partitions[0], model};

  static Memo PrunedMemo(const Dag& dag) {
    Memo memo = Explore(dag);
    Prune(dag, &memo);
    return memo;
  }
};

// T = f(X); R = T / colSums(T), R waits for the sums: either both passes compute T, or one pass writes it and
// adds it up and another one reads it. The operators by themselves do not know that the sums come with
// writing T. Between the two costs lie functions that stitches write and operators by themselves compute
// twice.
TEST(SearchTest, AStitchChangesWhatIsWritten) {
  int changed = 0;
  for (const char* function : {"%%", "sqrt", "exp", "log", "tanh", "sin", "round"})
    for (int threads = 1; threads <= 8; ++threads) {
      LargeSearch search(NormalizedColumns(function), ops::BuiltInConstants(threads));
      ASSERT_EQ(ToText(search.partitions.at(0).points), "(3->2) (4->2)");
      PlanCost& cost = search.cost;
      ASSERT_TRUE(cost.counts_stitches());
      const SearchResult stitched = Select(cost, {});
      EXPECT_NEAR(stitched.cost, CheapestOfAll(cost), kRounding * stitched.cost);
      cost.CountStitches(false);
      Assignment alone = {0, 0};
      for (const Assignment& other : {Assignment{0, 1}, Assignment{1, 0}, Assignment{1, 1}})
        if (cost.Cost(other) < cost.Cost(alone)) alone = other;
      cost.CountStitches(true);
      if (stitched.cost >= cost.Cost(alone) * (1 - 1e-9)) continue;
      ++changed;
      EXPECT_EQ(alone, (Assignment{0, 0})) << "T is computed twice";
      const std::vector<PlannedOperator> operators = cost.Operators(stitched.assignment);
      ASSERT_EQ(operators.size(), 2u);
      EXPECT_EQ(operators[0].work.kind, FusionTemplate::kStitch);
      EXPECT_EQ(operators[0].work.roots, (std::vector<NodeId>{2, 3}));
      EXPECT_EQ(operators[1].work.roots, (std::vector<NodeId>{4}));
    }
  EXPECT_GT(changed, 0);
}

// A block of which most of the points lie on the two sides of a cut set.
TEST(SearchTest, ACutSetSavesTheSearchOfItsSides) {
  bool found = false;
  for (uint64_t seed = 0; seed < 50'000 && !found; ++seed) {
    Case random(seed);
    for (const Partition& partition : random.partitions) {
      const size_t points = partition.points.size();
      if (points < 6 || points > 9 || FindCutSets(random.dag, partition).empty()) continue;
      PlanCost cost(random.dag, random.memo, partition, random.model);
      cost.CountStitches(false);  // A pass may have results on both sides.
      SearchOptions options;
      const SearchResult with = Select(cost, options);
      options.prune_by_structure = false;
      const SearchResult without = Select(cost, options);
      EXPECT_NEAR(with.cost, without.cost, kRounding * without.cost);
      if (4 * with.costed >= 3 * without.costed) continue;
      found = true;
    }
  }
  EXPECT_TRUE(found);
}

// What exploring a block and costing one of its plans looks at.
struct Work {
  explicit Work(const Graph& graph) {
    const Dag dag = MakeDag(graph, {});
    const Memo memo = LargeSearch::PrunedMemo(dag);
    for (const std::vector<Entry>& group : memo.groups) entries += static_cast<int64_t>(group.size());
    for (const Partition& partition : FindPartitions(dag, memo)) {
      PlanCost cost(dag, memo, partition, {.constants = ops::BuiltInConstants(2)});
      const Assignment zero(partition.points.size(), 0);
      (void)cost.Cost(zero);
      (void)cost.PartialBound(zero, zero);
      points += static_cast<int64_t>(zero.size());
      steps += cost.steps();
    }
  }

  int64_t entries = 0, points = 0, steps = 0;
};

// One operator that reads so many matrices.
Graph WideSum(int inputs) {
  GraphMaker make;
  NodeId value = make.Matrix("X0", 1'000'000, 100);
  for (int i = 1; i < inputs; ++i)
    value = make.Add("+", {value, make.Matrix("X" + std::to_string(i), 1'000'000, 100)});
  make.Assign("out", value);
  return make.graph();
}

TEST(SearchTest, TheWorkOfAPlanIsLinearInTheOperators) {
  for (Graph (*make)(int) : {LongChain, WideSum}) {
    const Work some(make(100)), many(make(1000));  // Ten times, and a constant.
    EXPECT_GT(some.steps, 0);
    EXPECT_LE(many.entries, 11 * some.entries);
    EXPECT_LE(many.points, 11 * some.points);
    EXPECT_LE(many.steps, 11 * some.steps);
  }
}

TEST(SearchTest, AboveTwentyPointsTheGapIsProven) {
  LargeSearch search(LongChain(14));
  ASSERT_EQ(search.partitions.size(), 1u);
  ASSERT_GT(search.partitions[0].points.size(), 20u);
  SearchOptions options;
  options.max_costed = 2'000;
  const SearchResult found = Select(search.cost, options);
  EXPECT_LE(found.costed, 2'000);
  EXPECT_LE(found.lower_bound, found.cost);
  EXPECT_LE(found.cost, std::min(found.all_zero, found.all_one));
  EXPECT_GT(found.lower_bound, 0);
}

// Where no operator fits into memory all plans cost about the same, and a search of a few points would look
// at all of them.
TEST(SearchTest, ASearchInVainEnds) {
  LargeSearch search(LongChain(9));
  ASSERT_LE(search.partitions[0].points.size(), 20u);
  search.model.memory_budget = 1;
  PlanCost cost(search.dag, search.memo, search.partitions[0], search.model);
  const SearchResult found = Select(cost, SearchOptions());
  EXPECT_GE(found.cost, kInfeasibleNs);
  EXPECT_LE(found.costed, SearchOptions().max_bounds_in_vain + 200);
  EXPECT_LE(found.lower_bound, found.cost);
  EXPECT_LE(found.cost, std::min(found.all_zero, found.all_one));
}

class SteppingClock : public VirtualClock {
 public:
  int64_t MonotonicNs() override {
    Advance(1'000'000);
    return VirtualClock::MonotonicNs();
  }
};

TEST(SearchTest, TheClockEndsALargeSearch) {
  LargeSearch search(LongChain(30));
  SteppingClock clock;
  SearchOptions options;
  options.clock = &clock;
  options.deadline_ns = 100'000'000;  // A hundred looks at the clock.
  const SearchResult found = Select(search.cost, options);
  EXPECT_LE(found.costed, 110);
  EXPECT_LE(found.cost, found.all_zero);
}

// What a search may take is what a better plan could save: here fifty looks at the clock.
TEST(SearchTest, ASearchIsNotWorthMoreThanItCouldSave) {
  LargeSearch search(LongChain(30));
  SteppingClock clock;
  SearchOptions options;
  options.clock = &clock;
  options.deadline_ns = INT64_MAX;
  options.runs_of_plan = 0.05e9 / search.cost.Cost(Assignment(search.partitions[0].points.size(), 0));
  const SearchResult found = Select(search.cost, options);
  EXPECT_LE(found.costed, 60);
  EXPECT_LE(found.cost, found.all_zero);
  EXPECT_LE(found.lower_bound, found.cost);
  options.clock = nullptr;
  EXPECT_GT(Select(search.cost, options).costed, 60);
}

}  // namespace
}  // namespace heddle::compiler::fusion

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/values/panels.h"
#include "scheduler/liveness.h"
#include "scheduler/memory_of_plan.h"
#include "scheduler/plan_memory.h"
#include "scheduler/schedule.h"
#include "scheduler/staged_panels.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kRows = 100'000, kColumns = 100;  // 80 MB

int64_t Count(const Plan& plan, TaskKind kind) {
  return std::count_if(plan.tasks.begin(), plan.tasks.end(),
                       [&](const Task& task) { return task.kind == kind; });
}

// Tasks that collect the rows of a pass, and those that join its lists.
int64_t CountCollecting(const Plan& plan, Phase phase) {
  return std::count_if(plan.tasks.begin(), plan.tasks.end(), [&](const Task& task) {
    return task.kind == TaskKind::kAccumulate && task.phase == phase;
  });
}

Result<Plan> InMemory(const Graph& graph, int64_t memory_bytes, std::set<std::string> panelled = {},
                      std::map<std::string, std::vector<int64_t>> most_entries = {}) {
  ScheduleOptions options;
  options.most_entries = std::move(most_entries);
  options.memory_bytes = memory_bytes;
  options.in_panels = true;
  options.panelled = std::move(panelled);
  std::map<std::string, Distribution> live_in;
  for (const Node& node : graph.nodes)
    if (node.Is("variable")) live_in[node.Text("name")] = Distribution::One();
  return Schedule(graph, live_in, options);
}

// sum(X - colMeans(X)) of an X that is panels: two passes, which read X each.
TEST(PanelPlanTest, WhatDependsOnAReductionIsAPassOfItsOwn) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId means = g.Op("colMeans", {x}, MatrixOf(1, kColumns));
  const NodeId centered = g.Op("-", {x, means}, MatrixOf(kRows, kColumns));
  g.Assign("s", g.Op("sum", {centered}, ValueInfo::OfScalar(ValueType::kDouble)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_LE(plan->peak_bytes[0], 20 << 20);
  EXPECT_EQ(Count(*plan, TaskKind::kUnpack), 2);
  EXPECT_EQ(Count(*plan, TaskKind::kRepeat), 1) << "colMeans(X), for each panel of the second pass";
  EXPECT_EQ(Count(*plan, TaskKind::kPack), 1) << "the lists of sum, which are small";
  EXPECT_EQ(CountCollecting(*plan, Phase::kStage), 1) << "the lists of colMeans";
  EXPECT_EQ(CountCollecting(*plan, Phase::kPanels), 0) << "no panel is kept";
  EXPECT_TRUE(CheckLive(*plan).ok());
}

// One pass serves all that reads X at the same time.
TEST(PanelPlanTest, WhatReadsTheSameRowsSharesAPass) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("a", g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  g.Assign("b", g.Op("colSums", {x}, MatrixOf(1, kColumns)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Count(*plan, TaskKind::kUnpack), 1);
}

// t(read("X")) %*% read("y"): the rows of both are made in the pass that reads them, and nothing is kept.
TEST(PanelPlanTest, FilesThatOnePassReadsAreReadInIt) {
  GraphUnderTest g;
  const NodeId path = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kString));
  g.graph[path].SetAttribute("value", Scalar("f"));
  const NodeId x = g.Op("read", {path}, MatrixOf(kRows, kColumns));
  const NodeId y = g.Op("read", {path}, MatrixOf(kRows, kColumns));
  g.graph[y].after = {x};
  const NodeId product = g.Op("t%*%", {x, y}, MatrixOf(kColumns, kColumns));
  const NodeId print =
      g.Op("print", {g.Op("sum", {product}, ValueInfo::OfScalar(ValueType::kDouble))}, ValueInfo());
  g.graph[print].after = {y};
  g.Assign("b", product);
  const Result<Plan> plan = InMemory(g.graph, 20 << 20);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(CheckLive(*plan).ok());
  for (const Task& task : plan->tasks)
    EXPECT_FALSE(task.node == x && task.phase == Phase::kPanels) << "a handle, whose rows may be kept";
  // Who comes after the second file comes after the first one.
  for (const Task& task : plan->tasks) {
    if (task.node != print) continue;
    EXPECT_EQ(task.control_in.size(), 2u);
  }
}

// write(exp(read("X")), path): the file grows by each panel. The next panel is read meanwhile, although the
// write comes after the read.
TEST(PanelPlanTest, AWriteAppendsInThePassThatMakesItsRows) {
  const auto plan_of = [](const char* path, const char* format) {
    GraphUnderTest g;
    const auto text = [&](const char* value) {
      const NodeId literal = g.Op("literal", {}, ValueInfo::OfScalar(ValueType::kString));
      g.graph[literal].SetAttribute("value", Scalar(value));
      return literal;
    };
    const NodeId x = g.Op("read", {text("X")}, MatrixOf(kRows, kColumns));
    const NodeId y = g.Op("exp", {x}, MatrixOf(kRows, kColumns));
    const NodeId write = g.Op("write", {y, text(path)}, ValueInfo());
    g.graph[write].SetAttribute("format", Scalar(format));
    g.graph[write].after = {x};
    const NodeId print = g.Op("print", {text("done")}, ValueInfo());
    g.graph[print].after = {write};
    Result<Plan> plan = InMemory(g.graph, 20 << 20);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(CheckLive(*plan).ok());
    return *std::move(plan);
  };
  const auto task_of = [](const Plan& plan, std::string_view op) {
    return *std::find_if(plan.tasks.begin(), plan.tasks.end(), [&](const Task& task) {
      return task.node != kNoNode && plan.graph[task.node].Is(op) && task.phase == Phase::kWhole;
    });
  };
  const Plan plan = plan_of("Y", "mm");
  const Task write = task_of(plan, "write"), read = task_of(plan, "read");
  EXPECT_EQ(write.kind, TaskKind::kAccumulate);
  EXPECT_EQ(write.rate, CeilDivide(kRows, write.panel_rows));
  EXPECT_EQ(CountCollecting(plan, Phase::kPanels), 0) << "no row is kept";
  EXPECT_EQ(read.kind, TaskKind::kUnpack);
  ASSERT_EQ(read.produced.size(), 2u);
  for (const RegisterId id : read.produced) EXPECT_EQ(plan.registers[static_cast<size_t>(id)].slots, 2);
  EXPECT_EQ(write.control_in, std::vector{read.produced[1]}) << "each act for an act of the read";
  EXPECT_EQ(task_of(plan, "print").control_in, write.produced);

  // How many entries there are decides where pieces of a packed file end.
  const Plan packed = plan_of("Y.gz", "mm");
  EXPECT_EQ(task_of(packed, "write").kind, TaskKind::kSink);
  EXPECT_EQ(CountCollecting(packed, Phase::kPanels), 1);
}

// What a later pass reads is kept, what a variable becomes, too.
TEST(PanelPlanTest, RowsThatAreReadLaterAreCollected) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId y = g.Op("exp", {x}, MatrixOf(kRows, kColumns));
  const NodeId means = g.Op("colMeans", {y}, MatrixOf(1, kColumns));
  g.Assign("Z", g.Op("-", {y, means}, MatrixOf(kRows, kColumns)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(CountCollecting(*plan, Phase::kPanels), 2);
  EXPECT_LE(plan->peak_bytes[0], 20 << 20);
}

TEST(PanelPlanTest, WhatNeedsAValueWholeIsRefusedWithTheNumbers) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId y = g.Variable("y", MatrixOf(kRows, 1));
  g.Assign("b", g.Op("solve", {x, y}, MatrixOf(kColumns, 1)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  EXPECT_EQ(plan.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(plan.status().ToString().find("the limit is 20971520 bytes"), std::string::npos)
      << plan.status().ToString();
}

// What needs rows of all panels acts once, in stages, and holds no more than a part of the memory.
TEST(PanelPlanTest, OperatorsInStagesReadAndMakePanels) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const NodeId y = g.Op("cumsum", {x}, MatrixOf(kRows, kColumns));
  g.Assign("s", g.Op("sum", {y}, ValueInfo::OfScalar(ValueType::kDouble)));
  g.Assign("Y", y);
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_LE(plan->peak_bytes[0], 20 << 20);
  ASSERT_EQ(plan->staged.size(), 1u);
  EXPECT_EQ(plan->staged[0].node, y);
  EXPECT_GE(plan->staged[0].rows.cuts.size(), 5u);
  for (const Task& task : plan->tasks) {
    if (task.node != y || task.phase != Phase::kPanels) continue;
    const Register& made = plan->registers[static_cast<size_t>(task.produced[0])];
    EXPECT_EQ(made.bytes, 0) << "the panels are the store's";
    EXPECT_TRUE(HandlesOf(*plan)[static_cast<size_t>(made.id)]);
  }
  const Result<Plan> parsed = Plan::Parse(plan->ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->ToText(), plan->ToText());
  EXPECT_TRUE(CheckLive(*plan).ok());
}

// A product whose right operand does not fit is computed in blocks.
TEST(PanelPlanTest, ProductsOfTwoLargeMatricesRunInBlocks) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(8'000, 8'000));
  const NodeId y = g.Variable("Y", MatrixOf(8'000, 8'000));
  const NodeId z = g.Op("%*%", {x, y}, MatrixOf(8'000, 8'000));
  g.Assign("Z", z);
  const Result<Plan> plan = InMemory(g.graph, 200 << 20, {"X", "Y"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_LE(plan->peak_bytes[0], 200 << 20);
  EXPECT_NE(plan->graph[z].FindAttribute("held.bytes"), nullptr);
}

// A range of panels reads nothing before its rows are needed, and then those alone.
TEST(PanelPlanTest, RangesOfPanelsArePanels) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  const ValueInfo bound = ValueInfo::OfScalar(ValueType::kDouble);
  const NodeId first = g.Variable("first", bound), last = g.Variable("last", bound);
  const NodeId rows = g.Op("index", {x, first, last, kNoNode, kNoNode}, MatrixOf(64, kColumns));
  g.Assign("B", rows);
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_LE(plan->peak_bytes[0], 1 << 20);
}

// t(X) %*% X of 200 panels: a list takes 4 MB, and the plan has room for those of a path of the tree.
TEST(PanelPlanTest, ListsAreJoinedWhilePanelsPass) {
  constexpr int64_t kWide = 1000, kMany = 200 * 8192, kList = 8 * kWide * (kWide + 1) / 2;
  for (const int64_t rows : {kMany, kMany - 5000}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", MatrixOf(rows, kWide));
    g.Assign("C", g.Op("t%*%", {x, x}, MatrixOf(kWide, kWide)));
    const Result<Plan> plan = InMemory(g.graph, 300 << 20, {"X"});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(Count(*plan, TaskKind::kPack), 0);
    ASSERT_EQ(CountCollecting(*plan, Phase::kStage), 1);
    for (const Task& task : plan->tasks) {
      if (task.kind != TaskKind::kAccumulate) continue;
      EXPECT_EQ(task.rate, 200);
      const int64_t list = plan->registers[static_cast<size_t>(task.consumed[0])].bytes;
      const int64_t joined = plan->registers[static_cast<size_t>(task.produced[0])].bytes;
      EXPECT_GE(list, kList);
      EXPECT_LE(list, kList + 4096);
      EXPECT_GE(joined, 8 * kList);
      EXPECT_LE(joined, 11 * kList);
    }
    EXPECT_TRUE(CheckLive(*plan).ok());
    const Result<Plan> parsed = Plan::Parse(plan->ToText());
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    EXPECT_EQ(parsed->ToText(), plan->ToText());
  }
}

// Entries of CSR panels are those that were counted, of the rows that have the most of them; of what is
// computed cell by cell they are bounded by those of its operands.
TEST(PanelPlanTest, EntriesOfPanelsAreCounted) {
  const ValueInfo sparse = ValueInfo::OfMatrix({kRows, kColumns}, Format::kSparse);
  // 49 granules of 2048 rows, half of the cells of each, or of the first alone.
  const auto counts = [](int64_t of_first, int64_t of_others) {
    std::vector<int64_t> most;
    for (int64_t granules = 1; granules <= 64; granules *= 2)
      most.push_back(of_first + (granules - 1) * of_others);
    return most;
  };
  constexpr int64_t kHalf = 2048 * kColumns / 2, kEntryBytes = 12;
  for (const char* const op : {"*", "+"}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", sparse), y = g.Variable("Y", sparse);
    const NodeId z = g.Op(op, {x, y}, sparse);
    g.Assign("s", g.Op("sum", {z}, ValueInfo::OfScalar(ValueType::kDouble)));
    const auto height_of = [](const Plan& plan) {
      int64_t height = 0;
      for (const Task& task : plan.tasks) height = std::max(height, task.panel_rows);
      return height;
    };
    const Result<Plan> guessed = InMemory(g.graph, 20 << 20, {"X", "Y"});
    const Result<Plan> plan =
        InMemory(g.graph, 20 << 20, {"X", "Y"}, {{"X", counts(kHalf, kHalf)}, {"Y", counts(kHalf, 10)}});
    ASSERT_TRUE(guessed.ok() && plan.ok()) << plan.status().ToString();
    EXPECT_LT(height_of(*plan), height_of(*guessed));
    const int64_t granules = height_of(*plan) / 2048;
    std::vector<int64_t> of_operands, of_results;
    for (const Task& task : plan->tasks) {
      if (task.panel_rows == 0 || task.produced.empty()) continue;
      const Register& made = plan->registers[static_cast<size_t>(task.produced[0])];
      if (made.info.format != Format::kSparse) continue;
      const int64_t entries = (made.bytes - 8 * (made.info.shape.rows + 1)) / kEntryBytes;
      (task.kind == TaskKind::kUnpack ? of_operands : of_results).push_back(entries);
    }
    const int64_t of_x = granules * kHalf, of_y = kHalf + (granules - 1) * 10;
    EXPECT_EQ(of_operands, (std::vector<int64_t>{of_x, of_y}));
    const bool is_product = std::string_view(op) == "*";
    const int64_t of_sum = std::min(of_x + of_y, 2048 * granules * kColumns);
    EXPECT_EQ(of_results, (std::vector<int64_t>{is_product ? of_y : of_sum})) << op;
  }
}

// Of few rows that are long, a pass that reduces nothing takes some at a time; one that reduces, a granule.
TEST(PanelPlanTest, LongRowsAreCutBetweenGranules) {
  constexpr int64_t kLong = 50000;  // 400 kB a row; a granule is 64 rows.
  for (const int64_t rows : {50, 300}) {
    GraphUnderTest g;
    const NodeId x = g.Variable("X", MatrixOf(rows, kLong));
    const NodeId doubled = g.Op("+", {x, x}, MatrixOf(rows, kLong));
    g.Assign("s", g.Op("rowSums", {doubled}, MatrixOf(rows, 1)));
    const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_LE(plan->peak_bytes[0], 20 << 20);
    int64_t height = 0;
    for (const Task& task : plan->tasks) height = std::max(height, task.panel_rows);
    EXPECT_GT(height, 0);
    EXPECT_LT(height, 16);
    EXPECT_TRUE(CheckLive(*plan).ok());
  }
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(300, kLong));
  g.Assign("s", g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  const Result<Plan> plan = InMemory(g.graph, 120 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  for (const Task& task : plan->tasks) EXPECT_EQ(task.panel_rows % 64, 0);
}

// t(X) of a tall X: some rows of the result for each panel, however few there are.
TEST(PanelPlanTest, TheTransposedOfATallMatrixIsCutIntoFewRows) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(200000, 50));
  const NodeId y = g.Op("t", {x}, MatrixOf(50, 200000));
  g.Assign("Y", y);
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_EQ(plan->staged.size(), 1u);
  const std::vector<int64_t>& cuts = plan->staged[0].result_rows.cuts;
  ASSERT_GE(cuts.size(), 17u);
  for (size_t i = 1; i < cuts.size(); ++i) EXPECT_LE(cuts[i] - cuts[i - 1], 4);
  EXPECT_EQ(cuts.back(), 50);
}

// Panels are granules, and a plan in panels has the text of any other.
TEST(PanelPlanTest, PanelsAreMultiplesOfTheGranule) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("s", g.Op("sum", {x}, ValueInfo::OfScalar(ValueType::kDouble)));
  const Result<Plan> plan = InMemory(g.graph, 20 << 20, {"X"});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  for (const Task& task : plan->tasks) EXPECT_EQ(task.panel_rows % 2048, 0);
  const Result<Plan> parsed = Plan::Parse(plan->ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->ToText(), plan->ToText());
}

// Three ranks that have an uneven share of the rows of X, in panels.
Result<Plan> OfThreeRanks(const Graph& graph, std::vector<int64_t> cuts,
                          std::map<std::string, Distribution> live_out = {}) {
  ScheduleOptions options;
  options.ranks = 3;
  options.min_distributed_bytes = 0;
  options.memory_bytes = 20 << 20;
  options.in_panels = true;
  options.panelled = {"X"};
  options.live_out = std::move(live_out);
  return Schedule(graph, {{"X", {.kind = Distribution::Kind::kSplit, .split = {.cuts = std::move(cuts)}}}},
                  options);
}

// A rank of very many would have a single panel: its operands are what they are without panels.
TEST(PanelPlanTest, StagesOfVeryManyRanksAreNotInPanels) {
  GraphUnderTest g;
  const std::vector<ValueInfo> infos = {MatrixOf(100'000'000, kColumns)};
  const NodeId rev = g.Op("rev", {g.Variable("X", infos[0])}, infos[0]);
  const auto panels_of = [&](int32_t ranks) -> int64_t {
    const Split rows = Distribution::SplitRows(infos[0].shape.rows, ranks).split;
    const StagedNode staged{.node = rev, .form = 0, .rows = rows, .result_rows = rows};
    const std::optional<StagedPanels> stages =
        StagesInPanels(staged, g.graph[rev], infos, ranks, /*least_bytes=*/1, /*most_held=*/1);
    return stages ? static_cast<int64_t>(stages->rows.cuts.size() - 1) / ranks : 0;
  };
  EXPECT_EQ(panels_of(3), 85);
  EXPECT_EQ(panels_of(128), 2);
  EXPECT_EQ(panels_of(129), 0);
  EXPECT_EQ(panels_of(300), 0);
}

int64_t CountWhole(const Plan& plan) {
  return std::count_if(plan.tasks.begin(), plan.tasks.end(), [&](const Task& task) {
    return task.phase == Phase::kGather && task.kind == TaskKind::kCompute &&
           plan.registers[static_cast<size_t>(task.produced[0])].bytes > 0;
  });
}

// Each panel of a rank is what a rank is without panels; what they make for those of other ranks goes there
// part by part.
TEST(PanelPlanTest, StagesOfSeveralRanksActPanelByPanel) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("Y", g.Op("rev", {x}, MatrixOf(kRows, kColumns)));
  const Result<Plan> plan = OfThreeRanks(g.graph, {0, 49'152, 49'152, kRows});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_EQ(plan->staged.size(), 1u);
  const Split& rows = plan->staged[0].rows;
  const auto panels = static_cast<int64_t>(rows.cuts.size() - 1) / 3;
  EXPECT_GE(panels, 8);
  EXPECT_EQ(rows.cuts[static_cast<size_t>(panels)], 49'152);
  EXPECT_EQ(rows.cuts[static_cast<size_t>(2 * panels)], 49'152);
  for (const int64_t cut : rows.cuts) EXPECT_TRUE(cut % 2048 == 0 || cut == kRows) << cut;
  int64_t spread = 0, collect = 0;
  for (const Task& task : plan->tasks) {
    if (task.panel_rows > 0) continue;
    spread += task.kind == TaskKind::kUnpack && task.rate == panels * panels;
    collect += task.kind == TaskKind::kAccumulate && task.phase == Phase::kPanels;
  }
  EXPECT_EQ(spread, 6);
  EXPECT_EQ(collect, 6);
  EXPECT_EQ(CountWhole(*plan), 0);
  for (const int64_t peak : plan->peak_bytes) EXPECT_LE(peak, 20 << 20);
  EXPECT_TRUE(CheckLive(*plan).ok());
  for (const NodeId assign : AssignsOfPanels(*plan)) EXPECT_TRUE(plan->graph[assign].Is("assign"));
  EXPECT_EQ(AssignsOfPanels(*plan).size(), 3u);
}

// What an operator works with is not counted of whole values, nor of copies of what it makes.
TEST(PanelPlanTest, WorkingMemoryIsThatOfAPanel) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("Y", g.Op("order", {x}, MatrixOf(kRows, kColumns)));
  const Result<Plan> plan = OfThreeRanks(g.graph, {0, 32'768, 65'536, kRows});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  for (const Task& task : plan->tasks)
    EXPECT_EQ(WorkingBytesOf(*plan, task), 0) << Name(task.kind) << " " << Name(task.phase);
}

// Rows that have to be on another rank go there in panels, and are panels there.
TEST(PanelPlanTest, RowsGoToOtherRanksInPanels) {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(kRows, kColumns));
  g.Assign("Y", x);
  for (const Distribution& wanted :
       {Distribution::SplitRows(kRows, 3), Distribution::One(2), Distribution::Each()}) {
    const Result<Plan> plan = OfThreeRanks(g.graph, {0, 8192, 16'384, kRows}, {{"Y", wanted}});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_GT(CountCollecting(*plan, Phase::kPanels), 0) << wanted.ToText();
    EXPECT_EQ(CountWhole(*plan), 0) << wanted.ToText();
    for (const int64_t peak : plan->peak_bytes) EXPECT_LE(peak, 20 << 20);
    EXPECT_TRUE(CheckLive(*plan).ok());
  }
}

}  // namespace
}  // namespace heddle::scheduler

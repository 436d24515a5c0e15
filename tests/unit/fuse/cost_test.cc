// SPDX-License-Identifier: Apache-2.0
// What operators cost that several ranks compute, and what fits into their memory. Expected values are
// written out from the sizes.
#include "compiler/fuse/cost.h"

#include <gtest/gtest.h>

#include "compiler/fuse/plan_cost.h"
#include "tests/unit/fuse/graph_maker.h"

namespace heddle::compiler::fusion {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kMinBytes = int64_t{8} << 20;

// The operators of a block when all points of its partitions are 0, under a model for four ranks.
struct Block {
  explicit Block(Graph block, const IsSplitVariable& is_split = {}, double sparsity = 1)
      : graph(std::move(block)), dag(MakeDag(graph, [sparsity](std::string_view) { return sparsity; })) {
    MarkSplit(kRanks, kMinBytes, is_split, &dag);
    memo = Explore(dag);
    Prune(dag, &memo);
    partitions = FindPartitions(dag, memo);
  }
  std::vector<PlannedOperator> Operators(int ranks = kRanks, int64_t memory_budget = 0,
                                         bool stitches = false) const {
    const CostModel model{.constants = ops::BuiltInConstants(kThreads),
                          .memory_budget = memory_budget,
                          .threads = kThreads,
                          .ranks = ranks,
                          .min_distributed_bytes = kMinBytes};
    std::vector<PlannedOperator> operators;
    for (const Partition& partition : partitions) {
      PlanCost cost(dag, memo, partition, model);
      cost.CountStitches(stitches);
      for (PlannedOperator& planned : cost.Operators(Assignment(partition.points.size(), 0)))
        operators.push_back(std::move(planned));
    }
    return operators;
  }
  // Bytes that all operators together pay for, sent one after the other.
  double SentBytes() const {
    const ops::MachineConstants constants = ops::BuiltInConstants(kThreads);
    double sent = 0;
    for (const PlannedOperator& planned : Operators()) {
      const OperatorTime& time = planned.time;
      const double work =
          (time.write + std::max(time.read, time.compute)) / (planned.work.split ? kRanks : 1);
      sent += (time.total - work - constants.operator_ns) * constants.links.bytes_per_ns;
    }
    return sent;
  }
  bool Fits(int64_t memory_budget, int ranks = 1) const {
    double total = 0;
    for (const PlannedOperator& planned : Operators(ranks, memory_budget)) total += planned.time.total;
    return total < kInfeasibleNs;
  }

  static constexpr int kThreads = 4;
  Graph graph;
  Dag dag;
  Memo memo;
  std::vector<Partition> partitions;
};

// exp(X %*% B): B has as many rows as X, and every row of X needs all of it.
TEST(CostTest, ASquareRightSideIsCopiedToEveryRank) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 2000, 2000), b = make.Matrix("B", 2000, 20);
  make.Assign("y", make.Add("exp", {make.Add("%*%", {x, b})}));
  EXPECT_NEAR(Block(make.graph()).SentBytes(), 8 * 2000 * 20 * (kRanks - 1), 1);
  const auto b_is_split = [](std::string_view name) { return name == "B"; };
  EXPECT_NEAR(Block(make.graph(), b_is_split).SentBytes(), 8 * 2000 * 20 * (kRanks - 1) / kRanks, 1)
      << "every rank sends its own rows of it";
}

// t(X) %*% exp(Y): rank 0 has its own partial result.
TEST(CostTest, PartialResultsOfOtherRanksAreSent) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 100'000, 20), y = make.Matrix("Y", 100'000, 30);
  make.Assign("z", make.Add("t%*%", {x, make.Add("exp", {y})}));
  EXPECT_NEAR(Block(make.graph()).SentBytes(), 8 * 20 * 30 * (kRanks - 1), 0.01);
}

// 2 MB of CSR are 800 MB of cells.
TEST(CostTest, WhatIsSplitFollowsDenseBytes) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 100'000, 1000, Format::kSparse),
               y = make.Matrix("Y", 1000, 1000, Format::kSparse);
  make.Assign("a", make.Add("sum", {make.Add("*", {x, x})}));
  make.Assign("b", make.Add("sum", {make.Add("*", {y, y})}));
  const std::vector<PlannedOperator> operators = Block(make.graph(), {}, 0.001).Operators();
  ASSERT_EQ(operators.size(), 2u);
  EXPECT_TRUE(operators[0].work.split);
  EXPECT_FALSE(operators[1].work.split) << "8,000,000 bytes are too few";
}

// A small live-in of which every rank has its rows stays so.
TEST(CostTest, WhatIsSplitStaysSplit) {
  GraphMaker make;
  make.Assign("a", make.Add("sum", {make.Add("exp", {make.Matrix("X", 1000, 10)})}));
  EXPECT_FALSE(Block(make.graph()).Operators()[0].work.split);
  EXPECT_TRUE(Block(make.graph(), [](std::string_view) { return true; }).Operators()[0].work.split);
}

// Both operators compute X %*% V inside, the block sends V to the other ranks once; so do blocks with two
// products.
TEST(CostTest, CopiesAreSentOnce) {
  const double copies = 8.0 * 100 * 10 * (kRanks - 1);
  GraphMaker twice_computed;
  {
    const NodeId product = twice_computed.Add(
        "%*%", {twice_computed.Matrix("X", 1'000'000, 100), twice_computed.Matrix("V", 100, 10)});
    twice_computed.Assign("a", twice_computed.Add("exp", {product}));
    twice_computed.Assign("b", twice_computed.Add("abs", {product}));
  }
  const Block block(twice_computed.graph());
  ASSERT_EQ(block.Operators().size(), 2u);
  EXPECT_EQ(block.Operators()[0].covered.size(), 2u);
  EXPECT_NEAR(block.SentBytes(), copies, 1);
  GraphMaker two_products;
  {
    const NodeId v = two_products.Matrix("V", 100, 10);
    for (const char* name : {"X", "Y"})
      two_products.Assign(
          name,
          two_products.Add("exp", {two_products.Add("%*%", {two_products.Matrix(name, 1'000'000, 100), v})}));
  }
  EXPECT_NEAR(Block(two_products.graph()).SentBytes(), copies, 1);
}

TEST(CostTest, EveryRootOfAStitchSendsItsResult) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 1'000'000, 10), y = make.Matrix("Y", 1'000'000, 10);
  const NodeId shared = make.Add("exp", {x});
  make.Assign("a", make.Add("sum", {make.Add("*", {shared, x})}));
  make.Assign("b", make.Add("sum", {make.Add("*", {shared, y})}));
  make.Assign("c", make.Add("max", {shared}));
  const std::vector<PlannedOperator> operators = Block(make.graph()).Operators(kRanks, 0, /*stitches=*/true);
  ASSERT_EQ(operators.size(), 1u);
  ASSERT_EQ(operators[0].work.roots.size(), 3u);
  const OperatorTime& time = operators[0].time;
  const ops::MachineConstants constants = ops::BuiltInConstants(Block::kThreads);
  const double sent_ns =
      time.total - constants.operator_ns - (time.write + std::max(time.read, time.compute)) / kRanks;
  EXPECT_NEAR(sent_ns * constants.links.bytes_per_ns, 3 * 8 * (kRanks - 1), 0.01);
}

// Y = exp(X) + 1 of 800 MB: 1.6 GB on one rank, a quarter of it on each of four.
TEST(CostTest, ARankHoldsItsOwnRows) {
  GraphMaker make;
  make.Assign("y", make.Add("+", {make.Add("exp", {make.Matrix("X", 1'000'000, 100)}), make.Literal(1.0)}));
  const Block block(make.graph());
  EXPECT_FALSE(block.Fits(1'500'000'000));
  EXPECT_TRUE(block.Fits(1'700'000'000));
  EXPECT_TRUE(block.Fits(410'000'000, kRanks));
  EXPECT_FALSE(block.Fits(390'000'000, kRanks));
}

// t(X) %*% exp(Y): inputs of 163.2 MB, a result of 640 kB. Panels of 256 rows are 40 leaves, each a task: a
// payload for every task, two for each of four threads beside its tile.
TEST(CostTest, PayloadsOfThreadsAndTasksCount) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 10'000, 2000), y = make.Matrix("Y", 10'000, 40);
  make.Assign("z", make.Add("t%*%", {x, make.Add("exp", {y})}));
  const Block block(make.graph());
  ASSERT_EQ(block.Operators().size(), 1u);
  const int64_t bytes = 163'200'000 + 640'000 * (1 + 40 + 4 * 2) + 4 * (64 << 10);
  EXPECT_FALSE(block.Fits(bytes - 1));
  EXPECT_TRUE(block.Fits(bytes));
}

// exp(X) %*% B: 16 + 8 + 16 MB, 8 MB of packed B, and for each of four threads a block of 144 rows of exp(X)
// and of the product beside a tile.
TEST(CostTest, PackedOperandsAndTilesCount) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 2000, 1000), b = make.Matrix("B", 1000, 1000);
  make.Assign("y", make.Add("%*%", {make.Add("exp", {x}), b}));
  const Block block(make.graph());
  ASSERT_EQ(block.Operators().size(), 1u);
  const int64_t bytes = 48'000'000 + 4 * (144 * 2000 * 8 + (64 << 10));
  EXPECT_FALSE(block.Fits(bytes - 1));
  EXPECT_TRUE(block.Fits(bytes));
}

// sum((X %*% B - Y)^2): one operator as long as B, which every tile reads, has at most 32 MB; else the
// product is one of its own.
TEST(CostTest, ProductsOfLargeOperandsStayAlone) {
  for (const int64_t inner : {2048, 2049}) {
    GraphMaker make;
    const NodeId x = make.Matrix("X", 4000, inner), b = make.Matrix("B", inner, 2048),
                 y = make.Matrix("Y", 4000, 2048);
    const NodeId error = make.Add("-", {make.Add("%*%", {x, b}), y});
    make.Assign("s", make.Add("sum", {make.Add("*", {error, error})}));
    const Block block(make.graph());
    ASSERT_EQ(block.Operators().size(), 1u);
    EXPECT_EQ(block.Operators()[0].covered.size(), inner == 2048 ? 4u : 3u);
  }
}

// rowSums(exp(S - rowMaxs(S))) of a sparse S: exp is computed at the entries and once for the rest of a row.
TEST(CostTest, AFunctionThatIsEqualInTheRestOfARowCostsItsEntries) {
  const auto compute_of = [](double sparsity, bool by_columns) {
    GraphMaker make;
    const NodeId s = make.Matrix("S", 100'000, 1000, Format::kSparse);
    const NodeId shift = by_columns ? make.Matrix("c", 1, 1000) : make.Add("rowMaxs", {s});
    make.Assign("y", make.Add("rowSums", {make.Add("exp", {make.Add("-", {s, shift})})}));
    double compute = 0;
    for (const PlannedOperator& planned : Block(make.graph(), {}, sparsity).Operators(1))
      compute += planned.time.compute;
    return compute;
  };
  EXPECT_LT(compute_of(0.001, false), 0.1 * compute_of(0.001, true)) << "a row vector differs everywhere";
  EXPECT_LT(compute_of(0.001, false), compute_of(0.01, false));
}

// Phases over long rows keep the functions of the rows that are worked on at once: softmax of 100 rows of
// 1e7 columns.
TEST(CostTest, WhatPhasesOfLongRowsKeepIsMemory) {
  const auto make_graph = [](bool kept) {
    GraphMaker make;
    const NodeId x = make.Matrix("X", 100, 10'000'000);
    const NodeId shifted = make.Add("-", {x, make.Add("rowMaxs", {x})});
    const NodeId values = make.Add(kept ? "exp" : "abs", {shifted});
    make.Assign("y", make.Add("/", {values, make.Add("rowSums", {values})}));
    return make.graph();
  };
  // The matrix, the result, and some for tiles; then a row of exponentials more.
  const int64_t both = int64_t{2} * 8 * 100 * 10'000'000 + (int64_t{4} << 20);
  EXPECT_TRUE(Block(make_graph(false)).Fits(both));
  EXPECT_FALSE(Block(make_graph(true)).Fits(both));
  EXPECT_TRUE(Block(make_graph(true)).Fits(both + 8 * 10'000'000));
}

}  // namespace
}  // namespace heddle::compiler::fusion

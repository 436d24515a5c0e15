// SPDX-License-Identifier: Apache-2.0
// Which operators of a plan become one pass over their rows.
#include "compiler/fuse/stitch.h"

#include <algorithm>
#include <utility>

#include "compiler/fuse/fuse.h"
#include "compiler/fuse/plan_cost.h"
#include "ops/fused/fused.h"
#include "tests/unit/fuse/graph_maker.h"
#include "tests/unit/fuse/meaning.h"

namespace heddle::compiler {
namespace {

constexpr int64_t kRows = 1'000'000;

std::vector<FusedOperator> OperatorsOf(const Graph& graph, FusionMode mode = FusionMode::kCost) {
  FuseOptions options;
  options.mode = mode;
  options.can_run = ops::CanRunFused;
  const Result<Graph> fused = Fuse(graph, options, nullptr);
  EXPECT_TRUE(fused.ok()) << fused.status().ToString();
  Meaning meaning;
  EXPECT_EQ(meaning.Of(*fused), meaning.Of(graph)) << fused->ToText();
  std::vector<FusedOperator> operators;
  for (const Node& node : WithoutPhases(*fused).nodes)
    if (IsFused(node)) operators.push_back(*node.fused);
  return operators;
}

std::vector<std::string> RootsOf(const FusedOperator& fused) {
  std::vector<std::string> roots;
  for (NodeId root : fused.roots) roots.push_back(fused.body[root].op);
  return roots;
}

// One round of k-means: neither distances nor assignments are written.
TEST(StitchTest, ARoundOfKMeansIsOnePass) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", kRows, 20), centres = make.Matrix("C", 20, 10),
               norms = make.Matrix("n", 1, 10);
  const NodeId distances =
      make.Add("+", {make.Add("*", {make.Literal(-2.0), make.Add("%*%", {x, centres})}), norms});
  const NodeId nearest = make.Add("rowMins", {distances});
  const NodeId chosen = make.Add("<=", {distances, nearest});
  const NodeId shares = make.Add("/", {chosen, make.Add("rowSums", {chosen})});
  make.Assign("w", make.Add("sum", {nearest}));
  make.Assign("s", make.Add("colSums", {shares}));
  make.Assign("c", make.Add("t%*%", {shares, x}));
  const std::vector<FusedOperator> operators = OperatorsOf(make.graph());
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(operators[0].kind, FusionTemplate::kStitch);
  EXPECT_EQ(RootsOf(operators[0]), (std::vector<std::string>{"sum", "colSums", "t%*%"}));
}

// What a value that is read outside, too, is made of is computed once.
TEST(StitchTest, AValueThatIsReadOutsideIsAResult) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", kRows, 20), y = make.Matrix("Y", kRows, 20);
  const NodeId difference = make.Add("exp", {make.Add("-", {x, y})});
  make.Assign("D", difference);
  make.Assign("r", make.Add("rowSums", {make.Add("*", {difference, x})}));
  make.Assign("c", make.Add("colSums", {make.Add("*", {difference, y})}));
  const std::vector<FusedOperator> operators = OperatorsOf(make.graph());
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(RootsOf(operators[0]), (std::vector<std::string>{"exp", "rowSums", "colSums"}));
}

// The means are there when all rows have been seen: a second pass.
TEST(StitchTest, AReductionThatRowsNeedEndsAPass) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", kRows, 20);
  const NodeId centred = make.Add("-", {x, make.Add("colMeans", {x})});
  make.Assign("Z", centred);
  make.Assign("v", make.Add("colSums", {make.Add("*", {centred, centred})}));
  const std::vector<FusedOperator> operators = OperatorsOf(make.graph());
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(RootsOf(operators[0]), (std::vector<std::string>{"-", "colSums"}));
}

// Two parts over the same rows, one of which needs a product that needs the other.
TEST(StitchTest, NoWayLeadsOutAndBackIn) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", kRows, 20), w = make.Matrix("W", 20, 1);
  const NodeId gradient = make.Add("t%*%", {x, make.Add("exp", {make.Add("%*%", {x, w})})});
  const NodeId moved = make.Add("%*%", {x, gradient});
  make.Assign("l", make.Add("sum", {make.Add("*", {moved, moved})}));
  make.Assign("m", moved);
  for (const FusionMode mode : {FusionMode::kCost, FusionMode::kAll}) {
    const std::vector<FusedOperator> operators = OperatorsOf(make.graph(), mode);
    ASSERT_EQ(operators.size(), 2u);
  }
}

TEST(StitchTest, SmallDataAreNotWorthAPass) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", 100, 20);
  make.Assign("s", make.Add("sum", {make.Add("exp", {x})}));
  make.Assign("c", make.Add("colSums", {make.Add("*", {x, x})}));
  EXPECT_EQ(OperatorsOf(make.graph()).size(), 2u);
  EXPECT_EQ(OperatorsOf(make.graph(), FusionMode::kAll).size(), 1u);
}

// Full aggregates of one shape need no rows: along the entries of a CSR matrix, in one long row, and on
// little data, where all that is saved is to start two operators.
TEST(StitchTest, FullAggregatesOfOneInputAreOneOperator) {
  const auto sums = [](Shape shape, Format format) {
    GraphMaker make;
    const NodeId x = make.Matrix("X", shape.rows, shape.columns, format),
                 y = make.Matrix("Y", shape.rows, shape.columns),
                 z = make.Matrix("Z", shape.rows, shape.columns);
    make.Assign("a", make.Add("sum", {make.Add("*", {x, y})}));
    make.Assign("b", make.Add("sum", {make.Add("*", {x, z})}));
    return make.graph();
  };
  for (const auto& [shape, format] :
       {std::pair(Shape{kRows, 20}, Format::kSparse), std::pair(Shape{1, 10'000'000}, Format::kDense),
        std::pair(Shape{100, 20}, Format::kDense)}) {
    const std::vector<FusedOperator> operators = OperatorsOf(sums(shape, format));
    ASSERT_EQ(operators.size(), 1u) << shape.rows;
    EXPECT_EQ(operators[0].kind, FusionTemplate::kMultiAggregate);
  }
}

// Of four aggregates three would be a multi-aggregate; over rows all four are one pass.
TEST(StitchTest, MoreAggregatesThanAMultiAggregateHoldsArePassesOverRows) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", kRows, 20);
  for (const char* op : {"sum", "min", "max"}) make.Assign(op, make.Add(op, {x}));
  make.Assign("squares", make.Add("sum", {make.Add("*", {x, x})}));
  const std::vector<FusedOperator> operators = OperatorsOf(make.graph());
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(operators[0].kind, FusionTemplate::kStitch);
  EXPECT_EQ(operators[0].roots.size(), 4u);
}

// Two products that walk the entries of different CSR matrices read one dense matrix: a pass of both saves
// one reading of it and one start, but walks all entries.
TEST(StitchTest, APassDoesNotSaveTheWalksOfItsMembers) {
  GraphMaker make;
  const NodeId u = make.Matrix("U", kRows, 12);
  for (const char* name : {"S", "T"})
    make.Assign(name, make.Add("t%*%", {u, make.Matrix(name, kRows, 2000, Format::kSparse)}));
  const fusion::Dag dag = fusion::MakeDag(make.graph(), [](std::string_view) { return 0.001; });
  fusion::Memo memo = fusion::Explore(dag);
  fusion::Prune(dag, &memo);
  const std::vector<fusion::Partition> partitions = fusion::FindPartitions(dag, memo);
  ASSERT_EQ(partitions.size(), 1u);
  const fusion::CostModel model{.constants = ops::BuiltInConstants(2)};
  fusion::PlanCost cost(dag, memo, partitions[0], model);
  const fusion::Assignment none(partitions[0].points.size(), 0);
  ASSERT_TRUE(cost.counts_stitches());
  const double stitched = cost.Cost(none);
  cost.CountStitches(false);
  const double saved = cost.Cost(none) - stitched;
  EXPECT_GT(saved, 0);
  EXPECT_LE(saved, dag[u].bytes / model.constants.read_bytes_per_ns + model.constants.operator_ns + 1);
}

TEST(StitchTest, OtherHeightsStayApart) {
  GraphMaker make;
  const NodeId x = make.Matrix("X", kRows, 20), y = make.Matrix("Y", kRows / 2, 20);
  make.Assign("s", make.Add("sum", {make.Add("exp", {x})}));
  make.Assign("c", make.Add("colSums", {make.Add("*", {y, y})}));
  EXPECT_EQ(OperatorsOf(make.graph(), FusionMode::kAll).size(), 2u);
}

}  // namespace
}  // namespace heddle::compiler

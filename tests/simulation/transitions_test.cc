// SPDX-License-Identifier: Apache-2.0
// Values that go from one distribution to another, and reductions that are finished in parts, with the real
// kernels in every interleaving tried: each rank has in the end the cells that it is to have, on any number
// of ranks, also where some have no rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "actor/simulation.h"
#include "core/environment/random.h"
#include "ops/base/operator.h"
#include "ops/frame/row_pieces.h"
#include "scheduler/schedule.h"
#include "tests/support/seeds.h"

namespace heddle::actor {
namespace {

using Pieces = std::vector<std::map<std::string, Value>>;  // By rank: variables.

NodeId Add(Graph* graph, const std::string& op, std::vector<NodeId> inputs, const ValueInfo& info,
           const std::string& name = "") {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.info = info;
  if (!name.empty()) node.SetAttribute("name", Scalar(name));
  return graph->Add(std::move(node));
}

Matrix Random(int64_t rows, int64_t columns, SeededRandom& random) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < matrix.cells(); ++i)
    matrix.mutable_data()[i] = static_cast<double>(random.Below(2'000'001)) / 1e6 - 1;
  return matrix;
}

Distribution At(int64_t rows, int32_t ranks, SeededRandom& random) {
  std::vector<int64_t> cuts = {0, rows};
  for (int32_t rank = 1; rank < ranks; ++rank)
    cuts.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(rows) + 1)));
  std::sort(cuts.begin(), cuts.end());
  return {.kind = Distribution::Kind::kSplit, .split = {.cuts = std::move(cuts)}};
}

Distribution RandomDistribution(int64_t rows, int32_t ranks, SeededRandom& random) {
  switch (random.Below(4)) {
    case 0: return Distribution::One(static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks))));
    case 1: return Distribution::Each();
    case 2: return Distribution::SplitRows(rows, ranks);
    default: return At(rows, ranks, random);
  }
}

Value PieceOf(const Value& whole, const Distribution& where, int32_t rank) {
  return where.IsSplit() ? *ops::SliceRows(whole, where.split.Begin(rank), where.split.End(rank)) : whole;
}

void Place(const std::string& name, const Value& whole, const Distribution& where, Pieces* pieces) {
  for (size_t rank = 0; rank < pieces->size(); ++rank)
    if (where.IsHeldBy(static_cast<int32_t>(rank)))
      (*pieces)[rank][name] = PieceOf(whole, where, static_cast<int32_t>(rank));
}

// What every rank has of the live-outs after a run.
Pieces RunPlan(const Plan& plan, const Pieces& live_in, uint64_t seed) {
  static ops::KernelContext context;
  auto simulation = Simulation::Create(std::make_shared<const Plan>(plan), [](const PlanInstance& instance) {
    return std::make_unique<KernelBody>(instance, ops::CatalogKernels(), context);
  });
  EXPECT_TRUE(simulation.ok()) << simulation.status().ToString();
  Pieces live_out(live_in.size());
  if (!simulation.ok()) return live_out;
  const auto body = [&](size_t rank) -> KernelBody& {
    return static_cast<KernelBody&>((*simulation)->body(static_cast<uint32_t>(rank)));
  };
  for (size_t rank = 0; rank < live_in.size(); ++rank) EXPECT_TRUE(body(rank).Begin(live_in[rank]).ok());
  const Status run = (*simulation)->Run(1, {.seed = seed});
  EXPECT_TRUE(run.ok()) << run.ToString();
  std::map<std::string, FoundSize> sizes;
  for (size_t rank = 0; rank < live_in.size(); ++rank) body(rank).TakeResults(&live_out[rank], &sizes);
  return live_out;
}

void ExpectPieces(const Pieces& pieces, const std::string& name, const Value& whole,
                  const Distribution& where) {
  for (size_t rank = 0; rank < pieces.size(); ++rank) {
    if (!where.IsHeldBy(static_cast<int32_t>(rank))) continue;
    const Value expected = PieceOf(whole, where, static_cast<int32_t>(rank));
    const auto found = pieces[rank].find(name);
    ASSERT_TRUE(found != pieces[rank].end() && found->second.IsMatrix()) << name << " on " << rank;
    EXPECT_EQ(found->second.matrix().shape(), expected.matrix().shape()) << name << " on " << rank;
    ASSERT_TRUE(Matrix::SameCells(found->second.matrix(), expected.matrix())) << name << " on " << rank;
  }
}

void MoveOnce(const Value& whole, const Distribution& from, const Distribution& to, int32_t ranks,
              uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << from.ToText() << " to " << to.ToText() << ", "
                                  << ranks << " ranks");
  Graph graph;
  const ValueInfo info = ValueInfo::OfMatrix(whole.matrix().shape());
  Add(&graph, "assign", {Add(&graph, "variable", {}, info, "X")}, info, "Y");
  const Result<Plan> plan =
      scheduler::Schedule(graph, {{"X", from}}, {.ranks = ranks, .live_out = {{"Y", to}}});
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  Pieces live_in(static_cast<size_t>(ranks));
  Place("X", whole, from, &live_in);
  ExpectPieces(RunPlan(*plan, live_in, seed), "Y", whole, to);
}

TEST(TransitionsTest, EveryRankHasTheCellsThatItIsToHave) {
  const testing_support::Seeds seeds = testing_support::SeedsOf(150);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SeededRandom random(seed);
    const auto ranks = 1 + static_cast<int32_t>(random.Below(9));
    const auto rows = static_cast<int64_t>(random.Below(2) == 0 ? random.Below(9) : random.Below(3000));
    const Value whole(Random(rows, 1 + static_cast<int64_t>(random.Below(5)), random));
    const Distribution from = ranks == 1 ? Distribution::One() : RandomDistribution(rows, ranks, random);
    MoveOnce(whole, from, RandomDistribution(rows, ranks, random), ranks, seed);
  }
}

// Values of which ranks hand on chunks, or gather by doubling.
TEST(TransitionsTest, LargeValues) {
  const testing_support::Seeds seeds = testing_support::SeedsOf(12);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SeededRandom random(seed);
    const bool is_chunked = seed % 2 == 0;
    const auto ranks = static_cast<int32_t>(is_chunked ? 2 + random.Below(8) : 17 + random.Below(9));
    const auto rows = static_cast<int64_t>((is_chunked ? 20'000 : 3'000) + random.Below(3'000));
    const Value whole(Random(rows, is_chunked ? 60 : 50, random));
    const auto root = static_cast<int32_t>(random.Below(static_cast<uint64_t>(ranks)));
    const Distribution from = is_chunked             ? Distribution::One(root)
                              : random.Below(2) == 0 ? At(rows, ranks, random)
                                                     : Distribution::SplitRows(rows, ranks);
    MoveOnce(whole, from, Distribution::Each(), ranks, seed);
  }
}

// Large results of all rows, in whatever distribution they are wanted.
TEST(TransitionsTest, ReductionsInParts) {
  constexpr int32_t kRanks[] = {2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 20, 35};
  size_t in_parts = 0;
  const testing_support::Seeds seeds = testing_support::SeedsOf(36);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SeededRandom random(seed);
    const int32_t ranks = kRanks[seed % 12];
    const auto rows = static_cast<int64_t>(65 + random.Below(seed % 3 == 0 ? 200 : 3000));
    const auto kind = random.Below(3);
    const int64_t columns = kind == 0   ? 40'000 + static_cast<int64_t>(random.Below(9))
                            : kind == 1 ? 290 + static_cast<int64_t>(random.Below(40))
                                        : 600;
    const int64_t height = kind == 0 ? 65 + rows % 64 : rows;
    const Value x(Random(height, columns, random)), y(Random(height, 90, random));
    Graph graph;
    const ValueInfo info = ValueInfo::OfMatrix(x.matrix().shape());
    const NodeId left = Add(&graph, "variable", {}, info, "X"),
                 right = Add(&graph, "variable", {}, ValueInfo::OfMatrix(y.matrix().shape()), "Y");
    NodeId made = kNoNode;
    if (kind == 0) made = Add(&graph, "colSums", {left}, ValueInfo::OfMatrix({1, columns}));
    if (kind == 1) made = Add(&graph, "t%*%", {left, left}, ValueInfo::OfMatrix({columns, columns}));
    if (kind == 2) made = Add(&graph, "t%*%", {left, right}, ValueInfo::OfMatrix({columns, 90}));
    Add(&graph, "assign", {made}, graph[made].info, "S");
    const Distribution to = RandomDistribution(graph[made].info.shape.rows, ranks, random);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", kind " << kind << ", " << ranks << " ranks, to "
                                    << to.ToText());
    std::vector<ValueInfo> infos;
    std::vector<const Value*> inputs;
    for (const NodeId input : graph[made].inputs) {
      infos.push_back(graph[input].info);
      inputs.push_back(input == left ? &x : &y);
    }
    ops::KernelContext context;
    const Result<Value> whole = ops::CatalogKernels().Run({.node = graph[made],
                                                           .phase = Phase::kWhole,
                                                           .inputs = inputs,
                                                           .input_infos = infos,
                                                           .context = context});
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    const Distribution from = Distribution::SplitRows(height, ranks);
    ops::MachineConstants constants = ops::BuiltInConstants(1);
    constants.links.bytes_per_ns = 0.001;  // Bytes cost more than messages.
    const Result<Plan> plan = scheduler::Schedule(
        graph, {{"X", from}, {"Y", from}},
        {.ranks = ranks, .min_distributed_bytes = 0, .constants = constants, .live_out = {{"S", to}}});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    in_parts += plan->staged.size();
    Pieces live_in(static_cast<size_t>(ranks));
    Place("X", x, from, &live_in);
    Place("Y", y, from, &live_in);
    ExpectPieces(RunPlan(*plan, live_in, seed), "S", *whole, to);
  }
  EXPECT_GE(in_parts, seeds.count() * 2 / 3);  // Where one rank has nearly all rows, it has the result, too.
}

}  // namespace
}  // namespace heddle::actor

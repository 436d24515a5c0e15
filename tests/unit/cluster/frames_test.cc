// SPDX-License-Identifier: Apache-2.0
// Frames from plan to run: every distribution, several ranks.
#include "tests/support/frames.h"

#include <gtest/gtest.h>

#include <thread>

#include "actor/in_process_link.h"
#include "actor/runtime.h"
#include "core/values/panels.h"
#include "ops/catalog.h"
#include "ops/text/text.h"
#include "scheduler/schedule.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kRows = 1000;

NodeId Add(Graph& graph, std::string op, std::vector<NodeId> inputs, std::string name, ValueInfo info) {
  Node node{.op = std::move(op), .inputs = std::move(inputs), .info = std::move(info)};
  if (!name.empty()) node.SetAttribute("name", Scalar(std::move(name)));
  return graph.Add(std::move(node));
}

// G = F; s = toString(F, rows=2000)
Graph CopyAndText(const ValueInfo& info) {
  Graph graph;
  const NodeId frame = Add(graph, "variable", {}, "F", info);
  const NodeId rows = Add(graph, "literal", {}, "", ValueInfo::OfScalar(ValueType::kInteger));
  graph[rows].SetAttribute("value", Scalar(2000));
  std::vector<NodeId> inputs(7, kNoNode);
  inputs[0] = frame;
  inputs[1] = rows;
  const NodeId text = Add(graph, "toString", inputs, "", ValueInfo::OfScalar(ValueType::kString));
  Add(graph, "assign", {frame}, "G", info);
  Add(graph, "assign", {text}, "s", graph[text].info);
  return graph;
}

std::vector<actor::RunResult> RunOnAllRanks(const std::shared_ptr<const Plan>& plan,
                                            const std::vector<std::map<std::string, Value>>& live_in) {
  const auto ranks = static_cast<uint32_t>(live_in.size());
  actor::InProcessNetwork network(ranks);
  std::vector<ops::KernelContext> contexts(ranks);
  std::vector<std::unique_ptr<actor::Runtime>> runtimes;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    runtimes.push_back(actor::Runtime::Create({.rank = rank, .threads = 1}, ops::CatalogKernels(),
                                              contexts[rank], &network.LinkOf(rank)));
    network.Attach(rank, *runtimes.back());
  }
  std::vector<actor::RunResult> results(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Result<actor::RunResult> result = runtimes[rank]->Run(plan, 1, live_in[rank]);
      EXPECT_TRUE(result.ok()) << result.status().ToString();
      if (result.ok()) results[rank] = *std::move(result);
    });
  for (std::thread& thread : threads) thread.join();
  for (uint32_t rank = 0; rank < ranks; ++rank) network.Detach(rank);
  return results;
}

TEST(FramesTest, EveryDistributionGivesTheSameCellsOnAnyNumberOfRanks) {
  const heddle::Frame frame = NumberedFrame(kRows);
  ops::TextLayout layout;
  layout.rows = 2000;
  const std::string text = ops::FrameToText(frame, layout);
  for (int ranks = 1; ranks <= 3; ++ranks) {
    for (const Distribution& home : {Distribution::One(), Distribution::SplitRows(kRows, ranks)}) {
      for (const bool known : {true, false}) {
        // Rows are cut only where their number is known.
        if (!known && home.IsSplit()) continue;
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << home.ToText() << ", known " << known);
        const ValueInfo info = known ? ValueInfo::OfFrame(kRows, frame.schema())
                                     : ValueInfo::OfDeclared(DataType::kFrame, ValueType::kUnknown);
        const Result<Plan> plan = scheduler::Schedule(CopyAndText(info), {{"F", home}}, {.ranks = ranks});
        ASSERT_TRUE(plan.ok()) << plan.status().ToString();
        std::vector<std::map<std::string, Value>> live_in(static_cast<size_t>(ranks));
        const bool split = home.IsSplit() && ranks > 1;
        for (int rank = 0; rank < ranks; ++rank) {
          if (split)
            live_in[static_cast<size_t>(rank)]["F"] =
                Value(frame.Rows(CutRow(kRows, rank, ranks), CutRow(kRows, rank + 1, ranks)));
          else if (rank == 0)
            live_in[0]["F"] = Value(frame);
        }
        const auto results = RunOnAllRanks(std::make_shared<const Plan>(*plan), live_in);
        EXPECT_EQ(results[0].live_out.at("s").scalar(), Scalar(text));
        for (int rank = 0; rank < ranks; ++rank) {
          const actor::RunResult& result = results[static_cast<size_t>(rank)];
          if (!known) {
            EXPECT_EQ(result.sizes.at("G").info, ValueInfo::OfFrame(kRows, frame.schema()));
          }
          if (!split && rank != 0) continue;
          EXPECT_TRUE(heddle::Frame::SameCells(result.live_out.at("G").frame(),
                                               live_in[static_cast<size_t>(rank)].at("F").frame()));
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle::cluster

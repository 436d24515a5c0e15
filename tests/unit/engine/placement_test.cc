// SPDX-License-Identifier: Apache-2.0
// What the cost model of fusion takes for split is what placement splits.
#include <gtest/gtest.h>

#include "compiler/fuse/dag.h"
#include "core/environment/random.h"
#include "scheduler/place.h"
#include "tests/unit/fuse/random_graph.h"

namespace heddle::engine {
namespace {

TEST(PlacementTest, TheCostModelForeseesIt) {
  int split = 0, whole = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    const Graph graph = compiler::RandomGraph(seed).Make(20);
    SeededRandom random(seed);
    std::map<std::string, Distribution> live_in;
    for (const Node& node : graph.nodes)
      if (node.Is("variable"))
        live_in[node.Text("name")] = node.info.IsScalar()   ? Distribution::Each()
                                     : random.Below(4) == 0 ? Distribution::SplitRows(node.info.shape.rows, 3)
                                                            : Distribution::One();
    const int64_t min_distributed_bytes = int64_t{1} << (16 + random.Below(8));
    const auto placements =
        scheduler::Place(graph, live_in, {.ranks = 3, .min_distributed_bytes = min_distributed_bytes});
    ASSERT_TRUE(placements.ok()) << placements.status().ToString();
    compiler::fusion::Dag dag = compiler::fusion::MakeDag(graph, {});
    const auto is_split = [&](std::string_view name) { return live_in.at(std::string(name)).IsSplit(); };
    compiler::fusion::MarkSplit(3, min_distributed_bytes, is_split, &dag);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const scheduler::Placement& placement = (*placements)[static_cast<size_t>(id)];
      ASSERT_EQ(dag[id].split, placement.result.IsSplit()) << id << "\n" << graph.ToText();
      ++(dag[id].split ? split : whole);
      if (!placement.split || placement.staged != nullptr || placement.moves_rows) continue;
      for (size_t i = 0; i < graph[id].inputs.size(); ++i) {
        if (graph[id].inputs[i] == kNoNode) continue;
        ASSERT_EQ(dag[id].by_rows[i] != 0, placement.inputs[i].IsSplit()) << id << " " << i;
      }
    }
  }
  EXPECT_GT(split, 500);
  EXPECT_GT(whole, 500);
}

}  // namespace
}  // namespace heddle::engine

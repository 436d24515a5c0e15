// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "core/programs/fused_operator.h"
#include "core/programs/plan.h"

// Left-out members have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace heddle {
namespace {

Node Variable(const char* name) {
  Node node{.op = "variable", .info = ValueInfo::OfMatrix({4, 2})};
  node.SetAttribute("name", name);
  return node;
}

Node Assign(const char* name, NodeId input) {
  Node node{.op = "assign", .inputs = {input}, .info = ValueInfo::OfMatrix({2, 4})};
  node.SetAttribute("name", name);
  return node;
}

Graph LegalGraph() {
  Graph graph;
  graph.Add(Variable("x"));
  Node literal{.op = "literal", .info = ValueInfo::OfScalar(ValueType::kDouble)};
  literal.SetAttribute("value", 2.0);
  graph.Add(std::move(literal));
  graph.Add({.op = "*", .inputs = {0, 1}, .info = ValueInfo::OfMatrix({4, 2})});
  graph.Add({.op = "t",
             .inputs = {2, kNoNode},
             .after = {0},
             .info = ValueInfo::OfMatrix({2, 4}),
             .position = {"a.dml", 3, 4}});
  graph.Add(Assign("y", 3));
  return graph;
}

void ExpectBroken(const Status& status, std::string_view why) {
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find(why), std::string::npos) << status.ToString();
}

TEST(VerifyGraphTest, ALegalGraphPasses) {
  EXPECT_TRUE(Verify(LegalGraph()).ok()) << Verify(LegalGraph()).ToString();
}

TEST(VerifyGraphTest, EachFaultIsNamed) {
  const std::pair<const char*, std::function<void(Graph&)>> cases[] = {
      {"has an input that does not come before it", [](Graph& g) { g[2].inputs[0] = 2; }},
      {"has an input that does not come before it", [](Graph& g) { g[2].inputs[0] = -2; }},
      {"acts after a node that does not come before it", [](Graph& g) { g[3].after[0] = 4; }},
      {"acts after a node that does not come before it", [](Graph& g) { g[3].after[0] = kNoNode; }},
      {"has no operator", [](Graph& g) { g[3].op.clear(); }},
      {"sorted by name",
       [](Graph& g) {
         g[2].attributes = {{"b", 1}, {"a", 2}};
       }},
      {"sorted by name",
       [](Graph& g) {
         g[2].attributes = {{"a", 1}, {"a", 2}};
       }},
      {"has a negative size", [](Graph& g) { g[2].info.shape.rows = -2; }},
      {"has inputs", [](Graph& g) { g[1].inputs = {0}; }},
      {"has no value", [](Graph& g) { g[1].attributes.clear(); }},
      {"names no variable", [](Graph& g) { g[0].attributes.clear(); }},
      {"names no variable", [](Graph& g) { g[4].SetAttribute("name", 3); }},
      {"does not have one input", [](Graph& g) { g[4].inputs = {kNoNode}; }},
      {"does not have one input",
       [](Graph& g) {
         g[4].inputs = {2, 3};
       }},
      {"assigns a variable a second time", [](Graph& g) { g.Add(Assign("y", 2)); }},
      {"does not hold the operators that it runs", [](Graph& g) { g[3].op = "fused"; }},
      {"does not hold the operators that it runs", [](Graph& g) { g[3].op = "fusedSeveral"; }},
      {"does not hold the operators that it runs", [](Graph& g) { g[3].op = "phased"; }},
      {"runs none and holds some", [](Graph& g) { g[3].fused = std::make_shared<const FusedOperator>(); }},
  };
  for (const auto& [why, damage] : cases) {
    Graph graph = LegalGraph();
    damage(graph);
    ExpectBroken(Verify(graph), why);
  }
}

// [values, vectors] = eigen(y), of which y is 4 x 4.
Graph GraphWithResults() {
  Graph graph;
  graph.Add(Variable("x"));
  graph.Add({.op = "eigen",
             .inputs = {0},
             .info = ValueInfo::OfTuple(),
             .results = {ValueInfo::OfMatrix({4, 1}), ValueInfo::OfMatrix({4, 4})}});
  graph.Add(ResultOf(graph, 1, 0));
  graph.Add(ResultOf(graph, 1, 1));
  graph.Add(Assign("y", 3));
  return graph;
}

TEST(VerifyGraphTest, OrderIsAmongNodesThatAct) {
  Graph graph = GraphWithResults();
  graph[4].after = {1};
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph).ToString();
  graph[4].after = {2};
  ExpectBroken(Verify(graph), "acts after a result and not after the node that has it");
}

TEST(VerifyGraphTest, OnlyResultsReadATuple) {
  EXPECT_TRUE(Verify(GraphWithResults()).ok()) << Verify(GraphWithResults()).ToString();
  Graph unknown = GraphWithResults();
  unknown[1].info = ValueInfo();
  unknown[1].results.clear();
  EXPECT_TRUE(Verify(unknown).ok()) << "what it is, is found out later";
  const std::pair<const char*, std::function<void(Graph&)>> cases[] = {
      {"reads several results as one value", [](Graph& g) { g[4].inputs = {1}; }},
      {"does not have one input",
       [](Graph& g) {
         g[3].inputs = {1, 1};
       }},
      {"says not which result it is", [](Graph& g) { g[3].attributes.clear(); }},
      {"says not which result it is", [](Graph& g) { g[3].SetAttribute("index", -1); }},
      {"says not which result it is", [](Graph& g) { g[3].SetAttribute("index", 1.0); }},
      {"is a result that its input does not have", [](Graph& g) { g[3].SetAttribute("index", 2); }},
      {"is a result that its input does not have", [](Graph& g) { g[3].inputs = {0}; }},
      {"has a tuple without results", [](Graph& g) { g[1].results.clear(); }},
      {"results without a tuple", [](Graph& g) { g[0].results = g[1].results; }},
  };
  for (const auto& [why, damage] : cases) {
    Graph graph = GraphWithResults();
    damage(graph);
    ExpectBroken(Verify(graph), why);
  }
}

TEST(VerifyGraphTest, TheFaultHasItsPlace) {
  Graph graph = LegalGraph();
  graph[3].inputs[0] = 9;
  EXPECT_EQ(Verify(graph).ToString(),
            "a.dml:3:4: broken graph: node %3 (t) has an input that does not come before it");
}

TEST(NodeTest, AttributesStaySorted) {
  Node node;
  for (const char* name : {"m", "a", "z", "a"}) node.SetAttribute(name, name);
  node.SetAttribute("m", 5);
  ASSERT_EQ(node.attributes.size(), 3u);
  EXPECT_EQ(node.attributes[0].first, "a");
  EXPECT_EQ(node.attributes[2].first, "z");
  EXPECT_EQ(*node.FindAttribute("m"), Scalar(5));
  EXPECT_EQ(node.FindAttribute("b"), nullptr);
  EXPECT_EQ(node.Text("z"), "z");
  EXPECT_EQ(node.Text("m"), "") << "not a string";
  EXPECT_EQ(node.Text("b"), "");
}

// Rank 0 makes x * 2, rank 1 copies it.
Plan LegalPlan() {
  const TaskId source = TaskId::Make(0, 0, 1);
  const TaskId product = TaskId::Make(0, 0, 2);
  const TaskId copy = TaskId::Make(1, 2, 1);
  Plan plan;
  plan.ranks = 2;
  plan.graph = LegalGraph();
  plan.tasks.push_back({.id = source, .kind = TaskKind::kSource, .node = 0, .produced = {0, 2}});
  plan.tasks.push_back(
      {.id = product, .node = 2, .consumed = {0, 0, -1}, .produced = {1}, .control_in = {2}});
  plan.tasks.push_back({.id = copy, .kind = TaskKind::kCopy, .node = 2, .consumed = {1}, .produced = {3}});
  plan.registers.push_back({.id = 0, .producer = source, .consumers = {product}});
  plan.registers.push_back({.id = 1, .producer = product, .consumers = {copy}});
  plan.registers.push_back({.id = 2, .producer = source, .consumers = {product}, .control = true});
  plan.registers.push_back({.id = 3, .producer = copy, .consumers = {}});
  plan.live_in.push_back({"x", Distribution::One(), ValueInfo::OfMatrix({4, 2}), 0});
  plan.peak_bytes = {64, 64};
  return plan;
}

TEST(VerifyPlanTest, ALegalPlanPasses) {
  EXPECT_TRUE(Verify(LegalPlan()).ok()) << Verify(LegalPlan()).ToString();
}

TEST(VerifyPlanTest, EachFaultIsNamed) {
  const std::pair<const char*, std::function<void(Plan&)>> cases[] = {
      {"broken graph", [](Plan& p) { p.graph[2].op.clear(); }},
      {"0 ranks", [](Plan& p) { p.ranks = 0; }},
      {"stands at place", [](Plan& p) { std::swap(p.registers[0], p.registers[1]); }},
      {"has no slot", [](Plan& p) { p.registers[0].slots = 0; }},
      {"negative size", [](Plan& p) { p.registers[0].bytes = -1; }},
      {"exists twice", [](Plan& p) { p.tasks.push_back(p.tasks[2]); }},
      {"on a rank that does not exist", [](Plan& p) { p.ranks = 1; }},
      {"on a stream that does not exist", [](Plan& p) { p.tasks[0].id = TaskId::Make(0, 3, 1); }},
      {"on another device than its stream", [](Plan& p) { p.streams[0].device.index = 1; }},
      {"is cut for another number of ranks",
       [](Plan& p) { p.live_in[0].distribution = Distribution::SplitRows(4, 3); }},
      {"has cuts that do not ascend to its length",
       [](Plan& p) { p.live_in[0].distribution = Distribution::SplitRows(5, 2); }},
      {"has cuts that do not ascend to its length",
       [](Plan& p) {
         p.live_in[0].distribution = {.kind = Distribution::Kind::kSplit, .split = {.cuts = {0, 5, 4}}};
       }},
      {"not sorted by rank", [](Plan& p) { std::swap(p.tasks[1], p.tasks[2]); }},
      {"is an instance of no node", [](Plan& p) { p.tasks[0].node = 5; }},
      {"count or rate below one", [](Plan& p) { p.tasks[0].rate = 0; }},
      {"rows outside its matrix", [](Plan& p) { p.tasks[0].row_end = 1; }},
      {"produces a register that does not exist", [](Plan& p) { p.tasks[0].produced[0] = 4; }},
      {"has not exactly one producer", [](Plan& p) { p.tasks[1].produced[0] = 0; }},
      {"has not exactly one producer", [](Plan& p) { p.tasks[2].produced.clear(); }},
      {"has not exactly one producer",
       [](Plan& p) {
         p.tasks[2].produced = {3, 3};
       }},
      {"other data registers than the results", [](Plan& p) { p.registers[2].control = false; }},
      {"consumes a register that does not exist", [](Plan& p) { p.tasks[1].consumed[0] = -2; }},
      {"consumes a control register as data", [](Plan& p) { p.tasks[1].consumed[0] = 2; }},
      {"waits for a register that does not exist", [](Plan& p) { p.tasks[1].control_in[0] = 4; }},
      {"lists other consumers", [](Plan& p) { p.registers[0].consumers.clear(); }},
      {"lists other consumers", [](Plan& p) { p.registers[3].consumers.push_back(p.tasks[0].id); }},
      {"lists other consumers", [](Plan& p) { p.registers[0].consumers.push_back(p.tasks[1].id); }},
      {"not to a copy task", [](Plan& p) { p.tasks[2].kind = TaskKind::kCompute; }},
      {"bound to no node", [](Plan& p) { p.live_in[0].node = 5; }},
      {"peak bytes of 1 ranks", [](Plan& p) { p.peak_bytes.pop_back(); }},
      {"negative cost", [](Plan& p) { p.tasks[0].cost_ns = -2; }},
      {"peak bytes of 3 ranks",
       [](Plan& p) {
         p.pool_bytes = {64, 64, 64};
       }},
  };
  for (const auto& [why, damage] : cases) {
    SCOPED_TRACE(why);
    Plan plan = LegalPlan();
    damage(plan);
    ExpectBroken(Verify(plan), why);
  }
}

// x is copied to a device, doubled there, and comes back; it stays there, too, for whoever reads it next.
Plan LegalPlanWithADevice() {
  constexpr Device kGpu = {DeviceType::kOpenCl, 0};
  Plan plan;
  plan.graph = LegalGraph();
  const Node assign{.op = "assign", .inputs = {2}, .info = ValueInfo::OfMatrix({4, 2})};
  const NodeId y = plan.graph.Add(assign);
  plan.graph[y].SetAttribute("name", "z");
  for (const StreamKind kind : {StreamKind::kCompute, StreamKind::kCopyIn, StreamKind::kCopyOut})
    plan.streams.push_back({.device = kGpu, .kind = kind, .name = "gpu"});
  const auto device_task = [&](uint32_t stream) { return TaskId::Make(0, kGpu, stream, 1); };
  const TaskId source = TaskId::Make(0, 0, 1), sink = TaskId::Make(0, 0, 2), stays = TaskId::Make(0, 0, 3);
  const TaskId product = device_task(3), in = device_task(4), out = device_task(5);
  plan.tasks.push_back({.id = source, .kind = TaskKind::kSource, .node = 0, .produced = {0}});
  plan.tasks.push_back({.id = in, .node = 0, .phase = Phase::kTransfer, .consumed = {0}, .produced = {1}});
  plan.tasks.push_back({.id = product, .node = 2, .consumed = {1, 1, -1}, .produced = {2}});
  plan.tasks.push_back({.id = out, .node = 2, .phase = Phase::kTransfer, .consumed = {2}, .produced = {3}});
  plan.tasks.push_back({.id = sink, .kind = TaskKind::kSink, .node = y, .consumed = {3}});
  plan.tasks.push_back({.id = stays, .kind = TaskKind::kSink, .node = 0, .consumed = {1}});
  const ValueInfo info = ValueInfo::OfMatrix({4, 2});
  plan.registers.push_back({.id = 0, .producer = source, .consumers = {in}, .info = info});
  plan.registers.push_back(
      {.id = 1, .producer = in, .consumers = {product, stays}, .info = info, .device = kGpu});
  plan.registers.push_back({.id = 2, .producer = product, .consumers = {out}, .info = info, .device = kGpu});
  plan.registers.push_back({.id = 3, .producer = out, .consumers = {sink}, .info = info});
  plan.live_in.push_back({"x", Distribution::One(), info, 0});
  plan.live_out.push_back({"z", Distribution::One(), info, y});
  plan.live_out.push_back({"x", Distribution::One(), info, 0, kGpu});
  plan.peak_bytes = {64};
  return plan;
}

// A task reads another register than before, as a planner does that forgets a copy.
void ReadInstead(Plan& plan, size_t task, RegisterId other) {
  for (RegisterId& read : plan.tasks[task].consumed) {
    if (read == -1) continue;
    std::erase(plan.registers[static_cast<size_t>(read)].consumers, plan.tasks[task].id);
    read = other;
  }
  plan.registers[static_cast<size_t>(other)].consumers.push_back(plan.tasks[task].id);
}

TEST(VerifyPlanTest, EachFaultOfMemoriesIsNamed) {
  ASSERT_TRUE(Verify(LegalPlanWithADevice()).ok()) << Verify(LegalPlanWithADevice()).ToString();
  const std::pair<const char*, std::function<void(Plan&)>> cases[] = {
      {"reads register 0, which is not in the memory of its device", [](Plan& p) { ReadInstead(p, 2, 0); }},
      {"in another memory than its binding", [](Plan& p) { ReadInstead(p, 4, 2); }},
      {"in another memory than its binding", [](Plan& p) { ReadInstead(p, 5, 0); }},
      {"in another memory than its binding", [](Plan& p) { p.live_in[0].device = p.registers[1].device; }},
      {"in another memory than its binding", [](Plan& p) { p.live_out[0].device = p.registers[1].device; }},
      {"reads register 2, which is in the memory of another device",
       [](Plan& p) {
         p.live_out.erase(p.live_out.begin());
         ReadInstead(p, 4, 2);
       }},
      {"makes register 2 in the memory of another device",
       [](Plan& p) {
         p.streams.push_back({.device = {DeviceType::kOpenCl, 1}});
         p.registers[2].device.index = 1;
       }},
      {"in the memory of a device that the plan does not use",
       [](Plan& p) { p.registers[2].device.index = 1; }},
      {"from or to another memory", [](Plan& p) { p.registers[1].device = {}; }},
      {"from or to another memory", [](Plan& p) { p.registers[3].device = p.registers[2].device; }},
      {"from or to another memory", [](Plan& p) { ReadInstead(p, 1, 2); }},
      {"transfers other than one value", [](Plan& p) { p.tasks[1].consumed = {0, 0}; }},
      {"is no transfer, but on a stream of copies", [](Plan& p) { p.tasks[3].phase = Phase::kWhole; }},
      {"is a transfer, but not on a stream of copies", [](Plan& p) { p.tasks[2].phase = Phase::kTransfer; }},
      {"copies to and from no device",
       [](Plan& p) {
         p.streams[2].kind = StreamKind::kCopyIn;
         p.tasks[4].id = p.registers[3].consumers[0] = TaskId::Make(0, 2, 2);
       }},
      {"is on a device, which only computes", [](Plan& p) { p.tasks[2].kind = TaskKind::kSink; }},
  };
  for (const auto& [why, damage] : cases) {
    SCOPED_TRACE(why);
    Plan plan = LegalPlanWithADevice();
    damage(plan);
    ExpectBroken(Verify(plan), why);
  }
}

// As plans in panels have it: operators copy what they read and make within their acts.
TEST(VerifyPlanTest, ValuesNeedNotStayOnADevice) {
  Plan plan = LegalPlanWithADevice();
  ReadInstead(plan, 2, 0);
  ReadInstead(plan, 4, 2);
  plan.registers[2].device = {};
  plan.tasks.erase(plan.tasks.begin() + 5);
  plan.tasks.erase(plan.tasks.begin() + 3);
  plan.tasks.erase(plan.tasks.begin() + 1);
  std::erase_if(plan.registers[0].consumers, [](TaskId id) { return id.stream() == 4; });
  std::erase_if(plan.registers[2].consumers, [](TaskId id) { return id.stream() == 5; });
  plan.live_out.pop_back();
  // Registers 1 and 3 had the copies.
  plan.registers.pop_back();
  plan.registers[2].id = 1;
  plan.registers.erase(plan.registers.begin() + 1);
  plan.tasks[1].produced = {1};
  plan.tasks[2].consumed = {1};
  EXPECT_TRUE(Verify(plan).ok()) << Verify(plan).ToString();
}

TEST(VerifyPlanTest, ATaskHasADataRegisterForEachResult) {
  Plan plan = LegalPlan();
  plan.registers[2].control = false;
  plan.tasks[1].control_in.clear();
  plan.tasks[1].consumed[2] = 2;
  plan.graph[0].info = ValueInfo::OfTuple();
  plan.graph[0].results = {ValueInfo::OfMatrix({4, 2}), ValueInfo::OfMatrix({4, 2})};
  plan.graph[0].op = "qr";
  plan.graph[2].inputs = {1, 1};
  EXPECT_TRUE(Verify(plan).ok()) << Verify(plan).ToString();
  plan.graph[0].results.push_back(ValueInfo::OfMatrix({4, 2}));
  ExpectBroken(Verify(plan), "produces other data registers than the results of its node");
}

}  // namespace
}  // namespace heddle

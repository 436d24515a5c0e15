// SPDX-License-Identifier: Apache-2.0
// What runs on a device by cost: whole regions of a graph, with all copies and what has to be compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/environment/random.h"
#include "scheduler/devices/choose_device.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::scheduler {
namespace {

// Operators one after the other go there together: none of them would alone.
TEST(DeviceChoiceTest, ByCostWholeRegionsGo) {
  GraphUnderTest one, many;
  for (GraphUnderTest* const g : {&one, &many}) {
    NodeId x = g->Variable("X", MatrixOf(100'000, 20));
    for (int i = 0; i < (g == &one ? 1 : 12); ++i) x = g->Op("exp", {x}, MatrixOf(100'000, 20));
    const NodeId t = g->Op("rowcumsum", {x}, MatrixOf(100'000, 20));
    g->Assign("T", t);
  }
  const std::vector<double> host_ns(many.graph.nodes.size(), 1e6);
  DeviceOptions options{.rule = DeviceOptions::Rule::kByCost,
                        .rates = {8e9, 8e9, 1e12, 1e12, 5e3}};
  const auto chosen_of = [&](const Graph& graph) {
    const std::vector<bool> chosen = ChooseDevice(graph, host_ns, 1, nullptr, options);
    return std::count(chosen.begin(), chosen.end(), true);
  };
  EXPECT_EQ(chosen_of(one.graph), 0);    // Copies in and out take 4 ms, the processor 1 ms.
  EXPECT_EQ(chosen_of(many.graph), 12);  // And 12 ms here.
}

// The cheapest division of all, of random graphs with random times.
TEST(DeviceChoiceTest, ByCostNoDivisionIsCheaper) {
  constexpr int64_t kRows = 1000, kColumns = 100;
  const ops::DeviceRates rates = {
      .copy_in = 1e9, .copy_out = 2e9, .memory = 1e12, .fma = 1e12, .launch_ns = 10};
  const double in_ns = kRows * kColumns * 8 + rates.launch_ns;
  const double out_ns = kRows * kColumns * 4 + rates.launch_ns;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SeededRandom random(seed);
    GraphUnderTest g;
    std::vector<NodeId> values = {g.Variable("X", MatrixOf(kRows, kColumns)),
                                  g.Variable("Y", MatrixOf(kRows, kColumns))};
    for (int i = 0; i < 8; ++i) {
      const NodeId a = values[random.Below(values.size())], b = values[random.Below(values.size())];
      const bool can_run = random.Below(4) != 0;
      values.push_back(can_run ? g.Op("+", {a, b}, MatrixOf(kRows, kColumns))
                               : g.Op("rowcumsum", {a}, MatrixOf(kRows, kColumns)));
    }
    std::vector<double> host_ns;
    for (size_t i = 0; i < values.size(); ++i)
      host_ns.push_back(static_cast<double>(random.Below(1'000'000)));
    DeviceOptions options{.rule = DeviceOptions::Rule::kByCost, .rates = rates};
    options.residences["Y"] = {.on_host = false, .on_device = true};
    const Graph& graph = g.graph;
    const auto cost_of = [&](const std::vector<bool>& on_device) {
      double ns = 0;
      for (NodeId id = 0; id < graph.size(); ++id) {
        const auto at = static_cast<size_t>(id);
        if (!graph[id].Is("variable"))
          ns += on_device[at] ? DeviceNs(graph, graph[id], rates) + rates.launch_ns : host_ns[at];
        const bool is_there = on_device[at] || (graph[id].Is("variable") && graph[id].Text("name") == "Y");
        bool is_moved = false;
        for (NodeId reader = id + 1; reader < graph.size(); ++reader) {
          const auto& inputs = graph[reader].inputs;
          is_moved |= std::find(inputs.begin(), inputs.end(), id) != inputs.end() &&
                      on_device[static_cast<size_t>(reader)] != is_there;
        }
        if (is_moved) ns += is_there ? out_ns : in_ns;
      }
      return ns;
    };
    const double chosen = cost_of(ChooseDevice(graph, host_ns, 1, nullptr, options));
    double least = chosen;
    for (uint32_t bits = 0; bits < 256; ++bits) {
      std::vector<bool> on_device(values.size(), false);
      bool is_possible = true;
      for (size_t i = 0; i < 8; ++i) {
        on_device[i + 2] = (bits >> i & 1) != 0;
        is_possible &= !on_device[i + 2] || graph[static_cast<NodeId>(i + 2)].Is("+");
      }
      if (is_possible) least = std::min(least, cost_of(on_device));
    }
    EXPECT_NEAR(chosen, least, 1) << "seed " << seed;
  }
}

// The same where nodes act panel by panel in passes: rows that leave a pass go by the host, and each pass
// that reads them copies them anew, with a command for each panel.
TEST(DeviceChoiceTest, ByCostNoDivisionInPanelsIsCheaper) {
  constexpr int64_t kRows = 1000, kColumns = 100;
  const ops::DeviceRates rates = {
      .copy_in = 1e9, .copy_out = 2e9, .memory = 1e12, .fma = 1e12, .launch_ns = 10'000};
  const double bytes = kRows * kColumns * 8;
  int mixed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SeededRandom random(seed);
    GraphUnderTest g;
    std::vector<NodeId> values = {g.Variable("X", MatrixOf(kRows, kColumns)),
                                  g.Variable("Y", MatrixOf(kRows, kColumns))};
    std::vector<NodeInPanels> panels(2);
    for (int i = 0; i < 8; ++i) {
      const NodeId a = values[random.Below(values.size())], b = values[random.Below(values.size())];
      values.push_back(g.Op("+", {a, b}, MatrixOf(kRows, kColumns)));
      const int pass = static_cast<int>(random.Below(4)) - 1;  // Of three, or of none.
      panels.push_back({.pass = pass, .acts = pass < 0 ? 1 : 5 + pass, .is_hosts = random.Below(6) == 0});
    }
    const NodeId assigned = values.back();
    g.Assign("Z", assigned);
    panels.emplace_back();
    std::vector<double> host_ns;
    for (size_t i = 0; i < panels.size(); ++i)
      host_ns.push_back(static_cast<double>(random.Below(2'000'000)));
    DeviceOptions options{.rule = DeviceOptions::Rule::kByCost, .rates = rates};
    options.residences["Y"] = {.on_host = false, .on_device = true};  // The plan finds it here.
    options.reads["X"] = 100;
    const Graph& graph = g.graph;
    const auto cost_of = [&](const std::vector<bool>& on_device) {
      double ns = 0;
      for (const NodeId id : values) {
        const auto at = static_cast<size_t>(id);
        const auto acts = static_cast<double>(panels[at].acts);
        if (!graph[id].Is("variable"))
          ns += on_device[at] ? DeviceNs(graph, graph[id], rates) + acts * rates.launch_ns : host_ns[at];
        bool is_read_here = id == assigned, is_read_there = false;
        std::set<int> elsewhere_there;
        double in_ns = 0;
        for (const NodeId reader : values) {
          const auto to = static_cast<size_t>(reader);
          const auto& inputs = graph[reader].inputs;
          if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) continue;
          if (panels[at].pass == panels[to].pass) {
            (on_device[to] ? is_read_there : is_read_here) = true;
            continue;
          }
          is_read_here = true;
          if (on_device[to] && elsewhere_there.insert(panels[to].pass).second)
            in_ns += bytes + static_cast<double>(panels[to].acts) * rates.launch_ns;
        }
        ns += in_ns;
        if (on_device[at] && is_read_here) ns += bytes / 2 + acts * rates.launch_ns;
        if (!on_device[at] && is_read_there) ns += bytes + acts * rates.launch_ns;
      }
      return ns;
    };
    std::vector<bool> choice = ChooseDevice(graph, host_ns, 1, &panels, options);
    const double chosen = cost_of(choice);
    const auto there = std::count(choice.begin(), choice.end(), true);
    mixed += there > 0 && there < 8;
    double least = chosen;
    for (uint32_t bits = 0; bits < 256; ++bits) {
      std::vector<bool> on_device(graph.nodes.size(), false);
      bool is_possible = true;
      for (size_t i = 0; i < 8; ++i) {
        on_device[i + 2] = (bits >> i & 1) != 0;
        is_possible &= !on_device[i + 2] || !panels[i + 2].is_hosts;
      }
      if (is_possible) least = std::min(least, cost_of(on_device));
    }
    EXPECT_NEAR(chosen, least, 1) << "seed " << seed;
    for (size_t i = 0; i < panels.size(); ++i) EXPECT_FALSE(choice[i] && panels[i].is_hosts);
  }
  EXPECT_GT(mixed, 5);
}

// What has to be compiled first costs that once, for all operators that share it and all rounds.
TEST(DeviceChoiceTest, ByCostWhatIsCompiledMustPay) {
  // exp, abs and exp of X, 9 ms of the processor each; the device takes next to no time.
  GraphUnderTest g;
  NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  for (const char* const op : {"exp", "abs", "exp"}) x = g.Op(op, {x}, MatrixOf(100'000, 20));
  g.Assign("Y", x);
  const std::vector<double> host_ns(g.graph.nodes.size(), 9e6);
  std::set<std::string> compiled;
  DeviceOptions options{.rule = DeviceOptions::Rule::kByCost,
                        .rates = {.copy_in = 1e12,
                                  .copy_out = 1e12,
                                  .memory = 1e13,
                                  .fma = 1e14,
                                  .launch_ns = 10,
                                  .compile_ns = 10e6},
                        .new_kernel = [&compiled](const Node& node, std::span<const ValueInfo>) {
                          return compiled.contains(node.op) ? std::nullopt : std::optional(node.op);
                        }};
  const std::vector<NodeInPanels> one_pass(g.graph.nodes.size(), {.pass = 0, .acts = 4});
  const auto chosen_of = [&](bool keeps_values) {
    std::string chosen;
    const std::vector<bool> on_device =
        ChooseDevice(g.graph, host_ns, 1, keeps_values ? nullptr : &one_pass, options);
    for (NodeId id = 1; id <= 3; ++id) chosen += on_device[static_cast<size_t>(id)] ? 'd' : 'h';
    return chosen;
  };
  // 20 ms for two kernels, or 10 and the processor's 9 with cheap copies, or the processor's 27.
  EXPECT_EQ(chosen_of(true), "dhd");
  EXPECT_EQ(chosen_of(false), "dhd");
  options.rates.compile_ns = 19e6;
  EXPECT_EQ(chosen_of(true), "hhh");
  options.runs = 10;
  EXPECT_EQ(chosen_of(true), "ddd");
  EXPECT_EQ(chosen_of(false), "ddd");
  options.runs = 1;
  compiled = {"exp"};
  EXPECT_EQ(chosen_of(true), "dhd");
  EXPECT_EQ(chosen_of(false), "dhd");
  EXPECT_EQ(CompileNs(g.graph, g.graph[1], options), 0);
  EXPECT_EQ(CompileNs(g.graph, g.graph[2], options), 19e6);
  compiled = {"exp", "abs"};
  EXPECT_EQ(chosen_of(true), "ddd");
}

}  // namespace
}  // namespace heddle::scheduler

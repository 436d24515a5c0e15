// SPDX-License-Identifier: Apache-2.0
// What the scripts of tests/scripts/cases exercise: every template and type of fused operator, each in
// several plans that ran and gave the bytes of NAME.expected. A plan of a block is what its fused operators
// say, without the places in scripts that they come from; that it was made for another script or mode makes
// it no other plan.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "core/programs/plan.h"
#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

constexpr size_t kLeastPlans = 3;

std::vector<std::string> Modes() {
  std::vector<std::string> modes = {"--fusion cost", "--fusion all", "--fusion no-redundancy"};
  const int seeds = testing_support::RunsAllPlans() ? 20 : 8;
  for (int seed = 1; seed <= seeds; ++seed) modes.push_back("--fusion-seed " + std::to_string(seed));
  return modes;
}

// The nodes of a graph, and those inside of operators of phases.
std::vector<Node> WithoutPhases(const Graph& graph) {
  std::vector<Node> nodes = graph.nodes;
  for (const Node& node : graph.nodes) {
    if (!node.Is("phased")) continue;
    const std::vector<Node>& inner = node.phased->body.nodes;
    nodes.insert(nodes.end(), inner.begin(), inner.end());
  }
  return nodes;
}

// The fused operators, without places in scripts, of each plan that `run --explain` printed before it ran:
// from a line "plan ..." to an empty one.
std::vector<std::vector<FusedOperator>> PlansOf(const std::string& explained) {
  std::vector<std::vector<FusedOperator>> plans;
  for (size_t begin = 0; (begin = explained.find("\nplan ", begin)) != std::string::npos;) {
    const size_t end = explained.find("\n\n", ++begin);
    const Result<Plan> plan =
        Plan::Parse(explained.substr(begin, end == std::string::npos ? end : end + 1 - begin));
    EXPECT_TRUE(plan.ok()) << plan.status().ToString() << "\n" << explained;
    if (!plan.ok()) break;
    plans.emplace_back();
    for (const Node& node : WithoutPhases(plan->graph)) {
      if (!IsFused(node)) continue;
      FusedOperator fused = *node.fused;
      for (Node& replaced : fused.body.nodes) replaced.position = {};
      plans.back().push_back(std::move(fused));
    }
  }
  return plans;
}

bool IsColumnAggregate(const Node& node) { return node.op.starts_with("col"); }

// The type of a Row operator by the shapes of its driver (m x n) and result, as the reference names them.
std::string RowType(const FusedOperator& fused, NodeId of_root) {
  const Graph& body = fused.body;
  const Node& root = body[of_root];
  Shape driver;
  std::set<int64_t> widths;  // Of products with a whole matrix.
  for (const Node& node : body.nodes) {
    if (node.Is("variable") && node.Text("name") == std::to_string(fused.driver)) driver = node.info.shape;
    if (node.Is("%*%") && node.info.shape.columns > 1) widths.insert(node.info.shape.columns);
  }
  const Shape& shape = root.info.shape;
  if (root.info.IsScalar()) return "FullAgg";
  if (root.Is("t%*%"))
    return shape.columns == 1 ? "ColAggT" : shape.rows == driver.columns ? "ColAggB1T" : "ColAggB1";
  if (IsColumnAggregate(root))
    return shape.columns == driver.columns  ? "ColAgg"
           : widths.contains(shape.columns) ? "ColAggB1R"
                                            : "ColAggConst";
  if (shape.columns == 1) return "RowAgg";
  return shape.columns == driver.columns  ? "NoAgg"
         : widths.contains(shape.columns) ? "NoAggB1"
                                          : "NoAggConst";
}

// One type; of a stitch also that of each of its roots, as a Row operator would have it.
std::vector<std::string> TypesOf(const FusedOperator& fused) {
  const Node& root = fused.body[fused.roots[0]];
  const std::string kind(Name(fused.kind));
  switch (fused.kind) {
    case FusionTemplate::kRow: return {kind + " " + RowType(fused, fused.roots[0])};
    case FusionTemplate::kMultiAggregate: return {kind};
    case FusionTemplate::kStitch: {
      std::vector<std::string> types = {kind};
      for (const NodeId id : fused.roots) types.push_back("row " + RowType(fused, id));
      return types;
    }
    case FusionTemplate::kOuter:
      return {kind + (root.info.IsScalar() ? " aggregate"
                      : root.Is("%*%")     ? " right"
                      : root.Is("t%*%")    ? " left"
                                           : " cell")};
    case FusionTemplate::kCell:
      return {kind + (root.info.IsScalar()         ? " full"
                      : IsColumnAggregate(root)    ? " column"
                      : root.op.starts_with("row") ? " row"
                                                   : " none")};
  }
  return {kind};
}

TEST(PlansTest, EveryTemplateAndTypeOccursInSeveralPlans) {
  std::map<std::string, std::set<std::string>> plans;  // By type: their operators' texts.
  for (const char* type :
       {"cell none",       "cell row",     "cell column",   "cell full",      "row NoAgg",
        "row NoAggB1",     "row RowAgg",   "row FullAgg",   "row ColAggT",    "row ColAgg",
        "row ColAggB1T",   "row ColAggB1", "row ColAggB1R", "row NoAggConst", "row ColAggConst",
        "multi-aggregate", "outer left",   "outer right",   "outer cell",     "outer aggregate",
        "stitch"})
    plans[type];
  std::map<std::string, std::set<std::string>> operators;  // By type.
  std::set<std::string> all_plans;
  for (const std::string& path : ScriptCases()) {
    for (const std::string& mode : Modes()) {
      SCOPED_TRACE(path + " " + mode);
      const testing_support::Finished finished = RunCase("run --threads 1 --explain " + mode, path);
      ASSERT_EQ(finished.code, 0) << finished.errors;
      ASSERT_EQ(finished.output,
                testing_support::ReadText(std::filesystem::path(path).replace_extension(".expected")));
      for (const std::vector<FusedOperator>& chosen : PlansOf(finished.errors)) {
        std::set<std::string> texts;
        for (const FusedOperator& fused : chosen) texts.insert(fused.ToText());
        std::string plan;
        for (const std::string& text : texts) plan += text + "\n";
        if (!texts.empty()) all_plans.insert(plan);
        for (const FusedOperator& fused : chosen) {
          for (const std::string& type : TypesOf(fused)) {
            plans[type].insert(plan);
            operators[type].insert(fused.ToText());
          }
        }
      }
    }
  }
  std::printf("%zu distinct plans of fused operators were run\n", all_plans.size());
  for (const auto& [type, found] : plans) {
    std::printf("%-18s %4zu operators in %4zu plans\n", type.c_str(), operators[type].size(), found.size());
    EXPECT_GE(found.size(), kLeastPlans) << type;
    EXPECT_GE(operators[type].size(), kLeastPlans) << type;
  }
}

}  // namespace
}  // namespace heddle

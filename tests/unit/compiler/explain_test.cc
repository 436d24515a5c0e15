// SPDX-License-Identifier: Apache-2.0
// What a program without a command line gets to see of the compiler.
#include "compiler/explain/explain.h"

#include <gtest/gtest.h>

#include "compiler/explain/recompilations.h"

namespace heddle::compiler {
namespace {

constexpr const char* kScript = R"(
X = rand(rows=100000, cols=10, seed=1)
print(sum(exp(X) * X))
)";

Result<std::string> TextAt(std::string_view level) {
  Diagnostics diagnostics;
  PlanningOptions planning;
  planning.fuse.threads = 2;
  return Explain(kScript, CompileOptions(), level, &diagnostics, planning);
}

TEST(ExplainTest, LevelsOfFusionNeedNoRun) {
  for (const char* level : {"fusion", "cost"}) {
    const Result<std::string> text = TextAt(level);
    ASSERT_TRUE(text.ok()) << text.status().ToString();
    EXPECT_NE(text->find("block at line 2\nmemo\n"), std::string::npos) << *text;
    EXPECT_NE(text->find("fused\n  cell driver=0"), std::string::npos) << *text;
    EXPECT_EQ(text->starts_with("built-in constants: read 36 GB/s"), std::string_view(level) == "cost");
  }
}

TEST(ExplainTest, ALevelThatDoesNotExistIsNamed) {
  const Status status = TextAt("fussion").status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_NE(status.ToString().find("unknown stage 'fussion'"), std::string::npos) << status.ToString();
  EXPECT_NE(status.ToString().find("did you mean 'fusion'?"), std::string::npos) << status.ToString();
}

TEST(RecompilationsTest, TellWhatIsOther) {
  Graph graph;
  Node x{.op = "variable", .info = ValueInfo::OfMatrix({3, 4})};
  x.SetAttribute("name", Scalar(std::string("X")));
  x.position = {"s.dml", 2, 1};
  graph.Add(x);
  Recompilations recompilations;
  Plan plan;
  plan.graph = graph;
  EXPECT_EQ(*recompilations.Describe(plan.ToText()),
            "s.dml:2: compiled for X 3x4 (first entry), run directly:");
  plan.graph[0].info = ValueInfo::OfMatrix({3, 5});
  EXPECT_EQ(*recompilations.Describe(plan.ToText()),
            "s.dml:2: compiled for X 3x5 (X was 3x4), run directly:");
}

}  // namespace
}  // namespace heddle::compiler

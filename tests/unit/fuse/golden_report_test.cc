// SPDX-License-Identifier: Apache-2.0
// What explain prints for the worked examples: tests/golden/fusion/*.txt. UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "compiler/fuse/fuse.h"
#include "tests/unit/fuse/examples.h"

namespace heddle::compiler {
namespace {

TEST(GoldenReportTest, TheExamplesAreExplainedAsWritten) {
  const std::pair<std::string, Graph> examples[] = {
      {"example_a", ExampleA()}, {"example_b", ExampleB()}, {"example_c", ExampleC()},
      {"example_d", ExampleD()}, {"example_e", ExampleE()}, {"normalized_columns", NormalizedColumns("exp")}};
  for (const auto& [name, graph] : examples) {
    FuseOptions options;
    options.constants = ops::BuiltInConstants(2);
    options.reported_plans = 10;
    options.sparsity_of = [](std::string_view) { return 1e-3; };
    FuseReport report;
    const Result<Graph> fused = Fuse(graph, options, &report);
    ASSERT_TRUE(fused.ok()) << fused.status().ToString();
    const std::string actual = ToText(report, true) + "result\n" + fused->ToText();
    const std::string path = HEDDLE_SOURCE_DIR "/tests/golden/fusion/" + name + ".txt";
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path) << actual;
      continue;
    }
    std::stringstream expected;
    expected << std::ifstream(path).rdbuf();
    EXPECT_EQ(actual, expected.str()) << path;
  }
}

}  // namespace
}  // namespace heddle::compiler

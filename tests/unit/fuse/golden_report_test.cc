// SPDX-License-Identifier: Apache-2.0
// What explain prints for the worked examples: tests/golden/fusion/*.txt. UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <tuple>

#include "compiler/fuse/fuse.h"
#include "tests/unit/fuse/examples.h"

namespace heddle::compiler {
namespace {

TEST(GoldenReportTest, TheExamplesAreExplainedAsWritten) {
  const MachineConstants published = PublishedConstants(16);
  const std::tuple<std::string, Graph, MachineConstants> examples[] = {
      {"example_a", ExampleA(), published},
      {"example_b", ExampleB(), published},
      {"example_c", ExampleC(), published},
      {"example_d", ExampleD(), published},
      {"example_e", ExampleE(), published},
      {"normalized_columns", NormalizedColumns("exp"), DefaultConstants(2)}};
  for (const auto& [name, graph, constants] : examples) {
    FuseOptions options;
    options.constants = constants;
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

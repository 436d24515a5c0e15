// SPDX-License-Identifier: Apache-2.0
// What -stats tells of recursions: how often bodies are made, and how much memory they take at once.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scripts/script_case.h"

namespace heddle {
namespace {

using testing_support::Finished;

Finished RunScript(const std::string& name, const std::vector<std::string>& options,
                   const std::vector<std::string>& arguments = {}) {
  const testing_support::TemporaryFolder folder;
  std::vector<std::string> command = {HEDDLE_BINARY_DIR "/heddle", "run", "-stats"};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(HEDDLE_SOURCE_DIR "/tests/scripts/data/" + name);
  command.insert(command.end(), arguments.begin(), arguments.end());
  Finished finished = testing_support::RunProcess(command, folder.path());
  EXPECT_EQ(finished.code, 0) << finished.errors;
  return finished;
}

size_t CountOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Recursion, BodiesServeAllValuesThatNoSizeDependsOn) {
  const Finished batched = RunScript("recursion_rates.dml", {});
  EXPECT_EQ(CountOf("Recursion f, nodes with 0 calls", batched.errors), 1u) << batched.errors;
  EXPECT_EQ(CountOf("Recursion f, nodes with 1 calls", batched.errors), 1u) << batched.errors;
  EXPECT_EQ(batched.output, RunScript("recursion_rates.dml", {"--disable-pass", "recursion"}).output);
}

// The rows of all nodes are 80 MB and more, those of the roots 1 MB.
TEST(Recursion, AForestThatDoesNotFitRunsInGroupsOfRoots) {
  const std::vector<std::string> arguments = {"-nvargs", "columns=256"};
  const Finished whole = RunScript("recursion_memory.dml", {"--memory", "4G"}, arguments);
  const Finished groups = RunScript("recursion_memory.dml", {"--memory", "100M"}, arguments);
  EXPECT_EQ(groups.output, whole.output);
  EXPECT_EQ(CountOf("for want of memory", whole.errors), 0u) << whole.errors;
  EXPECT_GE(CountOf("for want of memory", groups.errors), 1u) << groups.errors;
}

}  // namespace
}  // namespace heddle

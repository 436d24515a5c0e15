// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/distribution_text.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::engine {
namespace {

using scheduler::GraphUnderTest;
using scheduler::MatrixOf;

// The lines without costs, which depend on the constants of a machine.
std::string WithoutCosts(const std::string& text) {
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    const size_t colon = line.rfind(": ");
    kept += line.starts_with("    costs") || line.starts_with("    rejected") ? line.substr(0, colon) : line;
    kept += '\n';
    begin = end + 1;
  }
  return kept;
}

TEST(DistributionTextTest, TellsWhatIsByColumns) {
  SessionOptions options;
  options.ranks = 4;
  DistributionText distribution(options);
  GraphUnderTest first;
  const NodeId a = first.Variable("A", MatrixOf(1'000'000, 20));
  first.Assign("X", first.Op("abs", {a}, MatrixOf(1'000'000, 20)));
  ASSERT_TRUE(distribution.Of(first.graph).ok());
  GraphUnderTest second;
  const NodeId x = second.Variable("X", MatrixOf(1'000'000, 20));
  const NodeId turned = second.Op("t", {x}, MatrixOf(20, 1'000'000));
  const NodeId sums = second.Op("colSums", {turned}, MatrixOf(1, 1'000'000));
  second.Assign("Y", second.Op("cbind", {sums, sums}, MatrixOf(1, 2'000'000)));
  const Result<std::string> text = distribution.Of(second.graph);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(
      WithoutCosts(*text),
      "  line 3 t 20x1000000: by columns 229376 + 262144 + 262144 + 246336, each part turned where it is\n"
      "    costs so\n"
      "    rejected: in 2 stages, by rows 0 + 0 + 0 + 20\n"
      "    rejected: by rows 0 + 0 + 0 + 20, each part turned where it is\n"
      "  line 3 colSums 1x1000000: by columns 229376 + 262144 + 262144 + 246336\n"
      "    costs so\n"
      "    rejected: reduced by rows 0 + 0 + 0 + 20, result on each worker\n"
      "    rejected: reduced by rows 0 + 0 + 0 + 20, result on worker 0\n"
      "    rejected: reduced by rows 0 + 0 + 0 + 20, finished in parts, result on worker 0\n"
      "    rejected: reduced by rows 0 + 0 + 0 + 20, finished in parts, result on each worker\n"
      "  line 3 cbind 1x2000000: each worker fetches its columns, by columns 458752 + 524288 + 524288 + "
      "492672\n"
      "    costs so\n"
      "    rejected: on worker 0\n");
}

}  // namespace
}  // namespace heddle::engine

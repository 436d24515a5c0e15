// SPDX-License-Identifier: Apache-2.0
// Two regressions on real data, run in every way Heddle runs: the same output files, byte for byte, and the
// same objective and coefficients as an independent computation in NumPy and SciPy (regression_reference.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cluster/cluster_of_processes.h"
#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;

const char* const kBinary = HEDDLE_BINARY_DIR "/heddle";

std::string DataPath() {
  return std::filesystem::weakly_canonical(HEDDLE_SOURCE_DIR "/../shared/data/a9a.libsvm.gz");
}

std::vector<std::string> Words(std::vector<std::string> first, const std::string& algorithm,
                               const std::string& model) {
  for (const std::string& word :
       {std::string("--min-distributed-bytes"), std::string("0"), std::string("--stats"),
        std::string("--json"), std::string(HEDDLE_SOURCE_DIR "/examples/") + algorithm + ".dml",
        std::string("-nvargs"), "X=" + DataPath(), "model=" + model})
    first.push_back(word);
  return first;
}

// Every rank held rows and exchanged bytes (the JSON lines of -stats).
void ExpectEveryRankWorked(const std::string& errors, int ranks) {
  int seen = 0;
  size_t begin = 0;
  while (begin < errors.size()) {
    const size_t end = std::min(errors.find('\n', begin), errors.size());
    const nlohmann::json line = nlohmann::json::parse(errors.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!line.is_object() || !line.contains("rows_held")) continue;
    ++seen;
    if (ranks > 1) {
      EXPECT_GT(line["rows_held"].get<int64_t>(), 0) << line;
      EXPECT_GT(line["bytes_sent"].get<int64_t>() + line["bytes_received"].get<int64_t>(), 0) << line;
    }
  }
  EXPECT_EQ(seen, ranks) << errors;
}

class RegressionTest : public testing::TestWithParam<const char*> {};

TEST_P(RegressionTest, SameBytesEverywhereAndTheRightAnswer) {
  // Real data stay with their owners; they lie beside the checkout where tests are developed.
  if (!std::filesystem::exists(DataPath())) GTEST_SKIP() << "no " << DataPath();
  const std::string algorithm = GetParam();
  const testing_support::TemporaryFolder folder;
  auto model = [&](const std::string& name) { return folder.path() + "/" + name + ".csv"; };

  const Finished first = testing_support::RunProcess(
      Words({kBinary, "run", "--threads", "1"}, algorithm, model("first")), folder.path(), 300);
  ASSERT_EQ(first.code, 0) << first.errors;
  const std::string expected = ReadText(model("first"));
  ASSERT_FALSE(expected.empty());

  struct Variant {
    std::vector<std::string> words;
    int ranks;
  };
  std::vector<Variant> variants = {{{kBinary, "run", "--threads", "2"}, 1}};
  for (int workers = 1; workers <= 4; ++workers)
    variants.push_back({{kBinary, "sim", "--workers", std::to_string(workers), "--threads", "1"}, workers});
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.words[1] + " " + variant.words[3]);
    const std::string name = variant.words[1] + variant.words[3];
    const Finished finished =
        testing_support::RunProcess(Words(variant.words, algorithm, model(name)), folder.path(), 300);
    ASSERT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(finished.output, first.output);
    EXPECT_EQ(ReadText(model(name)), expected);
    if (variant.words[1] == "sim") ExpectEveryRankWorked(finished.errors, variant.ranks);
  }

  testing_support::ClusterOfProcesses cluster;
  cluster.StartWorker("first");
  cluster.StartWorker("second");
  const Finished job =
      cluster.Run(Words({"job", "submit", "--workers", "2", "--threads", "1"}, algorithm, model("job")));
  ASSERT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, first.output);
  EXPECT_EQ(ReadText(model("job")), expected);
  ExpectEveryRankWorked(job.errors, 2);

  // The first line is "objective <number>".
  const std::string objective = first.output.substr(10, first.output.find('\n') - 10);
  const Finished reference = testing_support::RunProcess(
      {"/usr/bin/python3", HEDDLE_SOURCE_DIR "/tests/regression/regression_reference.py", algorithm,
       DataPath(), objective, model("first")},
      folder.path(), 300);
  EXPECT_EQ(reference.code, 0) << reference.output << reference.errors;
  std::printf("%s", reference.output.c_str());
}

INSTANTIATE_TEST_SUITE_P(Regression, RegressionTest, testing::Values("l2svm", "linreg_cg"),
                         [](const testing::TestParamInfo<const char*>& info) { return info.param; });

}  // namespace
}  // namespace heddle

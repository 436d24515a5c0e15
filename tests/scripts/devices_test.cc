// SPDX-License-Identifier: Apache-2.0
// Scripts print the same bytes where a device computes what it can (docs/devices.md). On machines without an
// OpenCL device (Debian: pocl-opencl-icd) these tests are skipped. HEDDLE_ALL_PLANS=1 takes every script.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

using testing_support::Finished;

Finished Heddle(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  return testing_support::RunProcess(words, testing_support::TemporaryFolder().path());
}

// Whether the first device of this machine is one that Heddle uses.
bool HasDevice() {
  static const bool has = Heddle({"run", "--devices", "opencl:0", "-e", "print(1)"}).errors.empty();
  return has;
}

class DeviceScripts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  }
};

// Cells, rows, reductions, stitches, loops and functions: compiling a kernel takes longer than all else.
std::vector<std::string> Scripts() {
  const std::set<std::string> sample = {"example_l2svm", "several_results"};
  std::vector<std::string> paths;
  for (const std::string& path : ScriptCases())
    if (testing_support::RunsAllPlans() || sample.contains(std::filesystem::path(path).stem().string()))
      paths.push_back(path);
  return paths;
}

TEST_P(DeviceScripts, PrintTheSameBytes) {
  const std::filesystem::path path = GetParam();
  const std::string expected =
      testing_support::ReadText(std::filesystem::path(path).replace_extension(".expected"));
  for (const char* variant : {"run --devices opencl:0",
                              "sim --workers 2 --min-distributed-bytes 0 --devices opencl:0 --fusion all"}) {
    SCOPED_TRACE(variant);
    const Finished finished = RunCase(variant, path);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(finished.output, expected);
    EXPECT_EQ(finished.errors.find("in place of a device"), std::string::npos) << finished.errors;
  }
}

INSTANTIATE_TEST_SUITE_P(Scripts, DeviceScripts, testing::ValuesIn(Scripts()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

// A machine without the device: the processor computes, and says so.
TEST(DevicesTest, AMissingDeviceIsTheProcessor) {
  const Finished finished =
      Heddle({"run", "--devices", "opencl:99", "-e", "print(sum(rand(rows=300, cols=30, seed=1)))"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(finished.output, Heddle({"run", "-e", "print(sum(rand(rows=300, cols=30, seed=1)))"}).output);
  EXPECT_NE(finished.errors.find("the processor computes in place of a device"), std::string::npos)
      << finished.errors;
}

// A loop on a device reads what it had copied before, in blocks of its own, and leaves its values there.
TEST(DevicesTest, VariablesStayOnADevice) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const std::string script =
      "X = rand(rows=3000, cols=10, seed=1); w = matrix(0.5, 10, 1); L = list(w)\n"
      "for (i in 1:4) { w = w - 0.0001 * (t(X) %*% (X %*% w)); if (i == 2) L = append(L, w) }\n"
      "X[2, ] = t(w); print(sum(X)); print(sum(as.matrix(L[2]))); print(toString(w))";
  const Finished here = Heddle({"run", "-e", script});
  const Finished there = Heddle({"run", "--devices", "opencl:0", "-stats", "-e", script});
  EXPECT_EQ(there.code, 0) << there.errors;
  EXPECT_EQ(there.output.substr(0, here.output.size()), here.output);
  // X once, with its 3000 rows, and few of w: not in each round.
  const std::string all = there.output + there.errors;
  const size_t line = all.find("\nvariable.transfer ");
  ASSERT_NE(line, std::string::npos) << all;
  long long count = 0, rows = 0;
  double ms = 0;
  ASSERT_EQ(std::sscanf(all.c_str() + line, "\nvariable.transfer %lld %lf %lld", &count, &ms, &rows), 3) << all;
  EXPECT_GE(rows, 3000) << all;
  EXPECT_LT(rows, 3200) << all;
}

TEST(DevicesTest, ExplainTellsWhereOperatorsRun) {
  const Finished finished =
      Heddle({"explain", "--level", "placement", "--devices", "opencl:0", "-e",
              "X = rand(rows=3000, cols=10, seed=1)\nprint(sum(exp(X)))\nprint(toString(t(X)))"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  if (HasDevice())
    for (const char* const text : {"line 1 rand 3000x10: on the processor, no kernel: rand\n",
                                   "copies rand 3000x10 to opencl:0\n", ": on opencl:0\n"})
      EXPECT_NE(finished.output.find(text), std::string::npos) << finished.output;
  else
    EXPECT_EQ(finished.output, "the processor computes everything\n");
}

TEST(DevicesTest, AreListed) {
  const Finished finished = Heddle({"devices"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_NE(finished.output.find(HasDevice() ? "a launch takes " : "no device beside the processor: "),
            std::string::npos)
      << finished.output;
}

}  // namespace
}  // namespace heddle

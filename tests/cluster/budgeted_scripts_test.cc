// SPDX-License-Identifier: Apache-2.0
// Random programs with random --memory, in one process and on two workers: the output of the run that has all
// memory that it wants, or exit code 5 and the numbers; never killed, and never larger, as the kernel counts
// it, than docs/memory.md says.
#include <gtest/gtest.h>

#include <cmath>

#include "core/environment/random.h"
#include "core/memory/counted_heap.h"
#include "tests/cluster/cluster_of_processes.h"
#include "tests/support/measured_process.h"
#include "tests/support/seeds.h"
#include "tests/unit/engine/random_programs.h"

namespace heddle {
namespace {

using testing_support::MeasuredEnd;

class BudgetedScriptsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HeapIsCounted()) GTEST_SKIP() << "sanitizers take memory of their own";
  }

  // From 4 MiB to 128 MiB, each power of two as often as the others.
  static int64_t RandomMemory(SeededRandom& random) {
    return static_cast<int64_t>(std::exp2(22.0 + 5.0 * static_cast<double>(random.Below(1000)) / 1000));
  }

  MeasuredEnd Run(std::vector<std::string> words) {
    words.insert(words.begin(), testing_support::Binary());
    words.push_back("random.dml");
    return testing_support::RunMeasured(words, folder_.path());
  }
  std::string Output() const { return testing_support::ReadText(folder_.path() + "/output"); }

  void Try(uint64_t seed, std::vector<std::string> verb) {
    SeededRandom random(seed ^ 0x6d656d);
    const std::string script =
        engine::RandomMatrixProgram(seed, {.times_rows = 50, .may_be_wide = false, .by_rows = true});
    testing_support::WriteText(folder_.path() + "/random.dml", script);
    const MeasuredEnd whole = Run({"run", "--seed", "42"});
    const std::string expected = Output();
    const int64_t memory = RandomMemory(random);
    verb.insert(verb.end(), {"--seed", "42", "--memory", std::to_string(memory)});
    const MeasuredEnd ended = Run(verb);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << memory << " bytes\n" << script);
    EXPECT_LE(ended.peak_bytes, testing_support::MostOfProcess(memory));
    larger_ += whole.peak_bytes > testing_support::MostOfProcess(memory);
    if (ended.code == 5) {
      const bool says_why = ended.text.find("error: out of memory: ") != std::string::npos ||
                            ended.text.find(": out of memory: ") != std::string::npos ||
                            ended.text.find(": spill: ") != std::string::npos;
      EXPECT_TRUE(says_why && ended.text.find("memory") != std::string::npos) << ended.text;
      EXPECT_EQ(expected.substr(0, Output().size()), Output());
      ++refused_;
      return;
    }
    ASSERT_EQ(ended.code, whole.code) << ended.text;
    ASSERT_EQ(Output(), expected);
    ++right_;
    right_in_less_ += whole.peak_bytes > testing_support::MostOfProcess(memory);
  }

  void TryAll(const std::vector<std::string>& verb) {
    const testing_support::Seeds seeds = testing_support::SeedsOf(12);
    for (uint64_t seed = seeds.begin; seed < seeds.end && !HasFatalFailure(); ++seed) Try(seed, verb);
    std::printf("%d right, %d refused; %d needed more whole, of which %d were right\n", right_, refused_,
                larger_, right_in_less_);
    EXPECT_GT(right_, 0);
    EXPECT_GT(refused_, 0);
  }

  testing_support::TemporaryFolder folder_;
  int right_ = 0, refused_ = 0, larger_ = 0, right_in_less_ = 0;
};

TEST_F(BudgetedScriptsTest, OneProcess) { TryAll({"run"}); }
TEST_F(BudgetedScriptsTest, TwoWorkers) { TryAll({"sim", "--workers", "2"}); }

}  // namespace
}  // namespace heddle

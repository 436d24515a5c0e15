// SPDX-License-Identifier: Apache-2.0
// The first Ctrl-C is answered within a second, whatever a script computes.
#include <algorithm>
#include <chrono>
#include <sstream>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

using Clock = std::chrono::steady_clock;

struct LongStep {
  const char* name;
  const char* script;
};

// Each takes at least ten seconds on one thread.
constexpr LongStep kSteps[] = {
    {"inv", "x = sum(inv(A))"},
    {"solve", "x = sum(solve(A, A[, 1]))"},
    {"det", "x = det(A) + det(A + 1) + det(A + 2) + det(A + 3)"},
    {"cholesky", "x = sum(cholesky(A %*% t(A)) + inv(A))"},
    {"lu", "[P, L, U] = lu(A); x = sum(L) + sum(inv(U + A))"},
    {"qr", "[H, R] = qr(A); x = sum(R)"},
    {"eigen", "[w, V] = eigen(A + t(A)); x = sum(V)"},
    {"eigen_general", "[w, V] = eigen(A); x = sum(V)"},
    {"svd", "[U, S, V] = svd(A); x = sum(U)"},
    {"sqrtMatrixJava", "x = sum(sqrtMatrixJava(A))"},
    {"fft", "[R, I] = fft(rand(rows=3001, cols=3001, seed=2)); x = sum(R)"},
    {"product", "for (i in 1:1000) { A = A %*% A / 1000 }; x = sum(A)"},
    {"order", "x = sum(order(target=rand(rows=30000000, cols=1, seed=2), by=1))"},
    {"quantiles", "for (i in 1:100000000) { x = x + qf(target=0.3 + i / 1e9, df1=3, df2=1e11) }"},
};

class Interrupted : public testing::TestWithParam<LongStep> {};

// The step is a block of its own, which begins when the one before it has printed.
void ExpectAnswer(const std::vector<std::string>& verb, const std::string& script) {
  TemporaryFolder folder;
  std::vector<std::string> words = {Binary()};
  words.insert(words.end(), verb.begin(), verb.end());
  words.insert(words.end(), {"-e",
                             "A = rand(rows=3000, cols=3000, seed=1)\nx = 0\nprint(\"begun \" + sum(A))\n"
                             "if (sum(A) > 0) {\n" +
                                 script + "\n}\nprint(\"done \" + x)"});
  BackgroundProcess process(words, folder.path());
  ASSERT_TRUE(process.WaitFor("begun")) << process.output();
  usleep(300'000);  // Into the step.
  const auto begin = Clock::now();
  process.Signal(SIGINT);
  const int code = process.Wait();
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  EXPECT_EQ(code, 8) << process.output();
  EXPECT_LT(elapsed, 1.0 * kPatience + 0.5);
  EXPECT_NE(process.output().find("cancelled by a signal"), std::string::npos) << process.output();
}

TEST_P(Interrupted, RunAnswersWithinASecond) { ExpectAnswer({"run", "--threads", "1"}, GetParam().script); }

TEST(InterruptedTest, SimAnswersWithinASecond) {
  ExpectAnswer({"sim", "--workers", "2", "--threads", "1"}, "x = sum(inv(A))");
}

// The signal ends a write to a pipe that nobody empties, which is no fault of the output.
TEST(InterruptedTest, AnswersWhileNobodyReadsItsOutput) {
  TemporaryFolder folder;
  BackgroundProcess process(
      {Binary(), "run", "-e", "for (i in 1:100000000) { print(\"a line of text \" + i) }"}, folder.path());
  ASSERT_TRUE(process.WaitFor("line"));
  usleep(300'000);  // The pipe is full by then.
  process.Signal(SIGINT);
  usleep(1'500'000);  // It may write no more: what is asked is how it ends.
  EXPECT_EQ(process.Wait(), 8);
}

// Processor time of a process so far, in hundredths of a second.
int64_t TicksOf(pid_t pid) {
  const std::string stat = ReadText("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;  // From the state on.
  int64_t user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

TEST(InterruptedTest, AScriptThatIsBeingCompiledIsNoneThatRuns) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "x" + std::to_string(i) + " = " + std::to_string(i) + " + 1\n";
  WriteText(folder.path() + "/long.dml", text + "print(1)\n");
  BackgroundProcess process({Binary(), "run", "long.dml"}, folder.path());
  while (TicksOf(process.pid()) < 20) usleep(5'000);  // Between two looks.
  const auto begin = Clock::now();
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 8) << process.output();
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(1500) * kPatience);
  EXPECT_NE(process.output().find("cancelled by a signal"), std::string::npos) << process.output();
}

INSTANTIATE_TEST_SUITE_P(InterruptTest, Interrupted, testing::ValuesIn(kSteps),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace heddle::testing_support

// SPDX-License-Identifier: Apache-2.0
// Variables larger than memory in sessions of statements, and runs for which nobody has set a limit.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "engine/engine.h"
#include "tests/support/process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

size_t HashOf(const Matrix& matrix) {
  return std::hash<std::string_view>()(
      {matrix.data<char>(), static_cast<size_t>(matrix.cells()) * sizeof(double)});
}

// The limit of the process is what it was when the test has ended.
class PanelsOfSessionTest : public testing::Test {
 protected:
  PanelsOfSessionTest() : limit_(MemoryBudget::Process().limit()) {}
  ~PanelsOfSessionTest() override {
    SetLimit(limit_);
    BlockPool::Process().Trim();
  }
  static void SetLimit(int64_t bytes) { MemoryBudget::Process().SetLimit(bytes); }

  EngineOptions OptionsOf(int64_t memory_bytes) const {
    EngineOptions options;
    options.directory = folder_.path();
    options.session.threads = 1;
    options.session.memory_bytes = memory_bytes;
    options.session.seed = 1;
    return options;
  }

  static void Run(InteractiveSession& session, const std::string& entry) {
    const Status status = session.Run(entry, nullptr);
    ASSERT_TRUE(status.ok()) << entry << "\n" << status.ToString();
  }
  static bool IsPanels(const InteractiveSession& session, const std::string& name) {
    const Variable* const variable = session.variables().Find(name);
    return variable != nullptr && variable->value.IsPanels();
  }

  const int64_t limit_;
  const testing_support::TemporaryFolder folder_;
};

// Rows of another file are none of the variable's.
TEST_F(PanelsOfSessionTest, AFileThatAnotherProgramReplacesIsAnError) {
  EngineOptions options = OptionsOf(0);
  options.session.panel_bytes = 1;
  const Result<std::unique_ptr<Engine>> engine = Engine::Create(options);
  ASSERT_TRUE(engine.ok());
  const std::unique_ptr<InteractiveSession> session = (*engine)->NewSession({});
  Run(*session, "X = rand(rows=20000, cols=20, seed=1)");
  Run(*session, "write(X, \"x.bin\", format=\"binary\")\nwrite(X * 2, \"y.bin\", format=\"binary\")");
  Run(*session, "Z = read(\"x.bin\")");
  ASSERT_TRUE(IsPanels(*session, "Z"));
  std::filesystem::rename(folder_.path() + "/y.bin", folder_.path() + "/x.bin");
  const Status status = session->Run("print(sum(Z))", nullptr);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "cannot read 'x.bin': it changed while the script ran");
}

TEST_F(PanelsOfSessionTest, VariablesLiveOnFromOneStatementToTheNext) {
  const char* const kEntries[] = {
      "X = rand(rows=600000, cols=24, seed=1)",
      "Y = X * 2 + 1",
      "write(X, \"x.bin\", format=\"binary\")",
      "Z = read(\"x.bin\")",
      "write(Y, \"x.bin\", format=\"binary\")",  // Z has rows of the file that is gone
      "s = sum(Y) + sum(Z * Y)",
      "f = function(matrix[double] A) return (double t) { t = sum(A * A) }",
      "t = f(Y)"};
  std::string printed;
  RunCallbacks callbacks;
  callbacks.print = [&](std::string_view text) { printed += text; };
  // Of ranges of Y, which fit one by one, as hashes: the memory of copies would count.
  const auto hashes_of_ranges = [](InteractiveSession& session) {
    std::vector<size_t> hashes;
    for (int begin = 0; begin < 600000; begin += 200000) {
      Run(session, "y = Y[" + std::to_string(begin + 1) + ":" + std::to_string(begin + 200000) + ",]");
      const Result<HostValue> rows = session.Get("y");
      EXPECT_TRUE(rows.ok()) << rows.status().ToString();
      hashes.push_back(rows.ok() ? HashOf(rows->value.matrix()) : 0);
    }
    Run(session, "y = 0");
    return hashes;
  };
  std::vector<size_t> cells;
  std::vector<double> sums;
  {
    const Result<std::unique_ptr<Engine>> engine = Engine::Create(OptionsOf(int64_t{1} << 30));
    ASSERT_TRUE(engine.ok());
    const std::unique_ptr<InteractiveSession> whole = (*engine)->NewSession(callbacks);
    for (const char* const entry : kEntries) Run(*whole, entry);
    Run(*whole, "Y");
    EXPECT_FALSE(IsPanels(*whole, "X"));
    EXPECT_TRUE(whole->Get("Y").ok());
    cells = hashes_of_ranges(*whole);
    for (const char* const name : {"s", "t"}) sums.push_back(whole->Get(name)->value.scalar().AsDouble());
  }
  const std::string shown_whole = std::exchange(printed, "");

  BlockPool::Process().Trim();
  Result<std::unique_ptr<Engine>> engine =
      Engine::Create(OptionsOf(MemoryBudget::Process().used() + 72 * kMiB));
  ASSERT_TRUE(engine.ok());
  const std::unique_ptr<InteractiveSession> panels = (*engine)->NewSession(callbacks);
  engine->reset();
  for (const char* const entry : kEntries) Run(*panels, entry);
  for (const char* const name : {"X", "Y", "Z"}) EXPECT_TRUE(IsPanels(*panels, name)) << name;
  EXPECT_EQ(panels->Get("s")->value.scalar().AsDouble(), sums[0]);
  EXPECT_EQ(panels->Get("t")->value.scalar().AsDouble(), sums[1]);

  Run(*panels, "Y");
  EXPECT_EQ(*panels->TypeOf("Y"), "matrix 600000x24, in panels");
  const size_t head = shown_whole.find("(matrix");
  ASSERT_NE(head, std::string::npos) << shown_whole;
  EXPECT_EQ(printed, shown_whole.substr(0, head) + "(matrix 600000x24, in panels: its head)\n");

  // The host gets it whole, or the numbers.
  const Status refused = panels->Get("Y").status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("out of memory: a matrix of "), std::string::npos) << refused.ToString();
  EXPECT_NE(refused.ToString().find("the rows of 'Y' are not all in memory; read some of them: Y[1:1000,]"),
            std::string::npos);
  EXPECT_EQ(hashes_of_ranges(*panels), cells);
  EXPECT_TRUE(IsPanels(*panels, "Y"));

  // A statement that fails changes nothing.
  EXPECT_EQ(panels->Run("Y = Y + 1\nstop(\"no\")", nullptr).code(), StatusCode::kAborted);
  panels->Clear();
  EXPECT_EQ(panels->Get("Y").status().code(), StatusCode::kNotFound);
}

TEST_F(PanelsOfSessionTest, OutputsOfARunArePutTogether) {
  Result<std::unique_ptr<Engine>> engine = Engine::Create(OptionsOf(32 * kMiB));
  ASSERT_TRUE(engine.ok());
  BlockPool::Process().Trim();
  const Script script{.text = "X = rand(rows=400000, cols=15, seed=1)\nY = X * 2\ns = sum(Y)"};
  const Result<RunResults> results = (*engine)->Run(script, {}, {"s"});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_GT(results->outputs.at("s").value.scalar().AsDouble(), 0);
  const Script wide{.text = "X = rand(rows=400000, cols=30, seed=1)\nY = X * 2\ns = sum(Y)"};
  const Status refused = (*engine)->Run(wide, {}, {"Y"}).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.ToString();
}

// Without --memory the limit of the process decides, and plans that fit are those of a run without any.
TEST_F(PanelsOfSessionTest, WhatTheProcessMayHoldLetsBlocksStream) {
  Result<std::unique_ptr<Engine>> engine = Engine::Create(OptionsOf(0));
  ASSERT_TRUE(engine.ok());
  const Script script{.text = "X = rand(rows=200000, cols=20, seed=1)\nprint(sum((X - colMeans(X))^2))"};
  std::string printed, plans;
  RunCallbacks callbacks;
  callbacks.print = [&](std::string_view text) { printed += text; };
  callbacks.observe = [&](std::string_view text) { plans += text; };
  ASSERT_TRUE((*engine)->Run(script, {}, {}, callbacks).ok());
  const std::string whole = std::exchange(printed, ""), plans_of_whole = std::exchange(plans, "");
  EXPECT_EQ(plans_of_whole.find("unpack"), std::string::npos);

  SetLimit(int64_t{1} << 40);
  ASSERT_TRUE((*engine)->Run(script, {}, {}, callbacks).ok());
  EXPECT_EQ(std::exchange(plans, ""), plans_of_whole);
  EXPECT_EQ(std::exchange(printed, ""), whole);

  BlockPool::Process().Trim();
  SetLimit(MemoryBudget::Process().used() + 12 * kMiB);
  const Result<RunResults> results = (*engine)->Run(script, {}, {}, callbacks);
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_EQ(printed, whole);
  EXPECT_NE(plans.find("unpack"), std::string::npos) << plans;

  // What has to be whole is tried: the plan counts more than it takes, or the kernel says that it does not
  // fit.
  const Status refused =
      (*engine)
          ->Run({.text = "X = rand(rows=200000, cols=20, seed=1)\n[U, S, V] = svd(X)\nprint(sum(S))"})
          .status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.ToString();
  EXPECT_NE(
      refused.ToString().find("give more memory (--memory SIZE), use more workers, or work on fewer rows"),
      std::string::npos)
      << refused.ToString();
}

// All ranks go by one number.
TEST(AvailableMemoryTest, RanksStreamAlike) {
  const std::string script =
      "X = rand(rows=20000, cols=20, min=-1, max=1, seed=3)\nY = (X - colMeans(X)) / sqrt(colVars(X))\n"
      "print(sum(Y^2) + \" \" + sum(t(X) %*% Y))\n";
  const ScriptOutcome whole = RunScript(script);
  ASSERT_TRUE(whole.status.ok());
  for (const int ranks : {1, 3}) {
    SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks);
    options.available_bytes = kMiB;
    const ScriptOutcome panels = RunScript(script, options);
    EXPECT_EQ(panels.status.ToString(), "ok");
    EXPECT_EQ(panels.output, whole.output);
  }
}

TEST(SpillFolderTest, IsLookedAtBeforeAScriptRuns) {
  EngineOptions options;
  options.session.spill_folder = "there_is_no_such_folder";
  const Status missing = Engine::Create(options).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "spill-folder: there is no folder 'there_is_no_such_folder'");
  options.session.spill_folder = "/proc";
  const Status closed = Engine::Create(options).status();
  EXPECT_EQ(closed.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(closed.message().find("spill-folder: cannot make a file in '/proc': "), 0u) << closed.message();
}

}  // namespace
}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
// A rank that fails alone, outside of a plan: the others wait for it in a plan, or for a decision, or come to
// the end of the script. All of them end with its error.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/compile.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "engine/blocks/scalar_program.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr const char* kScript =
    "X = rand(rows=300, cols=3, seed=1)\ns = 0\n"
    "for (i in 1:3) {\n  X = X + 1\n  if (sum(X) > 0) { s = s + i }\n  print(s + \" \" + sum(X))\n}\n"
    "l = list(X, s)\nprint(length(l))\nprint(\"end\")";

// Runs the script with a fault of one rank before each of its blocks in turn.
void ExpectTheFaultOfOneRank(size_t failing, const Status& fault) {
  const Program program = CompileOrDie(kScript);
  Stretch whole;
  ASSERT_TRUE(RunProgram(program, SplitOver(3), &whole).status.ok());
  ASSERT_GT(whole.blocks, 10);
  for (int64_t at = 0; at < whole.blocks; ++at) {
    SCOPED_TRACE(testing::Message() << "rank " << failing << " fails before block " << at);
    Stretch stretch;
    stretch.fault = [&](size_t rank, int64_t block) {
      return rank == failing && block == at ? fault : OkStatus();
    };
    const ScriptOutcome outcome = RunProgram(program, SplitOver(3), &stretch);
    EXPECT_EQ(outcome.status.message(), fault.message());
    EXPECT_EQ(outcome.status.code(), fault.code());
    if (testing::Test::HasFailure()) return;
  }
}

// Of codes, too, that every rank may have at once.
TEST(LoneFailureTest, ReachesRanksThatWaitAnywhere) {
  for (const size_t rank : {0u, 1u, 2u}) ExpectTheFaultOfOneRank(rank, FailedPrecondition("a fault"));
  ExpectTheFaultOfOneRank(1, NotFound("no such file"));
  ExpectTheFaultOfOneRank(1, ResourceExhausted("no memory"));
}

// Should a failure say of itself that every rank has it, and they have not: nobody waits for ever.
TEST(LoneFailureTest, WhoIsWrongAboutTheOthersDoesNotWaitForThem) {
  for (const size_t rank : {0u, 1u}) ExpectTheFaultOfOneRank(rank, Aborted("stop").OnEveryRank());
}

// Blocks that call a function of their own: the calls are those of the rank that fails, whatever the others
// are at when they hear of it.
TEST(LoneFailureTest, TellsTheCallsOfTheRankThatFailed) {
  compiler::CompileOptions compile;
  compile.script = "test.dml";
  compile.disabled_passes = {"inline-functions"};
  compiler::Diagnostics diagnostics;
  const Result<Program> program = compiler::CompileScript(
      "inner = function(matrix[double] X, int i) return (double y) {\n  y = sum(X * i)\n  print(y > i)\n}\n"
      "outer = function(matrix[double] X, int i) return (double y) {\n  y = inner(X, i) + 1\n}\n"
      "X = rand(rows=300, cols=3, seed=1)\ns = 0\n"
      "for (i in 1:2) {\n  s = s + outer(X, i) + inner(X, i + 1)\n  s = s + sum(X - i)\n}\nprint(s > 0)",
      compile, &diagnostics);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  Stretch whole;
  ASSERT_TRUE(RunProgram(*program, SplitOver(3), &whole).status.ok());
  const Status fault = ResourceExhausted("no memory").At({"test.dml", 1, 1});
  size_t most_calls = 0;
  for (int64_t at = 0; at < whole.blocks; ++at) {
    std::vector<std::string> notes;
    for (const size_t failing : {0u, 1u, 2u}) {
      SCOPED_TRACE(testing::Message() << "rank " << failing << " fails before block " << at);
      Stretch stretch;
      stretch.fault = [&](size_t rank, int64_t block) {
        return rank == failing && block == at ? fault : OkStatus();
      };
      const Status status = RunProgram(*program, SplitOver(3), &stretch).status;
      EXPECT_EQ(status.message(), fault.message());
      if (failing == 0) notes = status.notes();
      EXPECT_EQ(status.notes(), notes);
    }
    most_calls = std::max(most_calls, notes.size());
  }
  EXPECT_EQ(most_calls, 2u);
}

// Rank 1, which prints nothing, is in the plan of the fourth round long before rank 0, which still prints
// what comes before it: it takes its time between two blocks, in which a rank that did not wait for it would
// end it.
TEST(LoneFailureTest, APlanThatFailsEndsTheScriptBehindWhatComesBeforeIt) {
  const Program program = CompileOrDie(
      "X = rand(rows=3, cols=2, seed=1)\nfor (i in 1:5) {\n  for (j in 1:2) {\n    print(i * 10 + j)\n  }\n"
      "  print(as.scalar(X[i, 1]) > 0)\n}");
  Stretch stretch;
  stretch.fault = [&](size_t rank, int64_t) {
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return OkStatus();
  };
  const ScriptOutcome outcome = RunProgram(program, SplitOver(2), &stretch);
  EXPECT_EQ(outcome.status.message(), "index [4,1] is out of range for a 3x2 matrix");
  EXPECT_EQ(outcome.status.position().line, 6);
  EXPECT_EQ(outcome.output, "11\n12\nTRUE\n21\n22\nTRUE\n31\n32\nTRUE\n41\n42\n");
}

// The plan of the loop is there since its first round: rank 0 has nothing more to say before it waits.
TEST(LoneFailureTest, AFileThatOneRankMisses) {
  std::vector<std::string> folders;
  for (const std::string name : {"lone_a", "lone_b"}) {
    folders.push_back(testing::TempDir() + name);
    std::filesystem::create_directories(folders.back());
    std::filesystem::remove(folders.back() + "/X.csv");
  }
  std::ofstream(folders[0] + "/X.csv") << "1,2\n3,4\n5,6\n";
  std::filesystem::create_hard_link(folders[0] + "/X.csv", folders[1] + "/X.csv");
  const Program program = CompileOrDie(
      "s = 0\nfor (i in 1:6) {\n  X = read(\"X.csv\", format=\"csv\")\n  s = s + sum(X * i)\n}\nprint(s)");
  Stretch stretch;
  stretch.folders = folders;
  stretch.fault = [&](size_t rank, int64_t block) {
    if (rank == 1 && block == 4) std::filesystem::remove(folders[1] + "/X.csv");
    return OkStatus();
  };
  const ScriptOutcome outcome = RunProgram(program, SplitOver(2), &stretch);
  EXPECT_EQ(outcome.status.code(), StatusCode::kDataLoss) << outcome.status.ToString();
  EXPECT_EQ(outcome.status.message().substr(0, 45), "cannot read 'X.csv': worker 1 sees another fi");
  for (const std::string& folder : folders) std::filesystem::remove_all(folder);
}

class FailingOnOneRank : public ops::KernelSource {
 public:
  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    if (call.node.Is("+") && call.context.rank == 1) return FailedPrecondition("a fault of one rank");
    return ops::CatalogKernels().Run(call, results);
  }
};

// Terms are added on every rank; what fails there on one alone is not tried again by it alone.
TEST(LoneFailureTest, ASumOfAParforThatOneRankCannotAdd) {
  const FailingOnOneRank kernels;
  SessionOptions options = SplitOver(2);
  options.min_distributed_bytes = 1000;
  options.fusion = "off";
  const ScriptOutcome outcome = RunScript(
      "s = matrix(0, rows=300, cols=3)\nX = rand(rows=300, cols=3, seed=1)\n"
      "parfor (i in 1:4) {\n  s += X * i\n}\nprint(sum(s))",
      options, &kernels);
  EXPECT_EQ(outcome.status.message(), "a fault of one rank");
}

// Scalar work in place: a rank without memory must not ask for a plan, which no other rank asks for.
TEST(LoneFailureTest, AScalarForWhichThereIsNoMemory) {
  if (!HeapIsCounted()) GTEST_SKIP() << "the heap is not counted";
  Graph graph;  // t = s + s
  const auto add = [&](std::string_view op, std::vector<NodeId> inputs, const std::string& name) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    if (!name.empty()) node.SetAttribute("name", name);
    node.position = {"a.dml", 7, 1};
    return graph.Add(std::move(node));
  };
  const NodeId text = add("variable", {}, "s");
  add("assign", {add("+", {text, text}, "")}, "t");
  ops::KernelContext context;
  ScalarEvaluator evaluator(0, ops::CatalogKernels(), context);
  ScalarProgram program(graph);
  VariableTable frame;
  frame.SetScalar("s", Scalar(std::string(MemoryBudget::kHeapAllowance, 'x')));
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  BlockPool::Process().Trim();  // What other tests have left would make room.
  budget.SetLimit(std::max(budget.used(), HeapBytes() - MemoryBudget::kHeapAllowance) + (1 << 20));
  const Result<bool> refused = evaluator.Evaluate(&program, &frame);
  budget.SetLimit(limit);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(refused.status().is_on_every_rank());
  EXPECT_TRUE(refused.status().position().IsKnown());
  const Result<bool> done = evaluator.Evaluate(&program, &frame);
  EXPECT_TRUE(done.ok() && *done) << "the next time there is memory";
}

}  // namespace
}  // namespace heddle::engine

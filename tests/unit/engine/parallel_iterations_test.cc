// SPDX-License-Identifier: Apache-2.0
// Iterations of a parfor that run at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "core/environment/clock.h"
#include "engine/control/ordered_output.h"
#include "engine/variables/merge_cells.h"
#include "engine/variables/merge_variable.h"
#include "ops/io/files/files.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

SessionOptions OnThreads(int threads) {
  SessionOptions options;
  options.threads = threads;
  return options;
}

SessionOptions OnRanks(int ranks, int threads) {
  SessionOptions options = OnThreads(threads);
  options.ranks = ranks;
  return options;
}

const char* const kScripts[] = {
    // rows of one matrix, columns of another; output in order; unseeded numbers
    "R = matrix(7, rows=9, cols=3)\nC = matrix(0, rows=2, cols=9)\nparfor (i in 1:9) {\n"
    "  v = rand(rows=50, cols=4)\n  print(\"iteration \" + i)\n  R[i, 1] = sum(v)\n  R[i, 3] = i\n"
    "  C[, i] = matrix(max(v), rows=2, cols=1)\n"
    "  print(sum(v))\n}\nprint(i)\nprint(toString(R, decimal=17))\nprint(toString(C, decimal=17))\n"
    "print(sum(rand(rows=3, cols=3)))",
    // functions and loops in the body; a loop inside counts with a variable of before
    "f = function(matrix[double] A, integer n) return (double s) {\n  s = 0\n  for (k in 1:n) { s = s + "
    "sum(A * k) }\n}\nk = 100\nX = rand(rows=40, cols=6, seed=5)\nS = matrix(0, rows=6, cols=1)\n"
    "parfor (j in 1:6) {\n  t = f(X[, j], j)\n  if (t > 60) { print(j + \" large\") } else { print(j + \" "
    "small\") }\n  S[j, 1] = t\n}\nprint(toString(S, decimal=17))\nprint(k)",
    // downwards, with a parfor inside
    "R = matrix(0, rows=4, cols=4)\nparfor (i in seq(4, 1, -1)) {\n  parfor (j in 1:4) {\n    R[i, j] = i * "
    "10 + sum(rand(rows=2, cols=2))\n  }\n}\nprint(toString(R, decimal=17))\nprint(i)",
    // CSR, NaN, and cells that stay as they were
    "R = rand(rows=30, cols=30, sparsity=0.05, seed=2)\nparfor (i in 1:30) {\n  if (i %% 3 == 0) { R[i, i] = "
    "0 / 0 }\n  if (i %% 5 == 0) { R[i, 1] = 0 }\n}\nprint(toString(R))\nprint(sum(is.nan(R)))",
    // sums: added in the order of the iterations, whenever they are ready
    "S = matrix(0.1, rows=2, cols=2)\nn = 0\nd = 0.3\nparfor (i in 1:20) {\n  v = rand(rows=2, cols=2, "
    "min=-1e6, max=1e6)\n  S += v\n  n += i\n  if (i %% 3 == 0) { d += sum(v) }\n  for (k in 1:3) { d += "
    "k / 7 }\n  print(i)\n  S += t(v) * 1e-9\n}\nprint(toString(S, decimal=17))\nprint(n)\nprint(d)",
    // a parfor inside that adds to the same sum
    "d = 0\nparfor (i in 1:5) {\n  parfor (k in 1:4) { d += sum(rand(rows=3, cols=1)) * 10^(i - k) }\n}\n"
    "print(d)",
    // elements of a list, rows of a frame
    "L = list(1, 2, 3, 4, 5, 6)\nF = as.frame(matrix(0.5, rows=6, cols=2))\nparfor (i in 1:6) {\n"
    "  L[i] = matrix(i, rows=i, cols=1)\n  F[i, ] = as.frame(matrix(i + 0.25, rows=1, cols=2))\n}\n"
    "print(toString(L))\nprint(toString(F))",
    // names that the iterations make are gone behind the loop; two at once at most
    "parfor (i in 1:4, par=2) { v = i }\nprint(exists(v) + \" \" + i)",
    // what is called is known only at run time
    "one = function(double x) return (double y) { y = x + 1 }\ntwo = function(double x) return (double y) { "
    "y = x * 2 }\nR = matrix(0, rows=6, cols=1)\nnames = list(\"one\", \"two\")\nparfor (i in 1:6) {\n"
    "  R[i, 1] = eval(as.scalar(names[i %% 2 + 1]), i)\n}\nprint(toString(R))",
};

TEST(ParallelIterationsTest, AnyNumberOfThreadsGivesTheSameBytes) {
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    const ScriptOutcome one = RunScript(script, OnThreads(1));
    ASSERT_TRUE(one.status.ok()) << one.status.ToString();
    for (const int threads : {2, 3, 8}) {
      for (int repeat = 0; repeat < 5; ++repeat) {
        const ScriptOutcome many = RunScript(script, OnThreads(threads));
        ASSERT_TRUE(many.status.ok()) << many.status.ToString();
        ASSERT_EQ(many.output, one.output) << threads;
      }
    }
    for (SessionOptions options : {SplitOver(2, 2), OnRanks(2, 1), OnRanks(3, 2)}) {
      const ScriptOutcome ranks = RunScript(script, options);
      ASSERT_TRUE(ranks.status.ok()) << ranks.status.ToString();
      ASSERT_EQ(ranks.output, one.output) << options.ranks;
    }
  }
}

// Kernels of one operator wait for each other.
class MeetingKernels : public ops::KernelSource {
 public:
  MeetingKernels(std::string op, int size) : op_(std::move(op)), size_(size) {}
  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    if (call.node.op == op_) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++arrived_;
      changed_.notify_all();
      // Only turns a hang into a failure.
      if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return arrived_ >= size_; }))
        return Internal("the other iterations did not come");
    }
    return ops::CatalogKernels().Run(call, results);
  }

 private:
  const std::string op_;
  const int size_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int arrived_ = 0;
};

TEST(ParallelIterationsTest, IterationsAreInFlightAtOnce) {
  const MeetingKernels kernels("cumsum", 3);
  SessionOptions options = OnThreads(3);
  options.fusion = "off";
  const ScriptOutcome outcome = RunScript(
      "R = matrix(0, rows=3, cols=1)\nparfor (i in 1:3) {\n"
      "  R[i, 1] = sum(cumsum(matrix(i, rows=20, cols=2)))\n}\n"
      "print(sum(R))",
      options, &kernels);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.output, "2520.0\n");
  EXPECT_EQ(outcome.statistics[0].operators.at("cumsum").acts, 3);
}

// The calls of all rounds are one recursion, evaluated before them; what is behind it meets.
TEST(ParallelIterationsTest, RoundsThatFindTheirTreeInAForestAreInFlightAtOnce) {
  const std::string script =
      "f = function(Matrix[Double] T, Integer n, Matrix[Double] X) return (Matrix[Double] h) {\n"
      "  h = X[n,]\n"
      "  if (as.scalar(T[n,1]) > 0) { l = f(T, as.integer(as.scalar(T[n,1])), X);  h = h * 2 + l }\n}\n"
      "T = matrix(\"0 1 2 0 4 5\", 6, 1)\nX = rand(rows=6, cols=4, seed=1)\nR = matrix(0, rows=3, cols=1)\n"
      "parfor (i in 1:3) {\n  h = f(T, i + 3, X)\n  R[i, 1] = sum(cumsum(t(h)))\n}\n"
      "print(toString(R, decimal=17))";
  const MeetingKernels kernels("cumsum", 3);
  SessionOptions options = OnThreads(3);
  options.fusion = "off";
  const ScriptOutcome outcome = RunScript(script, options, &kernels);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.statistics[0].operators.at("recursive").acts, 1);
  EXPECT_EQ(outcome.output, RunScript(script, OnThreads(1)).output);
}

TEST(ParallelIterationsTest, TheErrorIsThatOfTheFirstIterationThatFails) {
  const std::string script =
      "R = matrix(0, rows=12, cols=1)\nparfor (i in 1:12) {\n  v = rand(rows=30, cols=30)\n"
      "  print(\"in \" + i)\n"
      "  if (i == 5 | i == 9) { stop(\"at \" + i) }\n  R[i, 1] = sum(v %*% v)\n  print(\"out \" + i)\n}";
  const ScriptOutcome one = RunScript(script, OnThreads(1));
  ASSERT_EQ(one.status.code(), StatusCode::kAborted);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const ScriptOutcome many = RunScript(script, OnThreads(4));
    ASSERT_EQ(many.status.ToString(), one.status.ToString());
    ASSERT_EQ(many.output, one.output);
  }
}

// The kernel of one operator finds no memory, the first time that it computes so large a cell.
class NoMemoryOnce : public ops::KernelSource {
 public:
  NoMemoryOnce(std::string op, double cell) : op_(std::move(op)), cell_(cell) {}
  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    if (call.node.op == op_ && call.inputs[0]->matrix().At(0, 0) >= cell_ && !has_failed_.exchange(true))
      return ResourceExhausted("no memory for it");
    return ops::CatalogKernels().Run(call, results);
  }
  bool has_failed() const { return has_failed_.load(); }

 private:
  const std::string op_;
  const double cell_;
  mutable std::atomic<bool> has_failed_{false};
};

TEST(ParallelIterationsTest, WhatLacksMemoryAtOnceRunsOneAfterTheOther) {
  const std::string script =
      "R = matrix(0, rows=8, cols=1)\nd = 0\nparfor (i in 1:8) {\n  print(\"in \" + i)\n"
      "  R[i, 1] = R[i, 1] + sum(cumsum(matrix(i, rows=20, cols=2)))\n  d += i\n  print(\"out \" + i)\n}\n"
      "print(toString(R))\nprint(d)";
  const ScriptOutcome one = RunScript(script, OnThreads(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  const NoMemoryOnce kernels("cumsum", 4);
  SessionOptions options = OnThreads(3);
  options.fusion = "off";
  const ScriptOutcome many = RunScript(script, options, &kernels);
  EXPECT_TRUE(many.status.ok()) << many.status.ToString();
  EXPECT_TRUE(kernels.has_failed());
  EXPECT_EQ(many.output, one.output);
}

TEST(ParallelIterationsTest, AnErrorTellsAllCallsOnTheWayToIt) {
  const std::string script =
      "g = function(double x) return (double y) { if (x > 2) { stop(\"large\") }\n y = x }\n"
      "f = function(integer n) return (matrix[double] R) {\n  R = matrix(0, rows=n, cols=1)\n"
      "  parfor (i in 1:n) { R[i, 1] = g(i) }\n}\nfor (k in 1:2) { print(sum(f(k * 3))) }";
  const ScriptOutcome one = RunScript(script, OnThreads(1));
  const ScriptOutcome many = RunScript(script, OnThreads(4));
  EXPECT_EQ(one.status.code(), StatusCode::kAborted);
  EXPECT_EQ(many.status.ToString(), one.status.ToString());
}

TEST(ParallelIterationsTest, ACancelledSessionEndsItsIterations) {
  const Program program = CompileOrDie(
      "R = matrix(0, rows=4, cols=1)\nparfor (i in 1:4) { while (1 == 1) { x = i }\n R[i, 1] = x }");
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(testing::TempDir());
  SessionEnvironment environment;
  environment.files = files.get();
  environment.clock = &SystemClock();
  environment.print = [](std::string_view) {};
  const std::unique_ptr<Session> session = Session::Create(OnThreads(4), program, environment);
  std::thread canceller([&] { session->Cancel(Cancelled("by the test")); });
  EXPECT_EQ(session->Run().message(), "by the test");
  canceller.join();
}

TEST(OrderedOutputTest, WhatWasPrintedBeforeIsNotPrintedAgain) {
  std::string printed;
  const OrderedOutput::Print print = [&](uint64_t, std::string_view text) { printed += text; };
  OrderedOutput output(print, /*printed_before=*/2);
  output.Add(1, "c");
  output.Add(0, "a");
  EXPECT_EQ(output.printed(), 1);
  output.Add(0, "b");
  output.End(0);
  EXPECT_EQ(printed, "c");
  EXPECT_EQ(output.printed(), 3);
}

TEST(OrderedOutputTest, ATurnComesWhenAllBeforeAreOver) {
  const OrderedOutput::Print print = [](uint64_t, std::string_view) {};
  OrderedOutput output(print);
  std::atomic<bool> stopped{false};
  std::atomic<bool> had_turn{false};
  std::thread second([&] { had_turn = output.AwaitTurn(1, stopped); });
  EXPECT_TRUE(output.AwaitTurn(0, stopped));
  output.End(0);
  second.join();
  EXPECT_TRUE(had_turn);
  std::thread late([&] { had_turn = output.AwaitTurn(3, stopped); });
  stopped = true;
  output.Wake();
  late.join();
  EXPECT_FALSE(had_turn);
}

TEST(OrderedOutputTest, WhatLaterIterationsPrintWaits) {
  std::string printed;
  const OrderedOutput::Print print = [&](uint64_t, std::string_view text) { printed += text; };
  OrderedOutput output(print);
  output.Add(1, "b");
  output.Add(0, "a");
  EXPECT_EQ(printed, "a");
  output.End(2);
  output.Add(1, "c");
  output.End(0);
  EXPECT_EQ(printed, "abc");
  output.Add(1, "d");
  output.Add(4, "z");
  output.Add(3, "e");
  output.End(1);
  EXPECT_EQ(printed, "abcde");
  output.PrintUpTo(3);
  EXPECT_EQ(printed, "abcde");
}

Matrix Row(std::vector<double> cells) {
  Matrix row = *Matrix::Dense(1, static_cast<int64_t>(cells.size()));
  std::copy(cells.begin(), cells.end(), row.mutable_data());
  return row;
}

TEST(MergeCellsTest, ChangedCellsAreTakenFromWhoChangedThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Matrix before = Row({1, nan, 0.0, 4, 5});
  const Matrix others[] = {Row({1, 2, 0.0, 4, 5}), Row({1, nan, -0.0, 4, 5}), Row({1, nan, 0.0, nan, 5})};
  for (const bool sparse : {false, true}) {
    const Matrix last = sparse ? *ToSparse(Row({9, nan, 0.0, 4, 5})) : Row({9, nan, 0.0, 4, 5});
    const Result<Matrix> merged = MergeCells(before, last, others);
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    EXPECT_EQ(merged->IsSparse(), sparse);
    EXPECT_TRUE(Matrix::SameCells(*ToDense(*merged), *ToDense(sparse ? *ToSparse(Row({9, 2, 0.0, nan, 5}))
                                                                     : Row({9, 2, -0.0, nan, 5}))));
    EXPECT_EQ(last.At(0, 1) != last.At(0, 1), true) << "a matrix that others hold stays as it is";
  }
  EXPECT_EQ(MergeCells(before, before, {{Row({1, 2})}}).status().code(), StatusCode::kInternal);
}

Frame Table(std::vector<double> numbers, std::vector<std::string_view> texts) {
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kFloat64, ColumnType::kString};
  return Frame(schema, {*Column::OfDoubles(numbers), *Column::OfTexts(texts)});
}

// A matrix that has been compressed in an iteration has one NaN, whatever those before were.
TEST(MergeCellsTest, AnotherNaNIsNoChange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Matrix others[] = {Row({-nan, 2}), Row({-nan, nan})};
  const Result<Matrix> merged = MergeCells(Row({nan, -nan}), Row({3, nan}), others);
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(*merged, Row({3, 2})));
  const Result<Matrix> changes = ChangedCells(Row({nan, nan, 1}), Row({-nan, 4, 1}));
  ASSERT_TRUE(changes.ok()) << changes.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(*changes, Row({1, 4})));
}

TEST(MergeCellsTest, CellsOfFramesAreTakenFromWhoChangedThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Frame before = Table({1, nan, 3}, {"a", "", "c"});
  const Frame last = Table({1, nan, 5}, {"a", "", "cc"});
  const Frame others[] = {Table({-1, nan, 3}, {"a", "", "c"}), Table({1, nan, 3}, {"a", "bbb", "c"})};
  const Result<Frame> merged = MergeCells(before, last, others);
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_TRUE(Frame::SameCells(*merged, Table({-1, nan, 5}, {"a", "bbb", "cc"})));
  EXPECT_EQ(MergeCells(before, last, {{Table({1}, {"a"})}}).status().code(), StatusCode::kInternal);
}

TEST(MergeVariableTest, ElementsOfListsAreTakenFromWhoChangedThem) {
  const auto list = [](std::vector<Variable> elements) {
    auto made = std::make_shared<ListOf<Variable>>();
    for (Variable& element : elements) EXPECT_TRUE(made->Add("", std::move(element)).ok());
    return Variable::OfList(std::move(made));
  };
  const auto number = [](double value) { return Variable::OfScalar(Scalar(value)); };
  Variable matrix;
  matrix.value = Value(Row({1, 2}));
  matrix.info = ValueInfo::OfMatrix({1, 2});
  const Variable before = list({number(1), number(2), number(3)});
  const Result<Variable> merged =
      MergeVariable(before, {list({number(1), number(2), number(9)}), list({matrix, number(2), number(3)})});
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_TRUE(SharesValue(merged->list->elements[0], matrix));
  EXPECT_EQ(merged->list->elements[1].value.scalar(), Scalar(2.0));
  EXPECT_EQ(merged->list->elements[2].value.scalar(), Scalar(9.0));
  EXPECT_EQ(before.list->elements[0].value.scalar(), Scalar(1.0)) << "lists that others hold stay";
  EXPECT_EQ(MergeVariable(before, {before, list({number(1)})}).status().code(), StatusCode::kInternal);
}

TEST(ParallelIterationsTest, TheProgramSaysWhatIterationsShare) {
  const auto loop_of = [](const std::string& text) {
    const Program program = CompileOrDie(text);
    for (const Block& block : program.main)
      if (block.kind == Block::Kind::kParallelFor) return block;
    return Block();
  };
  const Block loop = loop_of(
      "R = matrix(0, rows=4, cols=2)\nd = 0\nparfor (i in 1:4, par=2) {\n  v = sum(rand(rows=i, cols=2))\n"
      "  R[i, 1] = v\n  d += v\n  print(v)\n}\nprint(sum(R) + d)");
  EXPECT_TRUE(loop.independent);
  EXPECT_EQ(loop.merged, std::vector<std::string>{"R"});
  EXPECT_EQ(loop.sums, std::vector<std::string>{"d"});
  EXPECT_EQ(loop.locals, std::vector<std::string>{"v"});
  EXPECT_EQ(loop.most_workers, 2);
  const Block unchecked = loop_of("x = 0\nparfor (i in 1:4, check=0) { x = x + i\n print(x) }\nprint(x)");
  EXPECT_EQ(unchecked.kind, Block::Kind::kParallelFor);
  EXPECT_FALSE(unchecked.independent);
}

}  // namespace
}  // namespace heddle::engine

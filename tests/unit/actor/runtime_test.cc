// SPDX-License-Identifier: Apache-2.0
#include "actor/runtime.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/memory/counted_heap.h"
#include "ops/base/operator.h"
#include "tests/simulation/plan_writer.h"
#include "tests/support/frames.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {
namespace {

Matrix Column(std::vector<double> cells) {
  Matrix matrix = *Matrix::Dense(static_cast<int64_t>(cells.size()), 1);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return matrix;
}

class RuntimeTest : public testing::Test {
 protected:
  size_t Add(TaskKind kind, NodeId node, std::vector<RegisterId> consumed, Phase phase = Phase::kWhole,
             uint32_t stream = kCompute) {
    const size_t task = writer_.Add(kind, 0, stream, std::move(consumed));
    writer_.task(task).node = node;
    writer_.task(task).phase = phase;
    return task;
  }
  NodeId AddNode(std::string op, std::vector<NodeId> inputs = {}, std::string name = "") {
    return actor::AddNode(writer_.graph(), std::move(op), std::move(inputs), std::move(name));
  }
  // y = op(x), three tasks.
  std::shared_ptr<const Plan> ThreeTasks(const std::string& op, uint64_t key = 7) {
    writer_ = PlanWriter(1);
    const NodeId x = AddNode("variable", {}, "x");
    const NodeId result = AddNode(op, {x, kNoNode});
    const NodeId y = AddNode("assign", {result}, "y");
    const RegisterId in = writer_.Output(Add(TaskKind::kSource, x, {}));
    const RegisterId out = writer_.Output(Add(TaskKind::kCompute, result, {in, -1}));
    Add(TaskKind::kSink, y, {out});
    writer_.SetKey(key);
    return Finish();
  }
  std::shared_ptr<const Plan> Finish() { return std::make_shared<const Plan>(writer_.Finish()); }
  Runtime& runtime() {
    if (runtime_ == nullptr)
      runtime_ = Runtime::Create({.rank = 0, .threads = 2}, kernels_, context_, nullptr);
    return *runtime_;
  }

  TestKernels kernels_;
  ops::KernelContext context_;
  PlanWriter writer_{1};
  std::unique_ptr<Runtime> runtime_;
};

// a, b, c = parts(x), of which nothing reads b; d = c - a.
TEST_F(RuntimeTest, EachResultGoesIntoARegisterOfItsOwn) {
  kernels_.SetSeveral("parts", [](const ops::KernelCall& call, std::span<Value> results) -> Status {
    if (results.size() != 3) return Internal("{} results", results.size());
    const double x = call.inputs[0]->scalar().AsDouble();
    if (x < 0) return FailedPrecondition("x is negative");
    for (size_t i = 0; i < 3; ++i) results[i] = Value(x + static_cast<double>(i));
    return OkStatus();
  });
  kernels_.Set("minus", [](const ops::KernelCall& call) -> Result<Value> {
    return Value(call.inputs[0]->scalar().AsDouble() - call.inputs[1]->scalar().AsDouble());
  });
  const NodeId x = AddNode("variable", {}, "x");
  const NodeId parts = AddNode("parts", {x});
  Graph& graph = writer_.graph();
  graph[parts].info = ValueInfo::OfTuple();
  graph[parts].results.assign(3, ValueInfo::OfScalar(ValueType::kDouble));
  const NodeId a = graph.Add(ResultOf(graph, parts, 0)), c = graph.Add(ResultOf(graph, parts, 2));
  const NodeId d = AddNode("minus", {c, a});
  const RegisterId in = writer_.Output(Add(TaskKind::kSource, x, {}));
  const size_t task = Add(TaskKind::kCompute, parts, {in});
  const RegisterId first = writer_.Output(task);
  writer_.Output(task);
  const RegisterId third = writer_.Output(task);
  const RegisterId difference = writer_.Output(Add(TaskKind::kCompute, d, {third, first}));
  Add(TaskKind::kSink, AddNode("assign", {c}, "c"), {third});
  Add(TaskKind::kSink, AddNode("assign", {d}, "d"), {difference});
  const auto plan = Finish();
  ASSERT_TRUE(Verify(*plan).ok()) << Verify(*plan).ToString();
  for (uint32_t run = 1; run < 4; ++run) {
    const Result<RunResult> result = runtime().Run(plan, run, {{"x", Value(5.0 * run)}});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(result->live_out.at("c").scalar().AsDouble(), 5.0 * run + 2);
    EXPECT_EQ(result->live_out.at("d").scalar().AsDouble(), 2.0);
  }
  EXPECT_EQ(runtime().Run(plan, 4, {{"x", Value(-1.0)}}).status().ToString(), "test.dml:2:1: x is negative");
  EXPECT_TRUE(runtime().Run(plan, 5, {{"x", Value(1.0)}}).ok());
}

// A kernel may overwrite its first input when neither another task nor the caller has it.
TEST_F(RuntimeTest, TheLastReaderOfAValueMayTakeIt) {
  bool is_last = false, is_alone = false;
  kernels_.Set("look", [&](const ops::KernelCall& call) -> Result<Value> {
    is_last = call.last_read != nullptr;
    is_alone = is_last && call.last_read->matrix().HoldsCellsAlone();
    return Value(1.0);
  });
  const auto plan = ThreeTasks("look");
  ASSERT_TRUE(runtime().Run(plan, 1, {{"x", Value(Column({1, 2}))}}).ok());
  EXPECT_TRUE(is_last);
  const Value kept(Column({3, 4}));
  ASSERT_TRUE(runtime().Run(plan, 2, {{"x", kept}}).ok());
  EXPECT_TRUE(is_last);
  EXPECT_FALSE(is_alone) << "the caller has it";
  std::map<std::string, Value> given;
  given.emplace("x", Column({5, 6}));
  ASSERT_TRUE(runtime().Run(plan, 3, std::move(given)).ok());
  EXPECT_TRUE(is_alone);

  writer_ = PlanWriter(1);
  const NodeId x = AddNode("variable", {}, "x"), look = AddNode("look", {x}), y = AddNode("assign", {x}, "y");
  const RegisterId in = writer_.Output(Add(TaskKind::kSource, x, {}));
  const RegisterId out = writer_.Output(Add(TaskKind::kCompute, look, {in}));
  Add(TaskKind::kSink, y, {in});
  Add(TaskKind::kSink, AddNode("assign", {look}, "z"), {out});
  writer_.SetKey(8);
  ASSERT_TRUE(runtime().Run(Finish(), 4, {{"x", Value(Column({7, 8}))}}).ok());
  EXPECT_FALSE(is_last) << "y reads it too";
}

TEST_F(RuntimeTest, TheReaderAfterAllOthersMayTakeAValue) {
  bool read = false, is_last = false, is_alone = false;
  kernels_.Set("read", [&](const ops::KernelCall& call) -> Result<Value> {
    read = call.last_read == nullptr;
    return Value(call.inputs[0]->matrix().At(0, 0));
  });
  kernels_.Set("take", [&](const ops::KernelCall& call) -> Result<Value> {
    is_last = read && call.last_read != nullptr;
    is_alone = is_last && call.last_read->matrix().HoldsCellsAlone();
    return Value(1.0);
  });
  for (const bool ordered : {false, true}) {
    writer_ = PlanWriter(1);
    const NodeId x = AddNode("variable", {}, "x"), reader = AddNode("read", {x}),
                 taker = AddNode("take", {x});
    const RegisterId in = writer_.Output(Add(TaskKind::kSource, x, {}));
    const size_t reads = Add(TaskKind::kCompute, reader, {in}), takes = Add(TaskKind::kCompute, taker, {in});
    const RegisterId a = writer_.Output(reads), b = writer_.Output(takes);
    if (ordered) writer_.Control(writer_.ControlOutput(reads), takes);
    Add(TaskKind::kSink, AddNode("assign", {reader}, "a"), {a});
    Add(TaskKind::kSink, AddNode("assign", {taker}, "b"), {b});
    writer_.SetKey(ordered ? 21 : 20);
    std::map<std::string, Value> given;
    given.emplace("x", Column({7, 8}));
    const Result<RunResult> result = runtime().Run(Finish(), ordered ? 2 : 1, std::move(given));
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(result->live_out.at("a").scalar(), Scalar(7.0));
    EXPECT_EQ(is_last, ordered);
    EXPECT_EQ(is_alone, ordered);
  }
}

TEST_F(RuntimeTest, RunsThreeTasks) {
  const auto plan = ThreeTasks("add");
  const Result<RunResult> result = runtime().Run(plan, 0, {{"x", Value(2.0)}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->live_out.at("y").scalar(), Scalar(102.0));
  ASSERT_EQ(result->statistics.size(), 3u);
  EXPECT_EQ(result->statistics[1].acts, 1);
  EXPECT_EQ(result->statistics[1].node, 1);
}

TEST_F(RuntimeTest, ReusesAPlanAThousandTimes) {
  const auto plan = ThreeTasks("add");
  for (uint32_t run = 1; run <= 1000; ++run) {
    const Result<RunResult> result = runtime().Run(plan, run, {{"x", Value(static_cast<double>(run))}});
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(result->live_out.at("y").scalar(), Scalar(run + 100.0));
  }
}

TEST_F(RuntimeTest, KeepsManyPlansApart) {
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t key = 1; key <= 300; ++key) {
      const auto plan = ThreeTasks("add", key);
      const Result<RunResult> result =
          runtime().Run(plan, round * 1000 + key, {{"x", Value(static_cast<double>(key))}});
      ASSERT_TRUE(result.ok());
      ASSERT_EQ(result->live_out.at("y").scalar(), Scalar(key + 100.0));
    }
  }
}

TEST_F(RuntimeTest, SlicesGathersAndTellsShapes) {
  const NodeId x = AddNode("variable", {}, "x");
  const NodeId y = AddNode("assign", {x}, "y");
  const RegisterId whole = writer_.Output(Add(TaskKind::kSource, x, {}));
  const size_t first = Add(TaskKind::kCompute, x, {whole}, Phase::kSlice);
  const size_t second = Add(TaskKind::kCompute, x, {whole}, Phase::kSlice);
  writer_.task(first).row_begin = 3;
  writer_.task(first).row_end = writer_.task(first).total_rows = 4;
  writer_.task(second).row_end = 3;
  writer_.task(second).total_rows = 4;
  const RegisterId tail = writer_.Output(first);
  const RegisterId head = writer_.Output(second);
  const RegisterId turned = writer_.Output(Add(TaskKind::kCompute, x, {tail, head}, Phase::kGather));
  const RegisterId shape = writer_.Output(Add(TaskKind::kCompute, y, {turned}, Phase::kShape));
  Add(TaskKind::kSink, y, {turned});
  Add(TaskKind::kSink, y, {shape}, Phase::kShape);
  const Result<RunResult> result = runtime().Run(Finish(), 1, {{"x", Value(Column({1, 2, 3, 4}))}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(result->live_out.at("y").matrix(), Column({4, 1, 2, 3})));
  EXPECT_EQ(result->sizes.at("y").info.shape, (Shape{4, 1}));
}

TEST_F(RuntimeTest, FramesAreSlicedGatheredAndToldLikeMatrices) {
  const NodeId x = AddNode("variable", {}, "x");
  const NodeId y = AddNode("assign", {x}, "y");
  const RegisterId whole = writer_.Output(Add(TaskKind::kSource, x, {}));
  std::vector<RegisterId> parts;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{30, 100}, {0, 30}}) {
    const size_t slice = Add(TaskKind::kCompute, x, {whole}, Phase::kSlice);
    writer_.task(slice).row_begin = begin;
    writer_.task(slice).row_end = end;
    writer_.task(slice).total_rows = 100;
    parts.push_back(writer_.Output(slice));
  }
  const RegisterId turned = writer_.Output(Add(TaskKind::kCompute, x, parts, Phase::kGather));
  const RegisterId shape = writer_.Output(Add(TaskKind::kCompute, y, {turned}, Phase::kShape));
  Add(TaskKind::kSink, y, {turned});
  Add(TaskKind::kSink, y, {shape}, Phase::kShape);
  const Frame frame = NumberedFrame(100);
  const Result<RunResult> result = runtime().Run(Finish(), 1, {{"x", Value(frame)}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const Frame& told = result->live_out.at("y").frame();
  EXPECT_TRUE(Frame::SameCells(told.Rows(0, 70), frame.Rows(30, 100)));
  EXPECT_TRUE(Frame::SameCells(told.Rows(70, 100), frame.Rows(0, 30)));
  EXPECT_EQ(result->sizes.at("y").info, ValueInfo::OfFrame(100, frame.schema()));
}

TEST_F(RuntimeTest, AKernelSeesItsCall) {
  bool was_called = false;
  kernels_.Set("look", [&](const ops::KernelCall& call) -> Result<Value> {
    was_called = true;
    EXPECT_EQ(call.phase, Phase::kPartial);
    EXPECT_EQ(call.row_begin, 2);
    EXPECT_EQ(call.row_end, 5);
    EXPECT_EQ(call.total_rows, 9);
    EXPECT_EQ(call.inputs.size(), 2u);
    EXPECT_EQ(call.inputs[0]->scalar(), Scalar(4.0));
    EXPECT_EQ(call.inputs[1], nullptr);
    EXPECT_EQ(call.input_infos.size(), 2u);
    EXPECT_EQ(call.input_infos[0], ValueInfo::OfScalar(ValueType::kDouble));
    EXPECT_EQ(call.input_infos[1].data_type, DataType::kUnknown);
    EXPECT_EQ(&call.context, &context_);
    EXPECT_NE(call.context.cancelled, nullptr);
    return Value(1.0);
  });
  const auto plan = ThreeTasks("look");
  writer_.task(1).phase = Phase::kPartial;
  writer_.task(1).row_begin = 2;
  writer_.task(1).row_end = 5;
  writer_.task(1).total_rows = 9;
  ASSERT_TRUE(runtime().Run(Finish(), 1, {{"x", Value(4.0)}}).ok());
  EXPECT_TRUE(was_called);
}

TEST_F(RuntimeTest, OperatorsAreLookedUpWhenAPlanIsMadeReady) {
  const ops::Operator* seen = nullptr;
  const auto look = [&](const ops::KernelCall& call) -> Result<Value> {
    seen = call.op;
    return Value(1.0);
  };
  kernels_.Set("sum", look);
  kernels_.Set("unknown", look);
  ASSERT_TRUE(runtime().Run(ThreeTasks("sum", 1), 1, {{"x", Value(2.0)}}).ok());
  EXPECT_EQ(seen, ops::FindOperator("sum"));
  ASSERT_TRUE(runtime().Run(ThreeTasks("unknown", 2), 2, {{"x", Value(2.0)}}).ok());
  EXPECT_EQ(seen, nullptr);
}

TEST_F(RuntimeTest, ActsAreTimedWhenSomebodyAsks) {
  for (const bool asked : {false, true}) {
    const std::unique_ptr<Runtime> runtime =
        Runtime::Create({.threads = 1, .times_acts = asked}, kernels_, context_, nullptr);
    const Result<RunResult> result = runtime->Run(ThreeTasks("add"), 1, {{"x", Value(2.0)}});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    for (const TaskStatistics& task : result->statistics) {
      EXPECT_EQ(task.acts, 1);
      EXPECT_EQ(task.kernel_ns > 0, asked);
    }
  }
}

// A run of a thousand acts more takes no allocation more.
TEST_F(RuntimeTest, ActsInSteadyStateAllocateNothing) {
  if (!HeapIsCounted()) GTEST_SKIP() << "sanitizers have a heap of their own";
  kernels_.Set("pass", [](const ops::KernelCall& call) -> Result<Value> { return *call.inputs[0]; });
  const auto few = ThreeTasks("pass", 1);
  writer_.SetKey(2);
  writer_.task(0).count = 1001;
  const auto many = Finish();
  const Value x(Column({1, 2, 3}));
  uint32_t run = 0;
  const auto allocations = [&](const std::shared_ptr<const Plan>& plan) {
    const std::map<std::string, Value> live_in = {{"x", x}};
    EXPECT_TRUE(runtime().Run(plan, ++run, live_in).ok());  // What is made once is made.
    const int64_t before = HeapAllocations();
    EXPECT_TRUE(runtime().Run(plan, ++run, live_in).ok());
    return HeapAllocations() - before;
  };
  EXPECT_EQ(allocations(many), allocations(few));
}

TEST_F(RuntimeTest, LiteralsAndEffectsInOrder) {
  std::string printed;
  kernels_.Set("print", [&](const ops::KernelCall& call) -> Result<Value> {
    printed += call.inputs[0]->scalar().ToText() + ";";
    return Value();
  });
  RegisterId permission = -1;
  for (int64_t i = 0; i < 5; ++i) {
    const NodeId literal = AddNode("literal");
    writer_.graph()[literal].SetAttribute("value", Scalar(i));
    const RegisterId value = writer_.Output(Add(TaskKind::kSource, literal, {}));
    const size_t print = Add(TaskKind::kSink, AddNode("print", {literal}), {value}, Phase::kWhole, kHost);
    if (permission >= 0) writer_.Control(permission, print);
    permission = writer_.ControlOutput(print);
  }
  ASSERT_TRUE(runtime().Run(Finish(), 1, {}).ok());
  EXPECT_EQ(printed, "0;1;2;3;4;");
}

TEST_F(RuntimeTest, AnErrorHasThePositionOfItsNodeAndTheNextRunWorks) {
  const auto plan = ThreeTasks("fail", 1);
  const auto good = ThreeTasks("add", 2);
  for (uint32_t run = 1; run < 20; run += 2) {
    const Result<RunResult> failed = runtime().Run(plan, run, {{"x", Value(2.0)}});
    ASSERT_EQ(failed.status().ToString(), "test.dml:2:1: it fails");
    ASSERT_TRUE(context_.cancelled->load());
    const Result<RunResult> result = runtime().Run(good, run + 1, {{"x", Value(2.0)}});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    ASSERT_FALSE(context_.cancelled->load());
  }
}

TEST_F(RuntimeTest, AMissingLiveInIsNamed) {
  const Result<RunResult> result = runtime().Run(ThreeTasks("add"), 1, {{"z", Value(2.0)}});
  EXPECT_EQ(result.status().message(), "the run of a plan lacks its live-in variable: x");
}

TEST_F(RuntimeTest, RunNumbersGrow) {
  const auto plan = ThreeTasks("add");
  ASSERT_TRUE(runtime().Run(plan, 5, {{"x", Value(2.0)}}).ok());
  EXPECT_EQ(runtime().Run(plan, 5, {{"x", Value(2.0)}}).status().code(), StatusCode::kInternal);
  EXPECT_TRUE(runtime().Run(plan, 6, {{"x", Value(2.0)}}).ok());
}

TEST_F(RuntimeTest, CancelEndsAKernelThatPollsAndAllLaterRuns) {
  kernels_.Set("wait", [&](const ops::KernelCall& call) -> Result<Value> {
    runtime_->Cancel(Cancelled("Ctrl-C"));
    while (!call.context.cancelled->load()) {
    }
    return Cancelled("seen");
  });
  const Result<RunResult> result = runtime().Run(ThreeTasks("wait", 1), 1, {{"x", Value(2.0)}});
  EXPECT_EQ(result.status().message(), "Ctrl-C");
  EXPECT_EQ(runtime().Run(ThreeTasks("add", 2), 2, {{"x", Value(2.0)}}).status().message(), "Ctrl-C");
}

TEST_F(RuntimeTest, CancelBetweenRunsEndsKernelsBesideThem) {
  ASSERT_TRUE(runtime().Run(ThreeTasks("add", 1), 1, {{"x", Value(2.0)}}).ok());
  ASSERT_FALSE(context_.cancelled->load());
  runtime_->Cancel(Cancelled("Ctrl-C"));
  EXPECT_TRUE(context_.cancelled->load());
}

TEST_F(RuntimeTest, AStalledPlanIsFoundAtOnceAndTheNextRunWorks) {
  const NodeId x = AddNode("variable", {}, "x");
  const NodeId y = AddNode("assign", {x}, "y");
  const size_t source = Add(TaskKind::kSource, x, {});
  writer_.task(source).count = 4;
  const RegisterId direct = writer_.Output(source);
  const size_t few = Add(TaskKind::kPack, x, {direct});
  const RegisterId packed = writer_.Output(few);
  const size_t many = Add(TaskKind::kRepeat, x, {packed});
  writer_.task(few).rate = writer_.task(many).rate = 2;
  const RegisterId again = writer_.Output(many);
  Add(TaskKind::kSink, y, {again, direct});
  const std::map<std::string, Value> live_in = {{"x", Value(Column({1, 2}))}};
  const Result<RunResult> stalled = runtime().Run(Finish(), 1, live_in);
  EXPECT_NE(stalled.status().ToString().find("stalled"), std::string::npos) << stalled.status().ToString();
  EXPECT_NE(stalled.status().ToString().find("all 1 slots of register 0 are unread"), std::string::npos);
  writer_.reg(direct).slots = 2;
  const Result<RunResult> result = runtime().Run(Finish(), 2, live_in);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(result->live_out.at("y").matrix(), Column({1, 2, 1, 2})));
}

TEST_F(RuntimeTest, MessagesOfOtherRunsAndNonsenseChangeNothing) {
  const auto plan = ThreeTasks("add");
  for (const uint32_t run : {0u, 1u, 3u}) {
    Message stale;
    stale.destination = plan->tasks[1].id;
    stale.source = plan->tasks[0].id;
    stale.run = run;
    runtime().OnMessage(stale);
  }
  EXPECT_EQ(runtime().Published(1, 0, 0).status().code(), StatusCode::kCancelled);
  ASSERT_TRUE(runtime().Run(plan, 2, {{"x", Value(2.0)}}).ok());
}

TEST_F(RuntimeTest, ARankWithoutTasksHasNothingToDo) {
  writer_ = PlanWriter(1);
  EXPECT_TRUE(runtime().Run(Finish(), 1, {}).ok());
}

TEST_F(RuntimeTest, HandsMatricesOnWithoutCopying) {
  const Matrix matrix = Column({1, 2, 3});
  const auto plan = ThreeTasks("pass");
  kernels_.Set("pass", [](const ops::KernelCall& call) -> Result<Value> { return *call.inputs[0]; });
  Result<RunResult> result = runtime().Run(plan, 1, {{"x", Value(matrix)}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->live_out.at("y").matrix().data(), matrix.data());
}

}  // namespace
}  // namespace heddle::actor

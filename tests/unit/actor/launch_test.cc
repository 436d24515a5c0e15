// SPDX-License-Identifier: Apache-2.0
// Long kernels run on the device while the thread of their stream goes on with everything else.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "actor/launch/device_worker.h"
#include "actor/dispatcher.h"
#include "actor/in_process_link.h"
#include "actor/launch/launch_estimate.h"
#include "actor/runtime.h"
#include "core/environment/progress_board.h"
#include "tests/simulation/plan_writer.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Holds kernels until somebody opens it. The deadline only turns a hang into a failure.
class Gate {
 public:
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  Result<Value> Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; })) return Value(1.0);
    return Internal("nobody opened the gate: other acts waited behind this one");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(LaunchEstimateTest, StatedThenMeasured) {
  LaunchEstimate cheap(0);
  EXPECT_FALSE(cheap.NeedsDevice(false));
  EXPECT_FALSE(cheap.NeedsDevice(true));
  LaunchEstimate parallel(1'000'000);
  EXPECT_FALSE(parallel.NeedsDevice(false));
  EXPECT_TRUE(parallel.NeedsDevice(true));
  parallel.Measured(kSecondNs);
  EXPECT_TRUE(parallel.IsLong());
  for (int i = 0; i < 20; ++i) parallel.Measured(1'000);
  EXPECT_FALSE(parallel.NeedsDevice(false));
  LaunchEstimate file(kUnboundedCost);
  EXPECT_FALSE(file.WantsTime());
  file.Measured(10);
  EXPECT_TRUE(file.IsLong());
}

// Two looks at the clock cost as much as the rest of a small act.
TEST(LaunchEstimateTest, WhatTakesNextToNothingIsMeasuredOnce) {
  LaunchEstimate estimate(0);
  EXPECT_TRUE(estimate.WantsTime());
  estimate.Measured(800);
  EXPECT_FALSE(estimate.WantsTime());
  LaunchEstimate large(1'000'000);
  large.Measured(900'000);
  EXPECT_TRUE(large.WantsTime());
}

// y = long(x) and z = brief(x), in this order on one stream.
class LaunchTest : public testing::Test {
 protected:
  size_t Add(TaskKind kind, const std::string& op, std::vector<RegisterId> consumed, int64_t cost_ns = 0) {
    Graph& graph = writer_.graph();
    const std::vector<NodeId> inputs(consumed.size(), graph.size() - 1);
    const NodeId node = AddNode(graph, kind == TaskKind::kSink ? "assign" : op, inputs, op);
    const size_t task = writer_.Add(kind, 0, kCompute, std::move(consumed));
    writer_.task(task).node = node;
    writer_.task(task).cost_ns = cost_ns;
    return task;
  }
  void AddPair(int64_t long_ns, const std::string& long_op = "long") {
    x_ = writer_.Output(Add(TaskKind::kSource, "variable", {}));
    writer_.graph()[0].SetAttribute("name", Scalar(std::string("x")));
    const RegisterId slow = writer_.Output(Add(TaskKind::kCompute, long_op, {x_}, long_ns));
    Add(TaskKind::kSink, "y", {slow});
    Add(TaskKind::kSink, "z", {writer_.Output(Add(TaskKind::kCompute, "brief", {x_}))});
  }
  Result<RunResult> Run() {
    if (runtime_ == nullptr) runtime_ = Runtime::Create({.threads = 1}, kernels_, context_, nullptr);
    return runtime_->Run(std::make_shared<const Plan>(writer_.Finish()), ++run_, {{"x", Value(2.0)}});
  }

  Gate gate_;
  TestKernels kernels_;
  ops::KernelContext context_;
  PlanWriter writer_{1};
  std::unique_ptr<Runtime> runtime_;
  RegisterId x_ = 0;
  uint32_t run_ = 0;
};

TEST_F(LaunchTest, OtherActsOfTheThreadGoOn) {
  kernels_.Set("long", [&](const ops::KernelCall&) { return gate_.Pass(); });
  kernels_.Set("brief", [&](const ops::KernelCall&) -> Result<Value> {
    gate_.Open();
    return Value(3.0);
  });
  AddPair(kSecondNs);
  const Result<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->live_out.at("y").scalar(), Scalar(1.0));
  EXPECT_EQ(result->live_out.at("z").scalar(), Scalar(3.0));
  EXPECT_EQ(result->statistics[1].acts, 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Run().ok());
}

// Short acts beside the one on the device do not hide it.
TEST_F(LaunchTest, ProgressTellsTheStatementOfTheLongAct) {
  ProgressBoard board;
  const SourcePosition statement = {.file = "test.dml", .line = 1, .column = 1};
  board.Enter(statement);
  std::atomic<bool> has_begun{false};
  int32_t shown = 0;
  kernels_.Set("long", [&](const ops::KernelCall&) {
    has_begun = true;
    return gate_.Pass();
  });
  kernels_.Set("brief", [&](const ops::KernelCall&) -> Result<Value> {
    while (!has_begun) std::this_thread::yield();
    return Value(3.0);
  });
  kernels_.Set("second", [&](const ops::KernelCall&) -> Result<Value> {
    shown = board.Read().line;
    gate_.Open();
    return Value(4.0);
  });
  AddPair(kSecondNs);
  Add(TaskKind::kSink, "m", {writer_.Output(Add(TaskKind::kCompute, "second", {x_}))});
  for (NodeId id = 0; id < writer_.graph().size(); ++id)
    writer_.graph()[id].position = {.file = "test.dml", .line = 10 + id, .column = 1};
  runtime_ = Runtime::Create({.threads = 1, .progress = &board}, kernels_, context_, nullptr);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(shown, 11);
  board.Close();
}

TEST_F(LaunchTest, KernelsThatNeedTheDeviceQueueForItInOrder) {
  bool long_is_over = false;
  kernels_.Set("long", [&](const ops::KernelCall&) {
    Result<Value> passed = gate_.Pass();
    long_is_over = true;
    return passed;
  });
  kernels_.Set("middle", [&](const ops::KernelCall&) -> Result<Value> {
    EXPECT_TRUE(long_is_over);
    return Value(4.0);
  });
  kernels_.Set("brief", [&](const ops::KernelCall&) -> Result<Value> {
    EXPECT_FALSE(long_is_over);
    gate_.Open();
    return Value(3.0);
  });
  x_ = writer_.Output(Add(TaskKind::kSource, "variable", {}));
  writer_.graph()[0].SetAttribute("name", Scalar(std::string("x")));
  Add(TaskKind::kSink, "y", {writer_.Output(Add(TaskKind::kCompute, "long", {x_}, kSecondNs))});
  Add(TaskKind::kSink, "m", {writer_.Output(Add(TaskKind::kCompute, "middle", {x_}, 1'000'000))});
  Add(TaskKind::kSink, "z", {writer_.Output(Add(TaskKind::kCompute, "brief", {x_}))});
  const Result<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->live_out.at("m").scalar(), Scalar(4.0));
}

TEST_F(LaunchTest, AnErrorOnTheDeviceHasItsPlaceAndTheNextRunWorks) {
  bool fails = true;
  kernels_.Set("long", [&](const ops::KernelCall&) -> Result<Value> {
    if (fails) return FailedPrecondition("it fails");
    return Value(1.0);
  });
  kernels_.Set("brief", [&](const ops::KernelCall&) -> Result<Value> { return Value(3.0); });
  AddPair(kSecondNs);
  EXPECT_EQ(Run().status().ToString(), "test.dml:2:1: it fails");
  fails = false;
  EXPECT_TRUE(Run().ok());
}

TEST_F(LaunchTest, AKernelUnderWayIsWaitedForWhenAnotherTaskFails) {
  bool is_over = false;
  kernels_.Set("long", [&](const ops::KernelCall& call) -> Result<Value> {
    gate_.Open();
    while (!call.context.cancelled->load()) {
    }
    EXPECT_EQ(call.inputs[0]->scalar(), Scalar(2.0)) << "its inputs outlive the failure";
    is_over = true;
    return Cancelled("seen");
  });
  kernels_.Set("brief", [&](const ops::KernelCall&) -> Result<Value> {
    const Result<Value> has_begun = gate_.Pass();
    return has_begun.ok() ? Aborted("stop") : has_begun.status();
  });
  AddPair(kSecondNs);
  EXPECT_EQ(Run().status().message(), "stop");
  EXPECT_TRUE(is_over);
}

// Rank 1 takes three pieces from a source on rank 0, one slot, while a kernel of rank 0 runs: each piece
// needs an ACK that the busy stream's thread answers.
TEST(DistributedLaunchTest, AcksAreAnsweredWhileALongKernelRuns) {
  Gate gate;
  TestKernels kernels;
  kernels.Set("long", [&](const ops::KernelCall&) { return gate.Pass(); });
  int pieces = 0;
  kernels.Set("take", [&](const ops::KernelCall& call) -> Result<Value> {
    if (++pieces == 3) gate.Open();
    return *call.inputs[0];
  });
  PlanWriter writer(2);
  const NodeId x = AddNode(writer.graph(), "variable", {}, "x");
  const NodeId slow = AddNode(writer.graph(), "long", {x});
  const NodeId take = AddNode(writer.graph(), "take", {x});
  const NodeId y = AddNode(writer.graph(), "assign", {take}, "y");
  const auto add = [&](TaskKind kind, uint32_t rank, uint32_t stream, std::vector<RegisterId> consumed,
                       NodeId node, int64_t count = 1) {
    const size_t task = writer.Add(kind, rank, stream, std::move(consumed), 1, count);
    writer.task(task).node = node;
    return task;
  };
  const RegisterId one = writer.Output(add(TaskKind::kSource, 0, kCompute, {}, x));
  const size_t busy = add(TaskKind::kCompute, 0, kCompute, {one}, slow);
  writer.task(busy).cost_ns = kSecondNs;
  add(TaskKind::kSink, 0, kCompute, {writer.Output(busy)}, y);
  const RegisterId made = writer.Output(add(TaskKind::kSource, 0, kCompute, {}, x, 3));
  const RegisterId here = writer.Output(add(TaskKind::kCopy, 1, kNetwork, {made}, x));
  const RegisterId taken = writer.Output(add(TaskKind::kCompute, 1, kCompute, {here}, take));
  add(TaskKind::kSink, 1, kCompute, {taken}, y);
  const auto plan = std::make_shared<const Plan>(writer.Finish());

  InProcessNetwork network(2);
  std::vector<ops::KernelContext> contexts(2);
  std::vector<std::unique_ptr<Runtime>> runtimes;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    runtimes.push_back(
        Runtime::Create({.rank = rank, .threads = 1}, kernels, contexts[rank], &network.LinkOf(rank)));
    network.Attach(rank, *runtimes[rank]);
  }
  Status other;
  std::thread rank_one([&] { other = runtimes[1]->Run(plan, 1, {{"x", Value(5.0)}}).status(); });
  const Result<RunResult> result = runtimes[0]->Run(plan, 1, {{"x", Value(5.0)}});
  rank_one.join();
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(other.ok()) << other.ToString();
  EXPECT_EQ(pieces, 3);
  for (uint32_t rank = 0; rank < 2; ++rank) network.Detach(rank);
}

// One dispatcher, driven by the test thread, and a device.
class DispatcherTest : public testing::Test, public RunControl {
 protected:
  class Body : public TaskBody {
   public:
    explicit Body(Gate& gate) : gate_(gate) {}
    Status Perform(size_t number, std::span<const Value* const>, int64_t, std::span<Value> results) override {
      HEDDLE_ASSIGN_OR_RETURN(results[0], number == 1 ? gate_.Pass() : Result<Value>(Value(1.0)));
      return OkStatus();
    }

   private:
    Gate& gate_;
  };

  ActiveRun* Active(uint32_t run) override { return run == active_.run ? &active_ : nullptr; }
  void ActorFailed(uint32_t, NodeId, Status status) override { failure_ = status; }
  void StreamDone(ActiveRun&) override { is_done_ = true; }
  void Expose(uint32_t, RegisterId, uint8_t, const Value&) override {}
  void Withdraw(uint32_t, RegisterId, uint8_t) override {}
  void AddWaits(uint32_t, std::vector<std::string>) override {}

  Actor::State StateOf(size_t number) { return instance_->actors()[number].state(); }
  void StepUntilIdle() {
    while (dispatcher_.Step()) {
    }
  }

  Gate gate_;
  ActiveRun active_;
  std::unique_ptr<PlanInstance> instance_;
  Status failure_;
  bool is_done_ = false;
  DeviceWorker device_{1, false};
  Dispatcher dispatcher_{0, *this, nullptr};
};

TEST_F(DispatcherTest, CancelIsAnsweredWhileALongKernelRuns) {
  PlanWriter writer(1);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, kCompute, {}));
  const size_t slow = writer.Add(TaskKind::kCompute, 0, kCompute, {made});
  writer.task(slow).cost_ns = kSecondNs;
  writer.Add(TaskKind::kSink, 0, kCompute, {writer.Output(slow)});
  writer.Add(TaskKind::kSource, 0, kCompute, {});
  instance_ = *PlanInstance::Create(std::make_shared<const Plan>(writer.Finish()), 0);
  Body body(gate_);
  std::vector<TaskStatistics> statistics(4);
  std::vector<LaunchEstimate> estimates;
  for (const Actor& actor : instance_->actors()) estimates.emplace_back(actor.task().cost_ns);
  active_.run = 1;
  active_.instance = instance_.get();
  active_.body = &body;
  active_.statistics = &statistics;
  active_.estimates = &estimates;
  active_.caller = &dispatcher_;
  active_.serving.assign(instance_->plan().streams.size(), &dispatcher_);
  dispatcher_.set_device(&device_);
  device_.Start();
  instance_->Begin(1);

  dispatcher_.Post({.run = 1, .type = MessageType::kStart});
  StepUntilIdle();
  EXPECT_EQ(StateOf(1), Actor::State::kRunning);
  EXPECT_EQ(StateOf(3), Actor::State::kDone) << "an act of the same thread went on";
  EXPECT_TRUE(dispatcher_.is_busy());
  EXPECT_NE(instance_->actors()[1].DescribeWait().find("waits for its kernel"), std::string::npos);

  dispatcher_.Post({.run = 1, .type = MessageType::kAbort});
  StepUntilIdle();
  EXPECT_EQ(StateOf(0), Actor::State::kDone);
  EXPECT_EQ(StateOf(1), Actor::State::kAborting);
  EXPECT_EQ(StateOf(2), Actor::State::kDone);
  EXPECT_FALSE(is_done_) << "the kernel still reads its inputs";

  gate_.Open();
  while (!is_done_) {
    ASSERT_TRUE(dispatcher_.Wait(20 * kSecondNs));
    StepUntilIdle();
  }
  EXPECT_EQ(StateOf(1), Actor::State::kDone);
  EXPECT_FALSE(dispatcher_.is_busy());
  EXPECT_TRUE(failure_.ok());
  instance_->Clear();
}

using DeviceWorkerDeathTest = testing::Test;
TEST(DeviceWorkerDeathTest, NoThreadIsMadeDuringARun) {
  DeviceWorker device(1, false);
  EXPECT_DEATH(device.Launch([] {}), "I9");
}

}  // namespace
}  // namespace heddle::actor

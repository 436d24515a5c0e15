// SPDX-License-Identifier: Apache-2.0
// What a record has of values that come from other ranks.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

#include "actor/runtime.h"
#include "core/environment/recorder.h"
#include "tests/unit/actor/ring_plan.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {
namespace {

using Done = std::function<void(Result<Value>)>;

// A link that answers a pull when the test does.
class HeldLink : public Link {
 public:
  void Send(uint32_t, std::span<const Message>) override {}
  void SendError(uint32_t, uint32_t, NodeId, const Status&) override {}
  void Pull(uint32_t, uint32_t, RegisterId, uint8_t, Done done) override {
    const std::lock_guard lock(mutex_);
    held_ = std::move(done);
    changed_.notify_all();
  }
  // What answers the next pull. Waits for it.
  Done Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ != nullptr; });
    return std::exchange(held_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Done held_;
};

// Rank 1 of a plan that takes x from rank 0 and keeps it as y. There is no rank 0 but this test.
class RecordedCopiesTest : public testing::Test {
 protected:
  RecordedCopiesTest() : recorder_(std::in_place, SystemClock(), /*most_events=*/100) {
    std::tie(plan_, ready_) = OneCopy();
    runtime_ =
        Runtime::Create({.rank = 1, .threads = 1, .recorder = &*recorder_}, kernels_, context_, &link_);
    run_ = std::thread([this] { result_ = runtime_->Run(plan_, 1, {}); });
    runtime_->OnMessage(ready_);
  }
  ~RecordedCopiesTest() override {
    if (run_.joinable()) run_.join();
  }

  // The events of copies, by the name of their thread.
  std::vector<std::pair<std::string, RecordedEvent>> Copies() const {
    std::vector<std::pair<std::string, RecordedEvent>> copies;
    const std::vector<RecordedSite> sites = recorder_->Sites();
    for (const RecordedThread& thread : recorder_->Threads())
      for (const RecordedEvent& event : thread.events)
        if (sites[event.site].kind == RecordedKind::kCopy) copies.emplace_back(thread.name, event);
    return copies;
  }

  TestKernels kernels_;
  ops::KernelContext context_;
  HeldLink link_;
  std::optional<Recorder> recorder_;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Runtime> runtime_;
  Message ready_;
  Result<RunResult> result_ = RunResult();
  std::thread run_;
};

TEST_F(RecordedCopiesTest, ACopyIsRecordedByTheThreadThatWaitsForIt) {
  link_.Take()(Value(2.0));
  Message end = ready_;
  end.type = MessageType::kEos;
  runtime_->OnMessage(end);
  run_.join();
  ASSERT_TRUE(result_.ok()) << result_.status().ToString();
  const auto copies = Copies();
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].first, "network");
  EXPECT_EQ(copies[0].second.bytes, 8);
  EXPECT_GT(copies[0].second.begin_ns, 0);
  EXPECT_GE(copies[0].second.duration_ns, 0);
}

// Whoever reads a record when its run is over reads it alone.
TEST_F(RecordedCopiesTest, WhatComesAfterARunHasFailedIsNotRecorded) {
  const Done answer = link_.Take();
  runtime_->Cancel(Unavailable("worker 7 has gone"));
  run_.join();
  EXPECT_EQ(result_.status().message(), "worker 7 has gone");
  answer(Value(2.0));
  EXPECT_TRUE(Copies().empty());
}

TEST_F(RecordedCopiesTest, WhatComesWhenTheRecordIsGoneTouchesNothing) {
  const Done answer = link_.Take();
  runtime_->Cancel(Unavailable("worker 7 has gone"));
  run_.join();
  runtime_.reset();
  recorder_.reset();
  answer(Value(2.0));
}

}  // namespace
}  // namespace heddle::actor

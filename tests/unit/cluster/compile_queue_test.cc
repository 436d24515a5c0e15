// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compile_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <list>
#include <new>
#include <optional>
#include <thread>

namespace heddle::cluster {
namespace {

bool Never() { return false; }

// Work that has begun when the object is there, and goes on until it is let go.
class Running {
 public:
  Running(CompileQueue* queue, const std::string& id) {
    thread_ = std::thread([this, queue, id] {
      const Status status = queue->Run(
          id,
          [this] {
            begun_.set_value();
            may_end_.get_future().wait();
          },
          Never);
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
    begun_.get_future().wait();
  }
  ~Running() {
    may_end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> begun_, may_end_;
  std::thread thread_;
};

// Waits for its turn; the object is there when it does.
class Waiting {
 public:
  Waiting(CompileQueue* queue, const std::string& id, std::function<void()> work) {
    thread_ = std::thread([this, queue, id, work = std::move(work)] {
      const Status status = queue->Run(id, work, [this] {
        if (!told_.exchange(true)) waits_.set_value();
        return false;
      });
      EXPECT_TRUE(status.ok()) << status.ToString();
    });
    waits_.get_future().wait();
  }
  ~Waiting() { thread_.join(); }

 private:
  std::atomic<bool> told_ = false;
  std::promise<void> waits_;
  std::thread thread_;
};

TEST(CompileQueueTest, AFewAtATimeAFewMoreWaitAndTheRestIsRefused) {
  CompileQueue queue(/*at_a_time=*/2, /*most_waiting=*/2);
  std::string order;
  {
    std::optional<Waiting> third, fourth;
    {
      const Running first(&queue, "first");
      const Running second(&queue, "second");
      third.emplace(&queue, "third", [&] { order += "third "; });
      fourth.emplace(&queue, "fourth", [] {});
      const Status refused = queue.Run(
          "fifth", [] { FAIL(); }, Never);
      EXPECT_EQ(refused.message(), "the master compiles 2 scripts and 2 wait for it: try again later");
      EXPECT_EQ(ExitCode(refused), 6);
      EXPECT_FALSE(queue.Find("second")->waits);
      const CompileQueue::Place place = *queue.Find("fourth");
      EXPECT_TRUE(place.waits);
      EXPECT_EQ(place.running, 2);
      EXPECT_EQ(place.ahead, 1);
      EXPECT_EQ(queue.Find("third")->ahead, 0);
      EXPECT_FALSE(queue.Find("fifth").has_value());
      EXPECT_EQ(order, "");
    }
  }
  EXPECT_EQ(order, "third ");
  EXPECT_TRUE(queue
                  .Run(
                      "sixth", [&] { order += "sixth"; }, Never)
                  .ok());
  EXPECT_EQ(order, "third sixth");
  EXPECT_FALSE(queue.Find("sixth").has_value());
}

TEST(CompileQueueTest, TheFirstToComeIsTheFirstToRun) {
  CompileQueue queue(/*at_a_time=*/1, /*most_waiting=*/8);
  std::string order;
  {
    std::list<Waiting> waiting;
    const Running first(&queue, "first");
    for (const char* id : {"a", "b", "c", "d"})
      waiting.emplace_back(&queue, id, [&order, id] { order += id; });
  }
  EXPECT_EQ(order, "abcd");
}

TEST(CompileQueueTest, WhoHasGivenUpIsNotCompiledFor) {
  CompileQueue queue(/*at_a_time=*/1, /*most_waiting=*/1);
  const Running first(&queue, "first");
  const Status given_up = queue.Run(
      "second", [] { FAIL(); }, [] { return true; });
  EXPECT_EQ(given_up.code(), StatusCode::kCancelled);
  EXPECT_EQ(given_up.message(), "nobody waits for this script any more");
  EXPECT_FALSE(queue.Find("second").has_value());
}

TEST(CompileQueueTest, WorkThatThrowsLeavesItsPlace) {
  CompileQueue queue(/*at_a_time=*/1, /*most_waiting=*/1);
  const auto never = [] { return false; };
  EXPECT_THROW((void)queue.Run(
                   "a", [] { throw std::bad_alloc(); }, never),
               std::bad_alloc);
  bool ran = false;
  EXPECT_TRUE(queue
                  .Run(
                      "b", [&] { ran = true; }, never)
                  .ok());
  EXPECT_TRUE(ran);
}

TEST(CompileQueueTest, SharesAreLargeEnoughForAScript) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  EXPECT_EQ(SharesOf(24 * kGiB, 2).at_a_time, 2);
  EXPECT_EQ(SharesOf(24 * kGiB, 2).bytes, 8 * kGiB);
  EXPECT_EQ(SharesOf(24 * kGiB, 1).at_a_time, 2) << "a long one does not hold up all others";
  EXPECT_EQ(SharesOf(2 * kGiB, 64).at_a_time, 7) << "many processors share little memory";
  EXPECT_EQ(SharesOf(2 * kGiB, 64).bytes, kLeastCompileBytes);
  EXPECT_EQ(SharesOf(kGiB / 8, 64).at_a_time, 1);
}

}  // namespace
}  // namespace heddle::cluster

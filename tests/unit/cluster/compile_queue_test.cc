// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/compile_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace heddle::cluster {
namespace {

bool Never() { return false; }

TEST(CompileQueueTest, AFewAtATimeAFewMoreWaitAndTheRestIsRefused) {
  CompileQueue queue(/*at_a_time=*/1, /*most_waiting=*/1);
  std::promise<void> begun, may_end;
  std::atomic<int> done = 0;
  std::thread first([&] {
    EXPECT_TRUE(queue
                    .Run(
                        [&] {
                          begun.set_value();
                          may_end.get_future().wait();
                          ++done;
                        },
                        Never)
                    .ok());
  });
  begun.get_future().wait();
  std::promise<void> waits;
  std::atomic<bool> told = false;
  std::thread second([&] {
    const Status status = queue.Run(
        [&] {
          EXPECT_EQ(done, 1) << "one at a time";
          ++done;
        },
        [&] {
          if (!told.exchange(true)) waits.set_value();
          return false;
        });
    EXPECT_TRUE(status.ok());
  });
  waits.get_future().wait();
  const Status refused = queue.Run([] { FAIL(); }, Never);
  EXPECT_EQ(refused.message(), "the master compiles 1 scripts and 1 wait for it: try again later");
  EXPECT_EQ(ExitCode(refused), 6);
  may_end.set_value();
  first.join();
  second.join();
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(queue.Run([&] { ++done; }, Never).ok());
  EXPECT_EQ(done, 3);
}

TEST(CompileQueueTest, WhoHasGivenUpIsNotCompiledFor) {
  CompileQueue queue(/*at_a_time=*/1, /*most_waiting=*/1);
  std::promise<void> begun, may_end;
  std::thread first([&] {
    EXPECT_TRUE(queue
                    .Run(
                        [&] {
                          begun.set_value();
                          may_end.get_future().wait();
                        },
                        Never)
                    .ok());
  });
  begun.get_future().wait();
  EXPECT_EQ(queue.Run([] { FAIL(); }, [] { return true; }).code(), StatusCode::kCancelled);
  may_end.set_value();
  first.join();
}

}  // namespace
}  // namespace heddle::cluster

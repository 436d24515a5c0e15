// SPDX-License-Identifier: Apache-2.0
#include "ops/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace heddle::ops {
namespace {

// Each part waits for all others, so that fewer threads would never end.
TEST(ParallelTest, AnArenaMayHaveMoreThreadsThanTheMachineHasCores) {
  const int threads = static_cast<int>(std::thread::hardware_concurrency()) + 2;
  testing::internal::CaptureStderr();
  {
    Arena arena(threads);
    arena.Execute([&] {
      EXPECT_EQ(ParallelThreads(), threads);
      std::mutex mutex;
      std::condition_variable all_are_here;
      int here = 0;
      ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
        ASSERT_EQ(end, begin + 1);
        std::unique_lock lock(mutex);
        ++here;
        all_are_here.notify_all();
        all_are_here.wait(lock, [&] { return here == threads; });
      });
    });
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ParallelTest, PartsAreWholeNumbersOfGrains) {
  Arena arena(3);
  arena.Execute([] {
    std::atomic<int64_t> sum = 0;
    ParallelFor(1000, 7, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % 7, 0);
      EXPECT_TRUE(end == 1000 || end % 7 == 0);
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum, 999 * 1000 / 2);
  });
}

}  // namespace
}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "core/memory/counted_heap.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/heap_of_thread.h"
#include "core/memory/memory_budget.h"

namespace heddle {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Each thread may have so much that is not yet counted.
constexpr int64_t kNotYet = int64_t{128} << 10;

class CountedHeapTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HeapIsCounted()) GTEST_SKIP() << "sanitizers have a heap of their own";
    limit_ = MemoryBudget::Process().limit();
  }
  void TearDown() override {
    if (HeapIsCounted()) MemoryBudget::Process().SetLimit(limit_);
  }
  // So that `bytes` more fit.
  void LeaveRoomFor(int64_t bytes) {
    BlockPool::Process().Trim();
    MemoryBudget::Process().SetLimit(
        std::max(MemoryBudget::Process().used(), HeapBytes() - MemoryBudget::kHeapAllowance) + bytes);
  }
  int64_t limit_ = 0;
};

// Fills the allowance, so that what follows counts from the first byte.
class CountedHeapAtTheLimitTest : public CountedHeapTest {
 protected:
  void SetUp() override {
    CountedHeapTest::SetUp();
    if (HeapIsCounted()) allowance_.resize(static_cast<size_t>(MemoryBudget::kHeapAllowance));
  }
  std::string allowance_;
};

// Each keeps less than what a thread counts on its own.
TEST_F(CountedHeapTest, WhatAThreadLeavesBehindIsCounted) {
  const int64_t before = HeapBytes();
  std::vector<std::unique_ptr<char[]>> left(100);
  for (std::unique_ptr<char[]>& block : left) {
    std::thread thread([&block] {
      block = std::make_unique<char[]>(20'000);
      ShareHeapCount();
    });
    thread.join();
  }
  EXPECT_GE(HeapBytes() - before, 2'000'000 - kNotYet);
}

TEST_F(CountedHeapTest, AllocationsAreCountedByTheThreadThatMakesThem) {
  std::vector<std::string> held;
  held.reserve(4);
  const int64_t before = HeapAllocations();
  for (int i = 0; i < 3; ++i) held.emplace_back(100, 'x');
  EXPECT_EQ(HeapAllocations() - before, 3);
  std::thread([&] {
    const int64_t own = HeapAllocations();
    held.emplace_back(100, 'x');
    EXPECT_EQ(HeapAllocations() - own, 1);
  }).join();
  EXPECT_LE(HeapAllocations() - before, 5) << "what std::thread takes";
}

TEST_F(CountedHeapTest, EveryWayToAllocateCounts) {
  const auto counted = [](const auto& hold) {
    const int64_t before = HeapBytes();
    auto held = hold();
    return HeapBytes() - before;
  };
  const auto expect_near = [](int64_t bytes, int64_t wanted) {
    EXPECT_GE(bytes, wanted - kNotYet);
    EXPECT_LE(bytes, wanted + kNotYet);
  };
  const int64_t begin = HeapBytes();
  expect_near(counted([] { return std::string(10 * kMiB, 'x'); }), 10 * kMiB);
  expect_near(counted([] { return std::vector<double>(1'000'000); }), 8'000'000);
  expect_near(counted([] { return std::make_unique<char[]>(3 * kMiB); }), 3 * kMiB);
  expect_near(counted([] { return std::vector<std::string>(100'000, std::string(100, 'x')); }),
              100'000 * int64_t{sizeof(std::string) + 112});
  for (const auto& get :
       {+[] { return malloc(2 * kMiB); }, +[] { return calloc(2, kMiB); },
        +[] { return aligned_alloc(64, 2 * kMiB); }, +[] { return realloc(malloc(kMiB), 2 * kMiB); }}) {
    const int64_t before = HeapBytes();
    void* const block = get();
    expect_near(HeapBytes() - before, 2 * kMiB);
    free(block);
  }
  void* block = nullptr;
  ASSERT_EQ(posix_memalign(&block, 4096, 5 * kMiB), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0u);
  free(block);
  expect_near(HeapBytes() - begin, 0);
}

TEST_F(CountedHeapTest, ChunksAreAsLargeAsTheHeapSays) {
  for (const size_t bytes : {size_t{1}, size_t{24}, size_t{25}, size_t{1000}, size_t{100'000},
                             size_t{3} << 20, size_t{64} << 20}) {
    std::vector<void*> blocks;
    int64_t usable = 0;
    const int64_t before = HeapBytes();
    const size_t count = std::max<size_t>(1, (size_t{4} << 20) / (bytes + 16));
    blocks.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      blocks.push_back(malloc(bytes));
      usable += static_cast<int64_t>(malloc_usable_size(blocks.back()));
    }
    const int64_t counted = HeapBytes() - before - static_cast<int64_t>(count * sizeof(void*));
    EXPECT_GE(counted, usable - kNotYet) << bytes;
    EXPECT_LE(counted, usable + static_cast<int64_t>(16 * count) + kNotYet) << bytes;
    for (void* const block : blocks) free(block);
  }
}

TEST_F(CountedHeapTest, WhatThreadsCountedIsNotLost) {
  const int64_t before = HeapBytes();
  std::vector<std::string> kept(64);
  for (std::string& text : kept) {
    std::thread([&] { text.assign(100'000, 'x'); }).join();
  }
  EXPECT_NEAR(static_cast<double>(HeapBytes() - before), 64 * 100'000, 64 * 8192 + kNotYet);
}

TEST_F(CountedHeapAtTheLimitTest, NothingIsRefusedWhereNobodyCanTell) {
  LeaveRoomFor(kMiB);
  const std::string text(20 * kMiB, 'x');
  EXPECT_TRUE(MemoryBudget::Process().IsOver());
  EXPECT_EQ(text.back(), 'x');
}

TEST_F(CountedHeapAtTheLimitTest, ARefusedAllocationIsAnErrorWithNumbers) {
  LeaveRoomFor(10 * kMiB);
  const int64_t before = HeapBytes();
  const Status status = WithinMemory("order", []() -> Status {
    const std::vector<double> fits(kMiB);
    const std::vector<double> copy(fits);
    return OkStatus();
  });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(status.message().starts_with(
      "out of memory: working memory of 8388608 bytes for 'order' does not fit: "))
      << status.message();
  ASSERT_EQ(status.notes().size(), 1u);
  EXPECT_NEAR(static_cast<double>(HeapBytes() - before), 0, kNotYet);
  EXPECT_TRUE(WithinMemory("order", [] {
                const std::vector<double> fits(kMiB);
                return OkStatus();
              }).ok());
}

TEST_F(CountedHeapAtTheLimitTest, ManySmallAllocationsAreRefusedTogether) {
  LeaveRoomFor(10 * kMiB);
  size_t count = 0;
  const Status status = WithinMemory("a list", [&]() -> Status {
    std::vector<std::unique_ptr<std::string>> texts;
    texts.reserve(1 << 16);
    for (; count < 1 << 16; ++count) texts.push_back(std::make_unique<std::string>(1000, 'x'));
    return OkStatus();
  });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_GT(count, size_t{8'000});
  EXPECT_LT(count, size_t{11'000});
}

TEST_F(CountedHeapAtTheLimitTest, GrowingInPlaceIsRefusedAndTheOldBlockStays) {
  LeaveRoomFor(10 * kMiB);
  void* block = malloc(8 * kMiB);
  std::memset(block, 'x', 8 * kMiB);
  {
    const HeapModeScope refuses(HeapMode::kRefuses);
    EXPECT_EQ(realloc(block, 30 * kMiB), nullptr);
    EXPECT_EQ(static_cast<char*>(block)[8 * kMiB - 1], 'x');
    block = realloc(block, 9 * kMiB);
    EXPECT_NE(block, nullptr);
  }
  free(block);
}

TEST_F(CountedHeapAtTheLimitTest, FreeBlocksOfThePoolMakeRoomForTheHeap) {
  LeaveRoomFor(20 * kMiB);
  void* const block = *BlockPool::Process().Allocate(16 * kMiB);
  BlockPool::Process().Free(block, 16 * kMiB);
  EXPECT_TRUE(WithinMemory("a text", [] {
                const std::string text(12 * kMiB, 'x');
                return OkStatus();
              }).ok());
}

TEST_F(CountedHeapAtTheLimitTest, TheHeapLeavesNoRoomForAMatrixThatDoesNotFitBeside) {
  LeaveRoomFor(20 * kMiB);
  const std::string text(12 * kMiB, 'x');
  const Result<void*> refused = BlockPool::Process().Allocate(16 * kMiB);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  const Result<void*> fits = BlockPool::Process().Allocate(4 * kMiB);
  ASSERT_TRUE(fits.ok());
  BlockPool::Process().Free(*fits, 4 * kMiB);
}

// What a failing kernel gives back before its error is told was in use when it failed.
TEST_F(CountedHeapAtTheLimitTest, TheNumbersOfARefusalAreMoreThanTheLimit) {
  const auto adds_up = [](const Status& status) {
    long long asked = 0, used = 0, limit = 0;
    const int read = std::sscanf(status.message().c_str(),
                                 "out of memory: working memory of %lld bytes for 'x' does not fit: %lld of "
                                 "%lld bytes in use",
                                 &asked, &used, &limit);
    return read == 3 && asked + used > limit;
  };
  LeaveRoomFor(20 * kMiB);
  const Status of_large_blocks = WithinMemory("x", []() -> Status {
    std::vector<std::string> texts;
    for (;;) texts.emplace_back(3 * kMiB, 'x');
  });
  EXPECT_TRUE(adds_up(of_large_blocks)) << of_large_blocks.message();
  const Status of_small_blocks = WithinMemory("x", []() -> Status {
    std::vector<std::unique_ptr<char[]>> blocks;
    blocks.reserve(1 << 16);
    for (;;) blocks.push_back(std::make_unique<char[]>(500));
  });
  EXPECT_TRUE(adds_up(of_small_blocks)) << of_small_blocks.message();
}

TEST_F(CountedHeapTest, AnExceptionThatWasForgottenEndsTheWorkAndNotTheProcess) {
  const Status status = WithinMemory("rev", []() -> Status {
    const std::map<std::string, Status> known;
    return known.at("b");
  });
  EXPECT_EQ(ExitCode(status), 70);
  EXPECT_EQ(status.message(), "'rev' was left by an exception: map::at");
}

TEST_F(CountedHeapTest, SizesBeyondAllContainersAreErrorsToo) {
  const Status status = WithinMemory("rev", []() -> Status {
    std::vector<double> absurd;
    absurd.resize(SIZE_MAX / 4);
    return OkStatus();
  });
  EXPECT_TRUE(status.message().starts_with(
      "out of memory: working memory of more bytes than there are addresses for 'rev' does not fit: "))
      << status.message();
}

TEST_F(CountedHeapTest, UncaughtWantOfMemoryEndsWithItsExitCodeAndSaysSo) {
  EXPECT_EXIT(
      {
        PrepareHeap();
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(5), "heddle: error: out of memory: ");
  EXPECT_EXIT(
      {
        PrepareHeap();
        std::thread([] {
          throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
        }).join();
      },
      testing::ExitedWithCode(5), "heddle: error: out of memory: ");
}

}  // namespace
}  // namespace heddle

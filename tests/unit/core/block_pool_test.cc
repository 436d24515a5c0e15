// SPDX-License-Identifier: Apache-2.0
#include "core/memory/block_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "core/environment/random.h"
#include "core/memory/memory_bounds.h"

namespace heddle {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(BlockPoolTest, ClassesAreCloseAbove) {
  const std::pair<int64_t, int64_t> cases[] = {
      {0, 64},
      {1, 64},
      {64, 64},
      {65, 128},
      {4096, 4096},
      {4097, 6144},
      {6144, 6144},
      {6145, 8192},
      {8192, 8192},
      {8193, 12288},
      {100000, 131072},
      {kMiB, kMiB},
      {kMiB + 1, 3 * kMiB / 2},
      {3 * kMiB / 2 + 1, 2 * kMiB},
      {2 * kMiB, 2 * kMiB},
      {2 * kMiB + 1, 4 * kMiB},
      {16 * kMiB, 16 * kMiB},
      {16 * kMiB + 1, 18 * kMiB},
      {32 * kMiB + 1, 36 * kMiB},
      {800 * kMiB, 832 * kMiB},
      {1024 * kMiB, 1024 * kMiB},
  };
  for (const auto& [bytes, expected] : cases) EXPECT_EQ(BlockPool::ClassBytes(bytes), expected) << bytes;
  SeededRandom random(3);
  for (int i = 0; i < 100000; ++i) {
    const auto bytes = static_cast<int64_t>(random.Next() >> (18 + random.Below(45)));
    const int64_t got = BlockPool::ClassBytes(bytes);
    ASSERT_GE(got, bytes);
    ASSERT_EQ(BlockPool::ClassBytes(got), got) << "a class holds its own size";
    ASSERT_EQ(got % 64, 0);
    if (bytes > 16 * kMiB) {
      ASSERT_LE(got - bytes, bytes / 8 + 2 * kMiB) << bytes;
    }
  }
}

TEST(BlockPoolTest, AFreedBlockServesTheNextOfItsClass) {
  MemoryBudget budget(1024 * kMiB);
  BlockPool pool(&budget);
  for (const int64_t bytes : {int64_t{100}, int64_t{5000}, kMiB, 5 * kMiB}) {
    void* const first = *pool.Allocate(bytes);
    pool.Free(first, bytes);
    void* const second = *pool.Allocate(bytes - 1);
    EXPECT_EQ(second, first);
    pool.Free(second, bytes - 1);
  }
  const BlockPoolStatistics statistics = pool.Statistics();
  EXPECT_EQ(statistics.fresh_bytes, statistics.reused_bytes);
  EXPECT_EQ(statistics.in_use_bytes, 0);
  EXPECT_EQ(statistics.free_bytes, statistics.fresh_bytes);
  EXPECT_EQ(statistics.peak_in_use_bytes, 6 * kMiB);
  EXPECT_EQ(budget.used(), statistics.fresh_bytes) << "free blocks still count";
  EXPECT_EQ(pool.Trim(), statistics.fresh_bytes);
  EXPECT_EQ(budget.used(), 0);
  EXPECT_EQ(pool.Statistics().free_bytes, 0);
}

TEST(BlockPoolTest, BlocksDoNotOverlap) {
  MemoryBudget budget(1024 * kMiB);
  BlockPool pool(&budget);
  SeededRandom random(5);
  struct Held {
    unsigned char* block;
    int64_t bytes;
    unsigned char fill;
  };
  std::vector<Held> held;
  for (int i = 0; i < 3000; ++i) {
    if (held.size() > 60 || (!held.empty() && random.Below(3) == 0)) {
      const size_t victim = random.Below(held.size());
      const Held gone = held[victim];
      for (int64_t k = 0; k < gone.bytes; k += gone.bytes / 50 + 1) ASSERT_EQ(gone.block[k], gone.fill);
      ASSERT_EQ(gone.block[gone.bytes - 1], gone.fill);
      pool.Free(gone.block, gone.bytes);
      held.erase(held.begin() + static_cast<ptrdiff_t>(victim));
      if (random.Below(50) == 0) pool.Trim();
      continue;
    }
    const auto bytes = static_cast<int64_t>(1 + random.Below(uint64_t{1} << random.Below(19)));
    auto* const block = static_cast<unsigned char*>(*pool.Allocate(bytes));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    const auto fill = static_cast<unsigned char>(random.Next());
    std::memset(block, fill, static_cast<size_t>(bytes));
    held.push_back({block, bytes, fill});
  }
  for (const Held& one : held) pool.Free(one.block, one.bytes);
}

TEST(BlockPoolTest, PastTheBudgetIsAnErrorThatSaysHowMuch) {
  MemoryBudget budget(10 * kMiB);
  BlockPool pool(&budget);
  void* const held = *pool.Allocate(4 * kMiB);
  const Result<void*> refused = pool.Allocate(8 * kMiB);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.status().message(),
            "out of memory: a matrix of 8388608 bytes does not fit: 4194304 of 10485760 bytes in use");
  ASSERT_EQ(refused.status().notes().size(), 1u);
  EXPECT_NE(refused.status().notes()[0].find("--memory"), std::string::npos);
  EXPECT_EQ(budget.used(), 4 * kMiB) << "what was refused is not charged";
  budget.SetLimit(12 * kMiB);
  const Result<void*> allowed = pool.Allocate(8 * kMiB);
  ASSERT_TRUE(allowed.ok());
  pool.Free(*allowed, 8 * kMiB);
  pool.Free(held, 4 * kMiB);
}

TEST(BlockPoolTest, FreeBlocksOfOtherClassesMakeRoom) {
  MemoryBudget budget(10 * kMiB);
  BlockPool pool(&budget);
  void* const large = *pool.Allocate(6 * kMiB);
  void* const medium = *pool.Allocate(2 * kMiB);
  pool.Free(large, 6 * kMiB);
  pool.Free(medium, 2 * kMiB);
  const Result<void*> other = pool.Allocate(4 * kMiB);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(budget.used(), 6 * kMiB) << "only as much is returned as it takes";
  pool.Free(*other, 4 * kMiB);
  const Result<void*> whole = pool.Allocate(10 * kMiB);
  ASSERT_TRUE(whole.ok());
  pool.Free(*whole, 10 * kMiB);
}

TEST(BlockPoolTest, AChunkStaysWhileOneOfItsBlocksIsHeld) {
  MemoryBudget budget(100 * kMiB);
  BlockPool pool(&budget);
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(*pool.Allocate(100000));
  for (int i = 1; i < 10; ++i) pool.Free(blocks[static_cast<size_t>(i)], 100000);
  EXPECT_EQ(pool.Trim(), 0);
  std::memset(blocks[0], 1, 100000);
  pool.Free(blocks[0], 100000);
  EXPECT_EQ(pool.Trim(), 10 * 131072);
  EXPECT_EQ(budget.used(), 0);
}

// What is not trimmable is no room for a block of another class, and all else is.
TEST(BlockPoolTest, TrimmableBytesAreTheRoomThatFreeBlocksMake) {
  for (const int64_t wanted : {20 * kMiB, 24 * kMiB, 32 * kMiB, 40 * kMiB, 64 * kMiB}) {
    for (const int keep : {2, 3, 7, 100}) {
      MemoryBudget budget(100 * kMiB);
      BlockPool pool(&budget);
      std::vector<void*> blocks;
      for (int i = 0; i < 60; ++i) blocks.push_back(*pool.Allocate(kMiB));
      for (int i = 0; i < 60; ++i)
        if (i % keep != 0) pool.Free(blocks[static_cast<size_t>(i)], kMiB);
      void* const large = *pool.Allocate(8 * kMiB);
      pool.Free(large, 8 * kMiB);
      const BlockPoolStatistics statistics = pool.Statistics();
      EXPECT_LE(statistics.trimmable_bytes, statistics.free_bytes);
      // A chunk has six blocks: each has one that is held, where every second one is, or every third.
      if (keep <= 3) {
        EXPECT_EQ(statistics.trimmable_bytes, 8 * kMiB);
      }
      if (keep == 100) {
        EXPECT_EQ(statistics.trimmable_bytes, (54 + 8) * kMiB);
      }
      const bool has_room = budget.used() - statistics.trimmable_bytes + wanted <= budget.limit();
      const Result<void*> block = pool.Allocate(wanted);
      EXPECT_EQ(block.ok(), has_room) << wanted << " beside every " << keep << "th block";
      if (block.ok()) pool.Free(*block, wanted);
      for (int i = 0; i < 60; i += keep) pool.Free(blocks[static_cast<size_t>(i)], kMiB);
      EXPECT_EQ(pool.Statistics().trimmable_bytes, pool.Statistics().free_bytes);
      EXPECT_EQ(pool.Statistics().trimmable_bytes, budget.used());
      pool.Trim();
      EXPECT_EQ(pool.Statistics().trimmable_bytes, 0);
      EXPECT_EQ(budget.used(), 0);
    }
  }
}

// Of the process, by the kernel's count.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// One block of each class does not make a huge page of each chunk resident.
TEST(BlockPoolTest, UnderASmallLimitNoMoreIsResidentThanIsCharged) {
  MemoryBudget budget(64 * kMiB);
  BlockPool pool(&budget);
  std::vector<std::pair<void*, int64_t>> blocks;
  blocks.reserve(64);
  const int64_t before = ResidentBytes();
  for (int64_t bytes = 64; bytes < 2 * kMiB; bytes = BlockPool::ClassBytes(bytes) + 1) {
    const int64_t of_class = BlockPool::ClassBytes(bytes);
    const Result<void*> block = pool.Allocate(of_class);
    ASSERT_TRUE(block.ok());
    std::memset(*block, 1, static_cast<size_t>(of_class));
    blocks.emplace_back(*block, of_class);
  }
  EXPECT_LE(ResidentBytes() - before, budget.used() + 2 * kMiB);
  for (const auto& [block, bytes] : blocks) pool.Free(block, bytes);
}

TEST(BlockPoolTest, ThreadsShareThePoolAndItsBudget) {
  MemoryBudget budget(64 * kMiB);
  BlockPool pool(&budget);
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&pool, seed] {
      SeededRandom random(seed);
      for (int i = 0; i < 1000; ++i) {
        const auto bytes = static_cast<int64_t>(1 + random.Below(uint64_t{1} << random.Below(23)));
        const Result<void*> block = pool.Allocate(bytes);
        ASSERT_TRUE(block.ok()) << block.status().ToString();
        static_cast<char*>(*block)[bytes - 1] = 1;
        pool.Free(*block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(budget.peak(), 64 * kMiB);
  EXPECT_EQ(pool.Statistics().trimmable_bytes, budget.used());
  pool.Trim();
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryBudgetTest, ChargesAndPeak) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.TryCharge(60));
  EXPECT_FALSE(budget.TryCharge(41));
  EXPECT_TRUE(budget.TryCharge(40));
  budget.Release(90);
  EXPECT_EQ(budget.used(), 10);
  EXPECT_EQ(budget.peak(), 100);
  budget.SetLimit(5);
  EXPECT_FALSE(budget.TryCharge(1));
  EXPECT_FALSE(budget.TryCharge(INT64_MAX));
}

TEST(MemoryBudgetTest, TheDefaultIsBelowTheMachinesMemory) {
  EXPECT_GT(DefaultMemoryLimit(), 16 * kMiB);
  EXPECT_LT(DefaultMemoryLimit(), int64_t{1} << 50);
}

}  // namespace
}  // namespace heddle

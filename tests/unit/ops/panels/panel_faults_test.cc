// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "core/environment/random.h"
#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "ops/panels/panel_store.h"
#include "tests/support/all_plans.h"
#include "tests/unit/ops/panels/panels_fixture.h"

// Disks that fail, memory that runs out, and many threads at once.
namespace heddle::ops::testing {
namespace {

constexpr int64_t kRows = 60;
const std::vector<int64_t> kHeights = {8, 5, 11};

void ExpectAllRows(const RowPanels& value, Kind kind) {
  for (int64_t begin = 0; begin < kRows; begin += 6) {
    const Result<Value> rows = value.Rows(begin, begin + 6);
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    ASSERT_TRUE(AreSameRows(*rows, RowsOf(kind, begin, begin + 6)));
  }
}

TEST(PanelFaultsTest, AWriteThatFailsIsAnErrorAndLosesNothingThatIsInMemory) {
  const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
  for (const Kind kind : kKinds) {
    bool has_failed = true;
    for (int64_t n = 0; has_failed; ++n) {
      SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << ", write " << n);
      FilesInMemory files;
      const auto store = MakePanelStore(files, 1);
      const auto older = *Collected(*store, kind, kRows, kHeights);
      ASSERT_TRUE(store->SetRoom(store->Statistics().kept_bytes * 3 / 2).ok());
      files.writes_left = n;
      const auto value = Collected(*store, kind, kRows, kHeights);
      const Status status = store->SetRoom(0);
      has_failed = !value.ok() || !status.ok();
      EXPECT_TRUE(value.ok() || value.status().code() == StatusCode::kResourceExhausted);
      EXPECT_TRUE(status.ok() || status.code() == StatusCode::kResourceExhausted);
      ExpectAllRows(*older, kind);
      if (value.ok()) ExpectAllRows(**value, kind);
      // The disk has room again.
      files.writes_left = FilesInMemory::kNever;
      ASSERT_TRUE(store->SetRoom(0).ok());
      EXPECT_EQ(store->Statistics().kept_bytes, 0);
      ExpectAllRows(*older, kind);
    }
  }
  EXPECT_EQ(BlockPool::Process().Statistics().in_use_bytes, before);
}

TEST(PanelFaultsTest, AReadThatFailsIsAnErrorOfThatReadAlone) {
  for (const Kind kind : kKinds)
    for (const bool comes_back : {false, true}) {
      bool has_failed = true;
      for (int64_t n = 0; has_failed; ++n) {
        FilesInMemory files;
        const auto store = MakePanelStore(files, 1);
        const auto value = *Collected(*store, kind, kRows, kHeights);
        const int64_t all = store->Statistics().kept_bytes;
        ASSERT_TRUE(store->SetRoom(0).ok());
        ASSERT_TRUE(store->SetRoom(comes_back ? all : 0).ok());
        files.reads_left = n;
        const Result<Value> rows = value->Rows(3, 50);
        has_failed = !rows.ok();
        EXPECT_TRUE(rows.ok() || rows.status().code() == StatusCode::kDataLoss);
        files.reads_left = FilesInMemory::kNever;
        ExpectAllRows(*value, kind);
        EXPECT_EQ(store->Statistics().kept_bytes, comes_back ? all : 0);
      }
    }
}

TEST(PanelFaultsTest, WithoutFilesWhatCanBeMadeAgainIs) {
  FilesInMemory files;
  files.creates_left = 0;
  const auto store = MakePanelStore(files, 1);
  EXPECT_TRUE(store->SetRoom(2000).ok());
  const auto value = store->Lazy(
      {kRows, 5}, false,
      [](int64_t begin, int64_t end) { return Result<Value>(RowsOf(Kind::kDoubles, begin, end)); },
      /*is_costly=*/true);
  for (int round = 0; round < 2; ++round) ExpectAllRows(*value, Kind::kDoubles);
  EXPECT_TRUE(store->SetRoom(0).ok());
  EXPECT_EQ(store->Statistics().kept_bytes, 0);
  ExpectAllRows(*value, Kind::kDoubles);
}

// What comes from a file that has changed since is an error where the disk is full, never other rows.
TEST(PanelFaultsTest, WhatCannotBeMadeAgainIsNotForgottenWhereTheDiskIsFull) {
  for (const bool is_costly : {false, true}) {
    FilesInMemory files;
    const auto store = MakePanelStore(files, 1);
    bool has_changed = false;
    const auto value = store->Lazy(
        {kRows, 5}, false,
        [&](int64_t begin, int64_t end) -> Result<Value> {
          if (has_changed) return DataLoss("changed");
          return RowsOf(Kind::kDoubles, begin, end);
        },
        is_costly, "X.csv");
    ASSERT_TRUE(store->KeepAll("X.csv").ok());
    has_changed = true;
    files.writes_left = 0;
    EXPECT_EQ(store->SetRoom(0).code(), StatusCode::kResourceExhausted);
    ExpectAllRows(*value, Kind::kDoubles);
    files.writes_left = FilesInMemory::kNever;
    EXPECT_TRUE(store->SetRoom(0).ok());
    ExpectAllRows(*value, Kind::kDoubles);
  }
}

TEST(PanelFaultsTest, AMakerThatFailsIsTheErrorOfTheRead) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  bool fails = true;
  const auto value = store->Lazy(
      {kRows, 5}, false,
      [&](int64_t begin, int64_t end) -> Result<Value> {
        if (fails) return FailedPrecondition("not now");
        return RowsOf(Kind::kDoubles, begin, end);
      },
      /*is_costly=*/false);
  EXPECT_EQ(value->Rows(2, 3).status().message(), "not now");
  fails = false;
  ExpectAllRows(*value, Kind::kDoubles);
}

// Whatever bit of a file turns, no read gives other rows than those that were written.
TEST(PanelFaultsTest, EveryBitThatTurnsIsFound) {
  for (const Kind kind : kKinds)
    for (int64_t at = 0;; at += 13) {
      FilesInMemory files;
      const auto store = MakePanelStore(files, 1);
      const auto value = *Collected(*store, kind, kRows, {30});
      ASSERT_TRUE(store->SetRoom(0).ok());
      if (!files.TurnBit(at)) break;
      const Result<Value> all = value->Rows(0, kRows);
      if (all.ok()) {  // A byte between two panels.
        EXPECT_TRUE(AreSameRows(*all, RowsOf(kind, 0, kRows)));
        at += 100;
        continue;
      }
      EXPECT_EQ(all.status().code(), StatusCode::kDataLoss);
      EXPECT_EQ(all.status().ToString(),
                "spill: bytes of a file in 'memory' are not what was written there\n"
                "the disk has changed them: name a folder on another one (--spill-folder FOLDER)");
    }
}

TEST(PanelFaultsTest, WhereMemoryHasNoRoomForAPanelTheRowsThatAreAskedForAreRead) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  const auto collector = store->Collect({1 << 20, 5}, false);
  ASSERT_TRUE(collector->Add(RowsOf(Kind::kDoubles, 0, 1 << 20)).ok());
  const auto value = *collector->Finish();
  ASSERT_TRUE(store->SetRoom(0).ok());
  ASSERT_TRUE(store->SetRoom(int64_t{1} << 30).ok());
  BlockPool::Process().Trim();
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(budget.used() + (8 << 20));  // The panel has 40 MiB.
  const Result<Value> rows = value->Rows(777, 999);
  budget.SetLimit(limit);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_TRUE(AreSameRows(*rows, RowsOf(Kind::kDoubles, 777, 999)));
  EXPECT_EQ(store->Statistics().kept_bytes, 0);
}

// What rows come from changes while they leave memory: they are those of before. Values leave in the order in
// which they were read, and are kept in that in which they were made, so that both meet.
TEST(PanelFaultsTest, RowsThatLeaveWhileTheirOriginChangesAreThoseOfBefore) {
  constexpr int kValues = 40;
  const int rounds = testing_support::RunsAllPlans() ? 2'000 : 300;
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  // Whoever else asks for the mutex makes it likely that both wait for it.
  const std::jthread waiting([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)store->Statistics();
  });
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    ASSERT_TRUE(store->SetRoom(int64_t{1} << 30).ok());
    std::atomic<bool> has_changed = false;
    std::vector<std::shared_ptr<const RowPanels>> values;
    for (int i = 0; i < kValues; ++i)
      values.push_back(store->Lazy(
          {1, 5}, false,
          [&has_changed](int64_t begin, int64_t end) {
            const int64_t shift = has_changed ? 1 : 0;
            return Result<Value>(RowsOf(Kind::kDoubles, begin + shift, end + shift));
          },
          /*is_costly=*/false, "file"));
    for (int i = kValues; i-- > 0;) ASSERT_TRUE(values[static_cast<size_t>(i)]->Rows(0, 1).ok());
    std::atomic<int> ready = 0;
    const auto meet = [&ready] {
      for (++ready; ready < 2;) {
      }
    };
    std::thread leaving([&] {
      meet();
      EXPECT_TRUE(store->SetRoom(0).ok());
    });
    meet();
    EXPECT_TRUE(store->KeepAll("file").ok());
    has_changed = true;
    leaving.join();
    for (const auto& value : values) {
      const Result<Value> rows = value->Rows(0, 1);
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      EXPECT_TRUE(AreSameRows(*rows, RowsOf(Kind::kDoubles, 0, 1))) << "round " << round;
    }
  }
}

TEST(PanelFaultsTest, ManyThreadsReadAddAndSetTheRoom) {
  const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  std::vector<std::shared_ptr<const RowPanels>> shared;
  for (const Kind kind : kKinds) {
    shared.push_back(*Collected(*store, kind, kRows, kHeights));
    for (const bool is_costly : {false, true})
      shared.push_back(store->Lazy(
          {kRows, ColumnsOf(kind)}, IsFrameKind(kind),
          [kind](int64_t begin, int64_t end) { return Result<Value>(RowsOf(kind, begin, end)); }, is_costly));
  }
  const int64_t all = 2 * store->Statistics().kept_bytes;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      SeededRandom random(thread);
      for (int i = 0; i < 600; ++i) {
        const uint64_t choice = random.Below(20);
        if (choice == 0) {
          ASSERT_TRUE(store->SetRoom(static_cast<int64_t>(random.Below(static_cast<uint64_t>(all)))).ok());
        } else if (choice == 1) {
          const Kind kind = kKinds[random.Below(std::size(kKinds))];
          const auto own = Collected(*store, kind, kRows, kHeights);
          ASSERT_TRUE(own.ok()) << own.status().ToString();
          ExpectAllRows(**own, kind);
        } else {
          const size_t which = random.Below(shared.size());
          const Kind kind = kKinds[which / 3];
          const auto begin = static_cast<int64_t>(random.Below(kRows));
          const int64_t end =
              begin + static_cast<int64_t>(random.Below(static_cast<uint64_t>(kRows - begin) + 1));
          const Result<Value> rows = shared[which]->Rows(begin, end);
          ASSERT_TRUE(rows.ok()) << rows.status().ToString();
          ASSERT_TRUE(AreSameRows(*rows, RowsOf(kind, begin, end)));
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(store->SetRoom(all / 8).ok());
  EXPECT_LE(store->Statistics().kept_bytes, all / 8);
  ASSERT_TRUE(store->SetRoom(0).ok());
  EXPECT_EQ(store->Statistics().kept_bytes, 0);
  shared.clear();
  EXPECT_EQ(store->Statistics().spilled_bytes, 0);
  EXPECT_EQ(files.open_files, 0);
  EXPECT_EQ(BlockPool::Process().Statistics().in_use_bytes, before);
}

}  // namespace
}  // namespace heddle::ops::testing

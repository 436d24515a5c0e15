// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/panel_store.h"

#include "core/environment/random.h"
#include "core/memory/block_pool.h"
#include "tests/unit/ops/panels/panels_fixture.h"

namespace heddle::ops::testing {
namespace {

constexpr int64_t kRows = 41;
const std::vector<int64_t> kHeights = {7, 1, 12, 3};

int64_t BytesOfAll(Kind kind) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  const auto value = *Collected(*store, kind, kRows, kHeights);
  return store->Statistics().kept_bytes;
}

void ExpectEveryRange(const RowPanels& value, Kind kind, const PanelStore& store, int64_t room) {
  for (int64_t begin = 0; begin <= kRows; ++begin)
    for (int64_t end = begin; end <= kRows; ++end) {
      const Result<Value> rows = value.Rows(begin, end);
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      ASSERT_TRUE(AreSameRows(*rows, RowsOf(kind, begin, end)))
          << "kind " << static_cast<int>(kind) << ", rows " << begin << " to " << end << ", room " << room;
      ASSERT_LE(store.Statistics().kept_bytes, room);
    }
}

TEST(PanelStoreTest, RowsOfEveryRangeAreTheSameBytesWhateverIsInMemory) {
  for (const Kind kind : kKinds) {
    const int64_t all = BytesOfAll(kind);
    for (const int64_t room : {int64_t{0}, all / 4, all / 2, all}) {
      FilesInMemory files;
      const auto store = MakePanelStore(files, 1);
      ASSERT_TRUE(store->SetRoom(room).ok());
      const auto value = Collected(*store, kind, kRows, kHeights);
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      EXPECT_EQ((*value)->shape(), (Shape{kRows, ColumnsOf(kind)}));
      EXPECT_EQ((*value)->IsFrame(), IsFrameKind(kind));
      EXPECT_EQ(store->Statistics().spilled_bytes > 0, room < all);
      ExpectEveryRange(**value, kind, *store, room);
    }
  }
}

// A read ends before the chunk that comes after the request, and another one goes on where nobody asks.
TEST(PanelStoreTest, ACancelledReadEndsAtItsNextChunk) {
  std::atomic<bool> cancelled = false;
  int64_t chunks = 0, last = 0;
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  store->SetCancelled(&cancelled);
  const auto make = [&](int64_t begin, int64_t end) {
    if (++chunks == last) cancelled = true;
    return Result<Value>(RowsOf(Kind::kDoubles, begin, end));
  };
  for (last = 1; last <= 4; ++last) {
    const auto value = store->Lazy({kRows, ColumnsOf(Kind::kDoubles)}, false, make, /*is_costly=*/true);
    // Every fifth row has a panel, so that a read of all rows makes what is between them, one after the
    // other.
    cancelled = false;
    chunks = INT64_MIN;
    for (int64_t row = 0; row < kRows; row += 5) ASSERT_TRUE(value->Rows(row, row + 1).ok());
    chunks = 0;
    EXPECT_EQ(value->Rows(0, kRows).status().code(), StatusCode::kCancelled);
    EXPECT_EQ(chunks, last);
    store->SetCancelled(nullptr);
    EXPECT_TRUE(AreSameRows(*value->Rows(0, kRows), RowsOf(Kind::kDoubles, 0, kRows)));
    store->SetCancelled(&cancelled);
  }
}

// The same of rows that are in files, and of what has to go there.
TEST(PanelStoreTest, ACancelledRunMovesNoMoreToAndFromFiles) {
  std::atomic<bool> cancelled = false;
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  ASSERT_TRUE(store->SetRoom(0).ok());
  const auto value = *Collected(*store, Kind::kDoubles, kRows, kHeights);
  store->SetCancelled(&cancelled);
  ASSERT_TRUE(value->Rows(0, kRows).ok());
  cancelled = true;
  const int64_t read = store->Statistics().read_bytes, written = store->Statistics().written_bytes;
  EXPECT_EQ(value->Rows(3, 30).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(Collected(*store, Kind::kDoubles, kRows, kHeights).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(store->Statistics().read_bytes, read);
  EXPECT_EQ(store->Statistics().written_bytes, written);
  cancelled = false;
  EXPECT_TRUE(AreSameRows(*value->Rows(0, kRows), RowsOf(Kind::kDoubles, 0, kRows)));
}

TEST(PanelStoreTest, RowsOfEveryRangeAreTheSameBytesHoweverTheyAreMadeAgain) {
  for (const Kind kind : kKinds) {
    const int64_t all = BytesOfAll(kind);
    for (const bool is_costly : {false, true})
      for (const int64_t room : {int64_t{0}, all / 4, all}) {
        FilesInMemory files;
        const auto store = MakePanelStore(files, 1);
        ASSERT_TRUE(store->SetRoom(room).ok());
        const auto value = store->Lazy(
            {kRows, ColumnsOf(kind)}, IsFrameKind(kind),
            [kind](int64_t begin, int64_t end) { return Result<Value>(RowsOf(kind, begin, end)); },
            is_costly);
        ExpectEveryRange(*value, kind, *store, room);
        EXPECT_TRUE(is_costly || store->Statistics().written_bytes == 0);
      }
  }
}

TEST(PanelStoreTest, PanelsOfManyChunksAreReadAtAnyPlace) {
  constexpr int64_t kMany = 40'000;
  for (const Kind kind : kKinds) {
    FilesInMemory files;
    const auto store = MakePanelStore(files);
    ASSERT_TRUE(store->SetRoom(0).ok());
    const auto value = *Collected(*store, kind, kMany, {1000, 29'000, 7});
    SeededRandom random(static_cast<uint64_t>(kind));
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<int64_t>(random.Below(kMany));
      const int64_t most = i % 2 == 0 ? 50 : kMany;
      const int64_t end = begin + static_cast<int64_t>(
                                      random.Below(static_cast<uint64_t>(std::min(most, kMany - begin)) + 1));
      const Result<Value> rows = value->Rows(begin, end);
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      ASSERT_TRUE(AreSameRows(*rows, RowsOf(kind, begin, end))) << begin << " to " << end;
    }
  }
}

// Rows that wait to become a panel are no part of the room: where that is small, few wait.
TEST(PanelStoreTest, FewRowsWaitWhereThereIsLittleRoom) {
  constexpr int64_t kRoom = int64_t{1} << 20, kMany = 3000;
  FilesInMemory files;
  const auto store = MakePanelStore(files, /*least_panel_bytes=*/int64_t{64} << 20);
  ASSERT_TRUE(store->SetRoom(kRoom).ok());
  const auto collector = store->Collect({kMany, 5}, /*is_frame=*/false);
  int64_t added = 0;
  for (int64_t row = 0; row < kMany; row += 100) {
    ASSERT_TRUE(collector->Add(RowsOf(Kind::kDoubles, row, row + 100)).ok());
    added += 100 * 5 * int64_t{sizeof(double)};
    const PanelStatistics now = store->Statistics();
    EXPECT_LE(added - now.kept_bytes - now.spilled_bytes, kRoom / 8);
  }
  const auto value = collector->Finish();
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_TRUE(AreSameRows(*(*value)->Rows(0, kMany), RowsOf(Kind::kDoubles, 0, kMany)));
}

TEST(PanelStoreTest, AValueWithoutRowsIsStoredAsItsRowsWouldBe) {
  FilesInMemory files;
  const auto store = MakePanelStore(files);
  for (const Kind kind : kKinds) {
    const auto collector = store->Collect({kUnknown, ColumnsOf(kind)}, IsFrameKind(kind));
    ASSERT_TRUE(collector->Add(RowsOf(kind, 0, 0)).ok());
    const auto value = collector->Finish();
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_EQ((*value)->shape(), (Shape{0, ColumnsOf(kind)}));
    EXPECT_TRUE(AreSameRows(*(*value)->Rows(0, 0), RowsOf(kind, 0, 0)));
  }
}

TEST(PanelStoreTest, RowsThatAreNoneOfTheValuesAreRefused) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  const auto collector = store->Collect({10, 5}, false);
  EXPECT_EQ(collector->Add(RowsOf(Kind::kFrame, 0, 3)).code(), StatusCode::kInternal);
  EXPECT_EQ(collector->Add(Value(*Matrix::Dense(2, 4))).code(), StatusCode::kInternal);
  EXPECT_TRUE(collector->Add(RowsOf(Kind::kDoubles, 0, 8)).ok());
  EXPECT_EQ(collector->Add(RowsOf(Kind::kFloats, 8, 10)).code(), StatusCode::kInternal);
  EXPECT_EQ(collector->Add(RowsOf(Kind::kDoubles, 8, 11)).code(), StatusCode::kInternal);
  EXPECT_EQ(collector->Finish().status().code(), StatusCode::kInternal);  // Two rows are missing.
  const auto value = *Collected(*store, Kind::kDoubles, 10, {3});
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{-1, 2}, {3, 2}, {9, 11}})
    EXPECT_EQ(value->Rows(begin, end).status().code(), StatusCode::kInternal);
}

TEST(PanelStoreTest, RowsAreStoredAsTheFirstOnesAre) {
  for (const bool is_sparse : {false, true}) {
    FilesInMemory files;
    const auto store = MakePanelStore(files, 1);
    const auto collector = store->Collect({20, 5}, false);
    const Kind kind = is_sparse ? Kind::kSparseDoubles : Kind::kDoubles;
    ASSERT_TRUE(collector->Add(RowsOf(kind, 0, 9)).ok());
    ASSERT_TRUE(collector->Add(RowsOf(is_sparse ? Kind::kDoubles : Kind::kSparseDoubles, 9, 20)).ok());
    const auto value = *collector->Finish();
    EXPECT_TRUE(AreSameRows(*value->Rows(12, 15), RowsOf(kind, 12, 15)));
    EXPECT_TRUE(AreSameRows(*value->Rows(3, 17), RowsOf(kind, 3, 17)));
  }
}

TEST(PanelStoreTest, EntriesOfWhatIsCollectedAreCounted) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 4000);
  ASSERT_TRUE(store->SetRoom(0).ok());
  const std::vector<int64_t> entries =
      EntriesOf(**Collected(*store, Kind::kSparseDoubles, 1000, {1, 70, 200}));
  ASSERT_EQ(entries.size(), 17U) << "granules of 64 rows";
  for (int64_t i = 0; i <= 16; ++i)
    EXPECT_EQ(entries[static_cast<size_t>(i)],
              RowsOf(Kind::kSparseDoubles, 0, std::min<int64_t>(1000, 64 * i)).matrix().stored());
  EXPECT_TRUE(EntriesOf(**Collected(*store, Kind::kDoubles, 1000, {70})).empty());
  EXPECT_TRUE(EntriesOf(**Collected(*store, Kind::kFrame, 1000, {70})).empty());
}

TEST(PanelStoreTest, FewRowsAreJoinedToPanels) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 4000);
  ASSERT_TRUE(store->SetRoom(0).ok());
  const auto value = *Collected(*store, Kind::kDoubles, 1000, {1});
  EXPECT_TRUE(AreSameRows(*value->Rows(37, 911), RowsOf(Kind::kDoubles, 37, 911)));
  EXPECT_EQ(store->Statistics().written_bytes, 1000 * 5 * 8);
  files.writes_left = 0;  // Ten panels of a hundred rows each.
  const auto few = MakePanelStore(files, 4000);
  ASSERT_TRUE(few->SetRoom(0).ok());
  const auto collector = few->Collect({1000, 5}, false);
  for (int64_t row = 0; row < 99; ++row)
    ASSERT_TRUE(collector->Add(RowsOf(Kind::kDoubles, row, row + 1)).ok());
  EXPECT_FALSE(collector->Add(RowsOf(Kind::kDoubles, 99, 100)).ok());
}

// Panels of 5 x 8 x 16 = 640 bytes, which take blocks of 1024.
constexpr int64_t kPanelRows = 16;
constexpr int64_t kPanelBytes = 640;
constexpr int64_t kBlockBytes = 1024;

std::shared_ptr<const RowPanels> TenPanels(PanelStore& store) {
  return *Collected(store, Kind::kDoubles, 10 * kPanelRows, {kPanelRows});
}

// Reads all panels from the first to the last, and says how many bytes of files that took.
int64_t BytesOfScan(const PanelStore& store, const RowPanels& value) {
  const int64_t before = store.Statistics().read_bytes;
  for (int64_t begin = 0; begin < 10 * kPanelRows; begin += kPanelRows)
    EXPECT_TRUE(AreSameRows(*value.Rows(begin, begin + kPanelRows),
                            RowsOf(Kind::kDoubles, begin, begin + kPanelRows)));
  return store.Statistics().read_bytes - before;
}

TEST(PanelStoreTest, TheFirstPanelsStay) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  ASSERT_TRUE(store->SetRoom(6 * kBlockBytes).ok());
  const auto value = TenPanels(*store);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(BytesOfScan(*store, *value), 4 * kPanelBytes);
  EXPECT_EQ(store->Statistics().written_bytes, 4 * kPanelBytes);
  ASSERT_TRUE(store->SetRoom(2 * kBlockBytes).ok());
  EXPECT_EQ(store->Statistics().kept_bytes, 2 * kBlockBytes);
  EXPECT_EQ(value->bytes(), 2 * kBlockBytes);
  const int64_t before = store->Statistics().read_bytes;
  EXPECT_TRUE(value->Rows(0, 2 * kPanelRows).ok());
  EXPECT_EQ(store->Statistics().read_bytes, before);
  EXPECT_TRUE(value->Rows(2 * kPanelRows, 3 * kPanelRows).ok());
  EXPECT_EQ(store->Statistics().read_bytes, before + kPanelBytes);
}

TEST(PanelStoreTest, WhatComesBackIsNotWrittenAgain) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  const auto value = TenPanels(*store);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(store->SetRoom(0).ok());
    EXPECT_EQ(store->Statistics().kept_bytes, 0);
    EXPECT_EQ(BytesOfScan(*store, *value), 10 * kPanelBytes);
    ASSERT_TRUE(store->SetRoom(10 * kBlockBytes).ok());
    EXPECT_EQ(BytesOfScan(*store, *value), 10 * kPanelBytes);
    EXPECT_EQ(BytesOfScan(*store, *value), 0);
    EXPECT_EQ(store->Statistics().written_bytes, 10 * kPanelBytes);
    EXPECT_EQ(store->Statistics().spilled_bytes, 10 * kPanelBytes);
  }
}

TEST(PanelStoreTest, TheValueThatWasReadTheLongestTimeAgoLeavesFirst) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  const auto older = TenPanels(*store);
  const auto newer = TenPanels(*store);
  BytesOfScan(*store, *older);
  ASSERT_TRUE(store->SetRoom(12 * kBlockBytes).ok());
  EXPECT_EQ(older->bytes(), 10 * kBlockBytes);
  EXPECT_EQ(newer->bytes(), 2 * kBlockBytes);
}

TEST(PanelStoreTest, NewPanelsTakeTheRoomOfWhatWasNotReadSinceTheirValueWasBegun) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  ASSERT_TRUE(store->SetRoom(10 * kBlockBytes).ok());
  const auto older = TenPanels(*store);
  const auto collector = store->Collect({2 * kPanelRows, 5}, false);
  ASSERT_TRUE(collector->Add(RowsOf(Kind::kDoubles, 0, kPanelRows)).ok());
  EXPECT_EQ(older->bytes(), 9 * kBlockBytes);
  ASSERT_TRUE(older->Rows(0, 1).ok());  // From now on the older value is in use.
  ASSERT_TRUE(collector->Add(RowsOf(Kind::kDoubles, kPanelRows, 2 * kPanelRows)).ok());
  EXPECT_EQ(older->bytes(), 9 * kBlockBytes);
  EXPECT_EQ(store->Statistics().spilled_bytes, 2 * kPanelBytes);
}

// Two values that a loop reads in turns and that do not fit together: after the first round nothing is
// written, and every round reads only what does not fit.
TEST(PanelStoreTest, ValuesThatAreReadInTurnsDoNotPushEachOtherOut) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  ASSERT_TRUE(store->SetRoom(12 * kBlockBytes).ok());
  const auto a = TenPanels(*store);
  const auto b = TenPanels(*store);
  BytesOfScan(*store, *a);
  BytesOfScan(*store, *b);
  const int64_t written = store->Statistics().written_bytes;
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(BytesOfScan(*store, *a) + BytesOfScan(*store, *b), 8 * kPanelBytes);
  EXPECT_EQ(store->Statistics().written_bytes, written);
}

TEST(PanelStoreTest, AValueThatNobodyReadsAnyMoreGivesItsRoom) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  const auto used = TenPanels(*store);
  ASSERT_TRUE(store->SetRoom(0).ok());
  ASSERT_TRUE(store->SetRoom(10 * kBlockBytes).ok());
  const auto unused = TenPanels(*store);
  ASSERT_TRUE(store->SetRoom(0).ok());
  ASSERT_TRUE(store->SetRoom(10 * kBlockBytes).ok());
  BytesOfScan(*store, *unused);
  EXPECT_EQ(unused->bytes(), 10 * kBlockBytes);
  BytesOfScan(*store, *used);
  BytesOfScan(*store, *used);
  EXPECT_EQ(BytesOfScan(*store, *used), 0);
  EXPECT_EQ(unused->bytes(), 0);
}

// How often rows are made: a maker that counts.
struct CountedMaker {
  std::atomic<int64_t> rows_made = 0;
  std::shared_ptr<const RowPanels> Begin(PanelStore& store, bool is_costly) {
    const auto make = [this](int64_t begin, int64_t end) {
      rows_made += end - begin;
      return Result<Value>(RowsOf(Kind::kDoubles, begin, end));
    };
    return store.Lazy({10 * kPanelRows, 5}, false, make, is_costly);
  }
};

TEST(PanelStoreTest, WhatIsMadeForLittleIsMadeAgainAndWhatCostsIsWritten) {
  for (const bool is_costly : {false, true}) {
    FilesInMemory files;
    const auto store = MakePanelStore(files, 1);
    ASSERT_TRUE(store->SetRoom(4 * kBlockBytes).ok());
    CountedMaker maker;
    const auto value = maker.Begin(*store, is_costly);
    for (int round = 0; round < 3; ++round)
      EXPECT_EQ(BytesOfScan(*store, *value), is_costly && round > 0 ? 6 * kPanelBytes : 0);
    EXPECT_EQ(maker.rows_made, is_costly ? 10 * kPanelRows : (10 + 6 + 6) * kPanelRows);
    EXPECT_EQ(store->Statistics().written_bytes, is_costly ? 6 * kPanelBytes : 0);
    EXPECT_EQ(store->Statistics().remade_bytes, is_costly ? 0 : 12 * kPanelBytes);
    EXPECT_EQ(store->Statistics().kept_bytes, 4 * kBlockBytes);
    ASSERT_TRUE(store->SetRoom(0).ok());
    EXPECT_EQ(store->Statistics().spilled_bytes, is_costly ? 10 * kPanelBytes : 0);
    EXPECT_EQ(BytesOfScan(*store, *value), is_costly ? 10 * kPanelBytes : 0);
  }
}

TEST(PanelStoreTest, WhatIsMadeForLittlePushesOutNothingThatWouldBeWritten) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  ASSERT_TRUE(store->SetRoom(10 * kBlockBytes).ok());
  const auto collected = TenPanels(*store);
  CountedMaker maker;
  const auto value = maker.Begin(*store, false);
  BytesOfScan(*store, *value);
  EXPECT_EQ(store->Statistics().written_bytes, 0);
  EXPECT_EQ(collected->bytes(), 10 * kBlockBytes);
}

TEST(PanelStoreTest, WhoReadsOnHearsTheDiskBeforehand) {
  FilesInMemory files;
  const auto store = MakePanelStore(files, 1);
  ASSERT_TRUE(store->SetRoom(0).ok());
  const auto value = TenPanels(*store);
  BytesOfScan(*store, *value);
  EXPECT_EQ(files.announced_bytes, 9 * kPanelBytes);
  ASSERT_TRUE(value->Rows(5, 8).ok());  // Does not go on: nothing is announced.
  EXPECT_EQ(files.announced_bytes, 9 * kPanelBytes);
}

TEST(PanelStoreTest, MemoryAndFilesAreGivenBack) {
  const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
  FilesInMemory files;
  for (const Kind kind : kKinds) {
    const auto store = MakePanelStore(files, 1);
    ASSERT_TRUE(store->SetRoom(BytesOfAll(kind) / 2).ok());
    {
      const auto value = *Collected(*store, kind, kRows, kHeights);
      const auto unfinished = store->Collect({kRows, ColumnsOf(kind)}, IsFrameKind(kind));
      ASSERT_TRUE(unfinished->Add(RowsOf(kind, 0, 11)).ok());
      ASSERT_TRUE(unfinished->Add(RowsOf(kind, 11, 30)).ok());
      EXPECT_GT(files.open_files, 0);
      EXPECT_GT(BlockPool::Process().Statistics().in_use_bytes, before);
    }
    EXPECT_EQ(files.open_files, 0);
    const PanelStatistics statistics = store->Statistics();
    EXPECT_EQ(statistics.kept_bytes, 0);
    EXPECT_EQ(statistics.spilled_bytes, 0);
    EXPECT_EQ(BlockPool::Process().Statistics().in_use_bytes, before);
  }
}

}  // namespace
}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/record_ring.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace heddle::cluster {
namespace {

constexpr size_t kRingBytes = 64 << 10;

// A ring in memory of its own.
struct Ring {
  RingPositions positions;
  std::vector<std::byte> bytes = std::vector<std::byte>(kRingBytes);
  RingMemory memory{&positions, bytes.data(), kRingBytes};
  RingWriter writer{memory};
  RingReader reader{memory};
};

TEST(RecordRingTest, RecordsArriveWholeAroundTheEndOfTheRing) {
  Ring ring;
  std::string record;
  for (size_t i = 0; i < 5000; ++i) {
    const std::string sent(i % 700, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(ring.writer.Append({sent, "-", std::to_string(i)}));
    EXPECT_FALSE(*ring.reader.Next(&record)) << "it is not published";
    ring.writer.Publish();
    ASSERT_TRUE(ring.reader.HasRecords());
    ASSERT_TRUE(*ring.reader.Next(&record));
    ASSERT_EQ(record, sent + "-" + std::to_string(i));
    EXPECT_FALSE(ring.reader.Release());
    EXPECT_FALSE(ring.reader.HasRecords());
  }
}

TEST(RecordRingTest, AFullRingTakesNothingMoreUntilItsReaderGoesOn) {
  Ring ring;
  const std::string sent(1000, 'x');
  size_t records = 0;
  while (ring.writer.Append({sent})) ++records;
  EXPECT_EQ(records, kRingBytes / 1004);
  ring.writer.Publish();
  EXPECT_FALSE(ring.writer.HasRoomOrAsks());
  std::string record;
  for (size_t i = 0; i < records; ++i) ASSERT_TRUE(*ring.reader.Next(&record));
  EXPECT_FALSE(ring.writer.Append({sent}));
  EXPECT_TRUE(ring.reader.Release()) << "the writer is to be told";
  EXPECT_TRUE(ring.writer.HasRoom());
  EXPECT_TRUE(ring.writer.Append({sent}));
}

// A request is answered once, by any room; a writer that needs more asks again.
TEST(RecordRingTest, AWriterThatAsksAgainIsToldAgain) {
  Ring ring;
  const std::string sent(1000, 'x');
  while (ring.writer.Append({sent})) {
  }
  ring.writer.Publish();
  std::string record;
  size_t read = 0;
  for (; !ring.writer.HasRoomOrAsks(); ++read) {
    ASSERT_TRUE(*ring.reader.Next(&record));
    EXPECT_TRUE(ring.reader.Release()) << "after " << read << " records";
    EXPECT_FALSE(ring.reader.Release()) << "it has been told";
  }
  EXPECT_GT(read, 1u);
}

TEST(RecordRingTest, PartsAreReadInPlaceAndRoomIsGivenBackLater) {
  Ring ring;
  std::string part(3, ' ');
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(ring.writer.Append({std::string(5000, 'a'), "end"}));
    ring.writer.Publish();
    size_t bytes = 0;
    ASSERT_TRUE(ring.reader.HasUnread());
    ASSERT_TRUE(*ring.reader.Find(&bytes));
    ASSERT_EQ(bytes, 5003u);
    ring.reader.CopyPart(5000, part.data(), part.size());
    ASSERT_EQ(part, "end");
    ring.reader.Skip(bytes);
    EXPECT_FALSE(ring.reader.HasUnread());
    EXPECT_TRUE(ring.reader.HasRecords()) << "until the room is given back";
    EXPECT_GE(ring.reader.unreleased(), 5007u);
    if (i % 5 == 4) ring.reader.Release();
  }
}

TEST(RecordRingTest, OrderHoldsBetweenThreads) {
  Ring ring;
  constexpr int kRecords = 200'000;
  std::thread writer([&] {
    for (int i = 0; i < kRecords; ++i) {
      const std::string sent = std::to_string(i);
      while (!ring.writer.Append({sent})) std::this_thread::yield();
      ring.writer.Publish();
    }
  });
  std::string record;
  for (int i = 0; i < kRecords;) {
    if (!*ring.reader.Next(&record)) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(record, std::to_string(i++));
    ring.reader.Release();
  }
  writer.join();
}

TEST(RecordRingTest, NonsenseOfTheOtherSideIsNoticed) {
  std::string record;
  {
    Ring ring;
    ring.positions.written.store(kRingBytes + 1);
    const Status status = ring.reader.Next(&record).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), "a peer wrote nonsense into memory that it shares with this executor");
  }
  {
    Ring ring;
    ring.positions.written.store(3);
    EXPECT_EQ(ring.reader.Next(&record).status().code(), StatusCode::kDataLoss);
  }
  {
    Ring ring;
    ASSERT_TRUE(ring.writer.Append({"four"}));
    ring.bytes[0] = std::byte{5};  // longer than what is there
    ring.writer.Publish();
    EXPECT_EQ(ring.reader.Next(&record).status().code(), StatusCode::kDataLoss);
  }
  {
    Ring ring;
    ring.positions.read.store(99);  // more than was written
    EXPECT_FALSE(ring.writer.Append({"x"}));
  }
}

}  // namespace
}  // namespace heddle::cluster

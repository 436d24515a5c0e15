// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/message_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "cluster/link/inbox_exchange.h"
#include "cluster/link/shared_inbox.h"

namespace heddle::cluster {
namespace {

// A ring in memory of its own.
struct Ring {
  RingPositions positions;
  std::vector<std::byte> bytes = std::vector<std::byte>(kRingBytes);
  RingWriter writer{&positions, bytes.data()};
  RingReader reader{&positions, bytes.data()};
};

TEST(MessageRingTest, RecordsArriveWholeAroundTheEndOfTheRing) {
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

TEST(MessageRingTest, AFullRingTakesNothingMoreUntilItsReaderGoesOn) {
  Ring ring;
  const std::string sent(1000, 'x');
  size_t records = 0;
  while (ring.writer.Append({sent})) ++records;
  EXPECT_EQ(records, kRingBytes / 1004);
  ring.writer.Publish();
  ring.writer.AskForRoom();
  EXPECT_FALSE(ring.writer.HasRoom());
  std::string record;
  for (size_t i = 0; i < records; ++i) ASSERT_TRUE(*ring.reader.Next(&record));
  EXPECT_FALSE(ring.writer.Append({sent}));
  EXPECT_TRUE(ring.reader.Release()) << "the writer is to be told";
  EXPECT_TRUE(ring.writer.HasRoom());
  EXPECT_TRUE(ring.writer.Append({sent}));
}

TEST(MessageRingTest, OrderHoldsBetweenThreads) {
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

TEST(MessageRingTest, NonsenseOfTheOtherSideIsNoticed) {
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

Hello HelloOf(int rank, const std::string& token) {
  return {.job = "rings " + std::to_string(getpid()), .attempt = 1, .rank = rank, .ranks = 3, .token = token};
}

TEST(InboxExchangeTest, PeersGetAtEachOthersMemoryAndStrangersDoNot) {
  const auto first = *SharedInbox::Create(3);
  const auto second = *SharedInbox::Create(3);
  const auto stranger = *SharedInbox::Create(3);
  std::unique_ptr<SharedInbox> asker;
  const auto no_peer = [](size_t, std::unique_ptr<SharedInbox>) { ADD_FAILURE() << "nobody asks"; };
  const auto of_first = *InboxExchange::Listen(HelloOf(0, "secret"), *first,
                                               [&](size_t rank, std::unique_ptr<SharedInbox> inbox) {
                                                 EXPECT_EQ(rank, 1u);
                                                 asker = std::move(inbox);
                                               });
  const auto of_second = *InboxExchange::Listen(HelloOf(1, "secret"), *second, no_peer);
  const auto of_stranger = *InboxExchange::Listen(HelloOf(1, "guess"), *stranger, no_peer);
  EXPECT_EQ(of_stranger->Ask(0), nullptr);
  EXPECT_EQ(of_second->Ask(2), nullptr) << "nobody is there";
  EXPECT_TRUE(InboxExchange::Listen(HelloOf(1, "secret"), *second, no_peer)
                  .status()
                  .message()
                  .starts_with("peers of this machine cannot be answered: "))
      << "one for each rank";

  const std::unique_ptr<SharedInbox> found = of_second->Ask(0);
  ASSERT_NE(found, nullptr);
  ASSERT_NE(asker, nullptr);
  RingWriter writer(found->positions(1), found->bytes(1));
  ASSERT_TRUE(writer.Append({"hello"}));
  writer.Publish();
  RingReader reader(first->positions(1), first->bytes(1));
  std::string record;
  ASSERT_TRUE(*reader.Next(&record));
  EXPECT_EQ(record, "hello");
  second->doorbell_of_thread().store(1);
  EXPECT_TRUE(asker->RingDoorbells());
  EXPECT_EQ(second->doorbell_of_thread().load(), 0u);
}

TEST(InboxExchangeTest, MemoryOfAnotherKindIsRefused) {
  const auto of_three = *SharedInbox::Create(3);
  EXPECT_TRUE(SharedInbox::Open(Descriptor(dup(of_three->descriptor())), 3).ok());
  EXPECT_FALSE(SharedInbox::Open(Descriptor(dup(of_three->descriptor())), 4).ok());
  EXPECT_FALSE(SharedInbox::Open(Descriptor(open("/dev/zero", O_RDWR | O_CLOEXEC)), 3).ok());
  EXPECT_EQ(SharedInbox::Open(Descriptor(), 3).status().message(), "a peer offers memory of the wrong kind");
}

}  // namespace
}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/host_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/link/host_peers.h"

namespace heddle::cluster {
namespace {

Hello HelloOf(int rank) {
  return {
      .job = fmt::format("messages {}", getpid()), .attempt = 1, .rank = rank, .ranks = 2, .token = "secret"};
}

// Rank 0 as it is, but for its thread: the test looks in its place. Rank 1 is the memory alone.
struct Ends {
  Ends() : first(*HostPeers::Listen(HelloOf(0))), second(*HostPeers::Listen(HelloOf(1))), messages(*first) {
    second->FindPeers();
    while (!first->Reaches(1)) std::this_thread::yield();
  }
  // As many records of this size as `count` says.
  void Send(size_t count, size_t record_bytes) {
    const actor::Message message;
    const std::vector<AnnouncedMessage> all(
        count, {&message, std::string(record_bytes - sizeof(actor::Message), 'x')});
    messages.Send(1, all);
  }

  std::unique_ptr<HostPeers> first, second;
  HostMessages messages;
  RingReader reader{second->own().messages(0)};
};

// What a thread does that waits: HasMessages is its last look before it sleeps. The reader makes room for
// less than a record of any size first, and the thread, which has been woken for that, sleeps once more.
TEST(HostMessagesTest, WhoWokeForTooLittleRoomIsWokenAgain) {
  Ends ends;
  constexpr size_t kRecords = 40;
  ends.Send(kRecords, 4000);
  EXPECT_FALSE(ends.messages.HasMessages()) << "the ring is full";
  std::string record;
  ASSERT_TRUE(*ends.reader.Next(&record));
  EXPECT_TRUE(ends.reader.Release()) << "the writer is to be told";
  EXPECT_FALSE(ends.messages.HasMessages()) << "there is room for one record";
  size_t arrived = 1;
  for (; *ends.reader.Next(&record); ++arrived) {
  }
  EXPECT_TRUE(ends.reader.Release()) << "the writer is to be told again";
  while (arrived < kRecords) {
    ASSERT_TRUE(ends.messages.HasMessages());
    ends.messages.Deliver();
    for (; *ends.reader.Next(&record); ++arrived) EXPECT_EQ(record.size(), 4000u);
    ends.reader.Release();
  }
  EXPECT_EQ(arrived, kRecords);
  EXPECT_FALSE(ends.messages.HasMessages());
}

// A thread that sends does not look again: it is over with Send, and the one that sleeps has looked before.
TEST(HostMessagesTest, WhoLeavesRecordsBehindHasAskedForRoom) {
  Ends ends;
  EXPECT_FALSE(ends.messages.HasMessages()) << "nothing is left: it sleeps";
  ends.Send(40, 4000);
  std::string record;
  ASSERT_TRUE(*ends.reader.Next(&record));
  EXPECT_TRUE(ends.reader.Release());
}

}  // namespace
}  // namespace heddle::cluster

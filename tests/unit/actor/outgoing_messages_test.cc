// SPDX-License-Identifier: Apache-2.0
#include "actor/outgoing_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/simulation/plan_writer.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {
namespace {

Message Of(MessageType type, uint32_t rank) {
  Message message;
  message.type = type;
  message.destination = TaskId::Make(rank, 0, 0);
  return message;
}

// What is sent now: "1: READY EOS; 2: ACK".
std::string Flushed(OutgoingMessages& outgoing) {
  std::string text;
  outgoing.Flush([&](uint32_t rank, std::span<const Message> messages) {
    if (!text.empty()) text += "; ";
    text += std::to_string(rank) + ":";
    for (const Message& message : messages)
      text += message.type == MessageType::kReady ? " READY"
              : message.type == MessageType::kAck ? " ACK"
                                                  : " EOS";
  });
  return text;
}

// Rank 0 makes two values that rank 1 reads.
std::unique_ptr<PlanInstance> TwoEdges(int64_t count) {
  PlanWriter writer(3);
  for (int i = 0; i < 2; ++i) {
    const size_t source = writer.Add(TaskKind::kSource, 0, kCompute, {});
    writer.task(source).count = count;
    writer.task(source).node = AddNode(writer.graph(), "variable", {}, "x");
    const size_t copy = writer.Add(TaskKind::kCopy, 1, kNetwork, {writer.Output(source)});
    writer.task(copy).node = writer.task(source).node;
    writer.Output(copy);
  }
  return *PlanInstance::Create(std::make_shared<const Plan>(writer.Finish()), 0);
}

TEST(OutgoingMessagesTest, MessagesForOneRankTravelTogetherInTheirOrder) {
  OutgoingMessages outgoing;
  outgoing.Begin(nullptr);
  EXPECT_FALSE(outgoing.IsDue());
  outgoing.Add(Of(MessageType::kAck, 2));
  outgoing.Add(Of(MessageType::kReady, 1));
  outgoing.Add(Of(MessageType::kEos, 1));
  EXPECT_TRUE(outgoing.IsDue());
  EXPECT_EQ(Flushed(outgoing), "2: ACK; 1: READY EOS");
  EXPECT_FALSE(outgoing.IsDue());
  EXPECT_EQ(Flushed(outgoing), "");
}

TEST(OutgoingMessagesTest, WhatLetsNobodyGoOnWaitsForWhatDoes) {
  const auto instance = TwoEdges(/*count=*/1);
  EXPECT_EQ(instance->edges_to(), (std::vector<int32_t>{0, 2, 0}));
  OutgoingMessages outgoing;
  outgoing.Begin(instance.get());
  outgoing.Add(Of(MessageType::kAck, 1));
  EXPECT_FALSE(outgoing.IsDue()) << "rank 1 is owed two edges";
  outgoing.Add(Of(MessageType::kAck, 2));
  EXPECT_EQ(Flushed(outgoing), "2: ACK") << "rank 2 gets nothing else and may wait for it to end the run";
  outgoing.Add(Of(MessageType::kReady, 1));
  EXPECT_EQ(Flushed(outgoing), "1: ACK READY");
  outgoing.Add(Of(MessageType::kEos, 1));
  EXPECT_EQ(Flushed(outgoing), "1: EOS") << "other ends may follow from it";
  outgoing.Add(Of(MessageType::kAck, 1));
  EXPECT_EQ(Flushed(outgoing), "");
  outgoing.Add(Of(MessageType::kReady, 1));
  outgoing.Add(Of(MessageType::kEos, 1));
  EXPECT_EQ(Flushed(outgoing), "1: ACK READY EOS");
  outgoing.Add(Of(MessageType::kAck, 1));
  EXPECT_EQ(Flushed(outgoing), "1: ACK") << "the last edge has ended";
}

TEST(OutgoingMessagesTest, NothingWaitsWhereATaskActsTwice) {
  const auto instance = TwoEdges(/*count=*/2);
  OutgoingMessages outgoing;
  outgoing.Begin(instance.get());
  outgoing.Add(Of(MessageType::kAck, 1));
  EXPECT_EQ(Flushed(outgoing), "1: ACK") << "it may let the producer act again";
}

TEST(OutgoingMessagesTest, ARunThatWasAbortedLeavesNothingBehind) {
  const auto instance = TwoEdges(/*count=*/1);
  OutgoingMessages outgoing;
  outgoing.Begin(instance.get());
  outgoing.Add(Of(MessageType::kAck, 1));
  outgoing.Begin(instance.get());
  outgoing.Add(Of(MessageType::kReady, 1));
  EXPECT_EQ(Flushed(outgoing), "1: READY");
}

}  // namespace
}  // namespace heddle::actor

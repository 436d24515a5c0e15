// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "actor/mailbox.h"
#include "cluster/link/grpc_link.h"
#include "cluster/link/grpc_pull.h"
#include "cluster/link/host_peers.h"
#include "cluster/security/grpc_hello.h"
#include "core/programs/plan.h"
#include "tests/support/fault_proxy.h"
#include "tests/unit/cluster/linked_ranks.h"

namespace heddle::cluster {
namespace {

TEST(GrpcLinkTest, MessagesArriveInOrderAndErrorsWhole) {
  Links links(3);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  constexpr uint32_t kMessages = 5000;
  for (uint32_t i = 0; i < kMessages; ++i) {
    actor::Message message;
    message.source = TaskId::Make(2, 0, 1);
    message.destination = TaskId::Make(0, 0, 1);
    message.sequence = i;
    links[2].Send(0, {&message, 1});
  }
  const std::vector<actor::Message> messages = links.runtime(0).WaitForMessages(kMessages);
  for (uint32_t i = 0; i < kMessages; ++i) ASSERT_EQ(messages[i].sequence, i);
  links[1].SendError(2, 5, 3, FailedPrecondition("wrong").At({"a.dml", 1, 2}).WithNote("note"));
  EXPECT_EQ(links.runtime(2).WaitForError(), "rank 1 run 5 node 3: a.dml:1:2: wrong\nnote");
}

TEST(GrpcLinkTest, MessagesToPeersElsewhereGoThroughTheStreams) {
  Links links(2, {}, "127.0.0.1:0", /*repair_ms=*/400, {false, false});
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(links[0].inbox(), nullptr);
  std::vector<actor::Message> sent(7);
  for (uint32_t i = 0; i < sent.size(); ++i) {
    sent[i].source = TaskId::Make(0, 0, 1);
    sent[i].destination = TaskId::Make(1, 0, 1);
    sent[i].sequence = i;
    sent[i].register_id = 5;
  }
  links.runtime(0).Publish(0, 5, 0, Scalar(2.5));
  links[0].Send(1, sent);
  const std::vector<actor::Message> messages = links.runtime(1).WaitForMessages(sent.size());
  for (uint32_t i = 0; i < sent.size(); ++i) ASSERT_EQ(messages[i].sequence, i);
  EXPECT_EQ(links[0].statistics().writes, 1);
  EXPECT_EQ(links[0].statistics().messages_sent, 7);
  EXPECT_EQ(links[1].TakeArrived(0, 0, 5, 0)->scalar(), Scalar(2.5));
  EXPECT_EQ(links[1].TakeArrived(0, 0, 5, 0), std::nullopt);
}

TEST(GrpcLinkTest, TheThreadThatWaitsTakesMessagesOfPeersOnItsMachineItself) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(links[1].inbox(), nullptr);
  actor::MessageInbox& inbox = *links[1].inbox();
  ASSERT_TRUE(inbox.Begin());
  EXPECT_FALSE(inbox.Begin());
  actor::Message message;
  message.source = TaskId::Make(0, 0, 1);
  message.destination = TaskId::Make(1, 0, 1);
  message.register_id = 5;
  links.runtime(0).Publish(0, 5, 0, Scalar(2.5));
  links[0].Send(1, {&message, 1});
  actor::Mailbox mailbox;
  // It may have been taken by the thread of the link already, which was looking when Begin was called.
  if (mailbox.Wait(0, 1'000'000, &inbox)) inbox.Deliver();
  EXPECT_EQ(links.runtime(1).WaitForMessages(1).size(), 1u);
  EXPECT_EQ(links[1].TakeArrived(0, 0, 5, 0)->scalar(), Scalar(2.5));
  EXPECT_GT(links[1].statistics().bytes_shared, 0);
  EXPECT_EQ(links[1].statistics().bytes_shared, links[1].statistics().bytes_received);
  inbox.End();
  EXPECT_TRUE(inbox.Begin());
  inbox.End();
  // Nobody looks any more: the link's own thread does, after a moment or at once.
  links[0].Send(1, {&message, 1});
  EXPECT_EQ(links.runtime(1).WaitForMessages(2).size(), 2u);
  inbox.HandBack();
  links[0].Send(1, {&message, 1});
  EXPECT_EQ(links.runtime(1).WaitForMessages(3).size(), 3u);
}

TEST(GrpcLinkTest, ValuesArePulledByteForByte) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  const Matrix large = Numbered(3000, 100);
  links.runtime(0).Publish(1, 4, 0, large);
  links.runtime(0).Publish(1, 5, 1, Scalar("text"));
  links.runtime(1).Publish(1, 6, 0, *ToSparse(Numbered(70, 30)));

  const Result<Value> pulled = links.Pull(1, 0, 1, 4, 0);
  ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(pulled->matrix(), large));
  EXPECT_EQ(links.Pull(1, 0, 1, 5, 1)->scalar().AsString(), "text");
  EXPECT_TRUE(Matrix::SameCells(links.Pull(0, 1, 1, 6, 0)->matrix(), Numbered(70, 30)));
  EXPECT_EQ(links.Pull(1, 0, 2, 4, 0).status().code(), StatusCode::kCancelled);
  EXPECT_GE(links[0].statistics().bytes_sent, 3000 * 100 * 8);
  EXPECT_GE(links[1].statistics().bytes_received, 3000 * 100 * 8);
}

TEST(GrpcLinkTest, ALongTextIsPulled) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string text = std::string(5'000'000, 'a') + "b";
  links.runtime(0).Publish(1, 4, 0, Scalar(text));
  const Result<Value> pulled = links.Pull(1, 0, 1, 4, 0);
  ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
  EXPECT_EQ(pulled->scalar().AsString(), text);
}

TEST(GrpcLinkTest, ManyPullsAtOnceAllArrive) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  constexpr int kPulls = 40;
  std::vector<std::promise<Result<Value>>> promises(kPulls);
  for (int i = 0; i < kPulls; ++i) {
    links.runtime(0).Publish(1, i, 0, Numbered(1000 + i, i % 2 == 0 ? 200 : 1));
    links[1].Pull(0, 1, i, 0, [&promises, i](Result<Value> value) {
      promises[static_cast<size_t>(i)].set_value(std::move(value));
    });
  }
  for (int i = 0; i < kPulls; ++i) {
    const Result<Value> value = promises[static_cast<size_t>(i)].get_future().get();
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_TRUE(Matrix::SameCells(value->matrix(), Numbered(1000 + i, i % 2 == 0 ? 200 : 1)));
  }
}

TEST(GrpcLinkTest, LongDecisionsArriveWholeAndInOrder) {
  Links links(3);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string large(1'000'000, 'x');
  links[0].Broadcast(large);
  links[0].Broadcast("");
  links[0].Broadcast("short");
  for (size_t rank : {1, 2}) {
    EXPECT_EQ(*links[rank].Receive(), large);
    EXPECT_EQ(*links[rank].Receive(), "");
    EXPECT_EQ(*links[rank].Receive(), "short");
  }
  links[1].Interrupt(Cancelled("enough"));
  EXPECT_EQ(links[1].Receive().status().code(), StatusCode::kCancelled);
}

TEST(GrpcLinkTest, AWrongTokenIsRefused) {
  Links links(2, {"right", "wrong"});
  const std::vector<Status> statuses = links.Connect();
  EXPECT_EQ(statuses[1].code(), StatusCode::kPermissionDenied) << statuses[1].ToString();
  EXPECT_TRUE(statuses[1].message().starts_with("worker 0 (pid 1000) refused the link: "))
      << statuses[1].ToString();
  EXPECT_FALSE(statuses[0].ok());
}

TEST(GrpcLinkTest, TokensAreComparedWhole) {
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abd", "abc"));
  EXPECT_FALSE(EqualInConstantTime("ab", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abcabc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("", "abc"));
}

TEST(GrpcLinkTest, AddressesThatOthersReachSpeakTlsOnly) {
  Links links(2, {}, "0.0.0.0:0");
  EXPECT_NE(links.peer(0).certificate, "");
  EXPECT_NE(links.peer(0).certificate, links.peer(1).certificate);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  links.runtime(0).Publish(1, 4, 0, Numbered(3000, 100));
  EXPECT_TRUE(Matrix::SameCells(links.Pull(1, 0, 1, 4, 0)->matrix(), Numbered(3000, 100)));

  Links local(2);
  EXPECT_EQ(local.peer(0).certificate, "");
}

TEST(GrpcLinkTest, AnExecutorWithAnotherCertificateIsNotSpokenTo) {
  Links links(2, {}, "0.0.0.0:0");
  links.peer(0).certificate = links.peer(1).certificate;
  std::future<Status> own = std::async(std::launch::async, [&] {
    return links[0].Connect({links.peer(0), links.peer(1)}, 300);
  });
  EXPECT_EQ(links[1].Connect({links.peer(0), links.peer(1)}, 300).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(own.get().message().ends_with(" did not link up within 0.3 s"));  // nobody called it
}

TEST(GrpcLinkTest, AnExecutorElsewhereWithoutCertificateIsNotSpokenTo) {
  Links links(2, {}, "0.0.0.0:0");
  links.peer(0).certificate.clear();
  const Status refused = links[1].Connect({links.peer(0), links.peer(1)}, 300);
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(refused.message(), fmt::format("the executor at {} is on another machine and has no certificate",
                                           links.peer(0).endpoint));
}

TEST(GrpcLinkTest, ABrokenConnectionIsMendedAndNothingIsLost) {
  Links links(2, {}, "127.0.0.1:0", /*repair_ms=*/20'000, {false, false});
  testing_support::FaultProxy to_first(links.peer(0).endpoint);
  testing_support::FaultProxy to_second(links.peer(1).endpoint);
  links.peer(0).endpoint = to_first.endpoint();
  links.peer(1).endpoint = to_second.endpoint();
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  constexpr uint32_t kMessages = 3000;
  constexpr uint32_t kBetweenCuts = 300;
  const Matrix large = Numbered(3000, 100);
  links.runtime(0).Publish(1, 4, 0, large);
  links.runtime(1).Publish(1, 4, 0, large);
  std::vector<std::promise<Result<Value>>> pulled(2 * kMessages / kBetweenCuts);
  for (uint32_t i = 0; i < kMessages; ++i) {
    for (const uint32_t rank : {0u, 1u}) {
      actor::Message message;
      message.source = TaskId::Make(rank, 0, 1);
      message.destination = TaskId::Make(1 - rank, 0, 1);
      message.sequence = i;
      links[rank].Send(1 - rank, {&message, 1});
      if (i % kBetweenCuts == 0) {
        std::promise<Result<Value>>& promise = pulled[2 * i / kBetweenCuts + rank];
        links[rank].Pull(1 - rank, 1, 4, 0,
                         [&promise](Result<Value> value) { promise.set_value(std::move(value)); });
      }
    }
    if (i % kBetweenCuts == kBetweenCuts / 2) {
      to_first.Break();
      to_second.Break();
    }
  }
  for (const size_t rank : {0, 1}) {
    const std::vector<actor::Message> messages = links.runtime(rank).WaitForMessages(kMessages);
    ASSERT_EQ(messages.size(), kMessages);
    for (uint32_t i = 0; i < kMessages; ++i) ASSERT_EQ(messages[i].sequence, i);
  }
  for (auto& promise : pulled) {
    const Result<Value> value = promise.get_future().get();
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_TRUE(Matrix::SameCells(value->matrix(), large));
  }
  EXPECT_GT(links[0].statistics().repairs, 0);
  // The last words get through as well.
  to_first.Break();
  std::future<Status> other = std::async(std::launch::async, [&] { return links[1].Finish(); });
  EXPECT_TRUE(links[0].Finish().ok());
  EXPECT_TRUE(other.get().ok());
}

TEST(GrpcLinkTest, AConnectionThatStaysBrokenIsALoss) {
  Links links(2);
  testing_support::FaultProxy to_first(links.peer(0).endpoint);
  links.peer(0).endpoint = to_first.endpoint();
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  to_first.Refuse();
  for (const size_t rank : {0, 1}) EXPECT_EQ(links.WaitForFailure(rank).code(), StatusCode::kUnavailable);
}

TEST(GrpcLinkTest, ALostPeerIsNamed) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  links.Drop(1);
  const Status failure = links.WaitForFailure(0);
  EXPECT_EQ(failure.code(), StatusCode::kUnavailable);
  EXPECT_EQ(failure.message(), "worker 1 (pid 1001) was lost");
  EXPECT_FALSE(links.Pull(0, 1, 1, 1, 0).ok());
}

TEST(GrpcLinkTest, APeerThatGivesUpSaysWhy) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  links[1].Fail(NotFound("no file"));
  links.Drop(1);
  const Status failure = links.WaitForFailure(0);
  EXPECT_EQ(failure.code(), StatusCode::kNotFound);
  EXPECT_EQ(failure.message(), "no file");
}

TEST(GrpcLinkTest, AllWaitForTheLastToFinish) {
  Links links(3);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<std::future<Status>> results;
  for (size_t rank = 0; rank < 3; ++rank)
    results.push_back(std::async(std::launch::async, [&links, rank] { return links[rank].Finish(); }));
  for (auto& result : results) EXPECT_TRUE(result.get().ok());
}

TEST(GrpcLinkTest, WorkerZeroAloneDecides) {
  Links links(3);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  links[1].Broadcast("my own plan");
  const Status failure = links.WaitForFailure(2);
  EXPECT_TRUE(failure.message().starts_with("worker 1 (pid 1001) at ")) << failure.ToString();
  ASSERT_EQ(failure.notes().size(), 1u);
  EXPECT_EQ(failure.notes()[0], "worker 0 alone decides");
}

TEST(GrpcLinkTest, ARecordThatIsNoMessageIsALoss) {
  FakeRuntime runtime;
  const std::unique_ptr<GrpcLink> link = *GrpcLink::Listen(OptionsOf(0, 2));
  std::promise<Status> failure;
  link->Serve(&runtime, [&](const Status& why) { failure.set_value(why); });
  const GrpcLinkOptions other = OptionsOf(1, 2);
  const auto peer = *HostPeers::Listen({other.job, other.attempt, 1, 2, other.token});
  peer->FindPeers();
  RingWriter writer(peer->inbox(0)->messages(1));
  actor::Message of_another;
  of_another.source = TaskId::Make(0, 0, 0);
  of_another.type = actor::MessageType::kAck;
  ASSERT_TRUE(writer.Append({{reinterpret_cast<const char*>(&of_another), sizeof(of_another)}}));
  ASSERT_TRUE(writer.Append({"x"}));
  writer.Publish();
  peer->inbox(0)->RingForMessages();
  const Status why = failure.get_future().get();
  EXPECT_EQ(why.message(), "worker 1 was lost");
  EXPECT_EQ(why.notes(), std::vector<std::string>{"a message is cut off"});
  EXPECT_TRUE(runtime.WaitForMessages(0).empty()) << "nobody speaks for another";
}

// The last frame of a value arrives while the link is given up: the pull ends once.
TEST(PullClientTest, AValueThatArrivesWhileTheLinkFailsEndsItsPullOnce) {
  const Value value(Numbered(100'000, 1));
  for (int round = 0; round < 300; ++round) {
    std::atomic<int64_t> received{0};
    PullClient client(received, {.opened = [] {}, .closed = [](const grpc::Status&) {}});
    std::atomic<int> ended{0};
    client.Pull(1, 1, 0, [&](const Result<Value>&) { ended.fetch_add(1); });
    std::atomic<bool> arrives{false};
    std::thread failing([&] {
      while (!arrives.load()) {
      }
      for (std::atomic<int> i = 0; i.load() < round * 20; i.fetch_add(1)) {
      }
      client.Fail(Unavailable("the link is given up"));
    });
    engine::OutgoingValue outgoing(1, value);
    while (const std::optional<engine::OutgoingFrame> frame = outgoing.Next()) {
      const auto header = frame->header.Encode();
      const void* const payload = frame->payload != nullptr ? frame->payload : frame->owned.data();
      const grpc::Slice slices[] = {grpc::Slice(header.data(), header.size()),
                                    grpc::Slice(payload, frame->header.size)};
      grpc::ByteBuffer buffer(slices, 2);
      if (frame->header.last) arrives.store(true);
      client.OnFrame(buffer);
    }
    failing.join();
    EXPECT_EQ(ended.load(), 1);
  }
}

}  // namespace
}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
// Links between executors over a bad network (tests/support/fault_proxy.h): nothing is lost, comes twice or
// in another order, and a link that carries nothing any more is noticed.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/fault_proxy.h"
#include "tests/unit/cluster/linked_ranks.h"

namespace heddle::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing_support::FaultProxy;
using Way = FaultProxy::Way;

// Two ranks with a proxy before each of them.
class LinkFaultsTest : public testing::Test {
 protected:
  void Join(int64_t repair_ms = 20'000, const std::string& listen = "127.0.0.1:0") {
    links_.emplace(2, std::vector<std::string>{}, listen, repair_ms, std::vector<bool>{false, false});
    for (const size_t rank : {0, 1}) {
      proxies_.push_back(std::make_unique<FaultProxy>(links_->peer(rank).endpoint, 7 + rank));
      links_->peer(rank).endpoint = proxies_.back()->endpoint();
      links_->runtime(rank).Publish(1, 4, 0, large_);
    }
    for (const Status& status : links_->Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void Set(const FaultProxy::Conditions& conditions) {
    for (const auto& proxy : proxies_) proxy->Set(conditions);
  }

  void Send(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, ++sent_)
      for (const uint32_t rank : {0u, 1u}) {
        actor::Message message;
        message.source = TaskId::Make(rank, 0, 1);
        message.destination = TaskId::Make(1 - rank, 0, 1);
        message.sequence = sent_;
        (*links_)[rank].Send(1 - rank, {&message, 1});
      }
  }
  // All that was sent has arrived, once and in order.
  void ExpectAll() {
    for (const size_t rank : {0, 1}) {
      const std::vector<actor::Message> messages = links_->runtime(rank).WaitForMessages(sent_);
      ASSERT_EQ(messages.size(), sent_);
      for (uint32_t i = 0; i < sent_; ++i) ASSERT_EQ(messages[i].sequence, i);
    }
  }
  void ExpectValues() {
    for (const uint32_t rank : {0u, 1u}) {
      const Result<Value> value = links_->Pull(rank, 1 - rank, 1, 4, 0);
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(value->matrix(), large_));
    }
  }
  void ExpectOrderlyEnd() {
    std::future<Status> other = std::async(std::launch::async, [this] { return (*links_)[1].Finish(); });
    EXPECT_TRUE((*links_)[0].Finish().ok());
    EXPECT_TRUE(other.get().ok());
  }

  const Matrix large_ = Numbered(3000, 100);
  std::vector<std::unique_ptr<FaultProxy>> proxies_;
  std::optional<Links> links_;
  uint32_t sent_ = 0;
};

TEST_F(LinkFaultsTest, DelayAndJitterChangeNothingButTime) {
  Join();
  Set({.delay = milliseconds(200), .jitter = milliseconds(50)});
  const auto begin = steady_clock::now();
  Send(500);
  ExpectValues();
  ExpectAll();
  // A question and its answer.
  EXPECT_GE(steady_clock::now() - begin, milliseconds(400));
  EXPECT_EQ((*links_)[0].statistics().repairs, 0);
  ExpectOrderlyEnd();
}

TEST_F(LinkFaultsTest, ASlowNetworkIsWaitedFor) {
  Join();
  Set({.bytes_per_second = 4 << 20});
  const auto begin = steady_clock::now();
  Send(100);
  ExpectValues();
  ExpectAll();
  EXPECT_GE(steady_clock::now() - begin, milliseconds(2 * 500));  // 2.4 MB each, one after the other
  EXPECT_EQ((*links_)[0].statistics().repairs, 0);
}

TEST_F(LinkFaultsTest, ConnectionsThatBreakAtRandomLoseNothing) {
  Join();
  Set({.delay = milliseconds(1), .jitter = milliseconds(3), .broken = 0.05});
  for (int round = 0; round < 50; ++round) {
    Send(20);
    if (round % 10 == 0) ExpectValues();
  }
  ExpectAll();
  EXPECT_GT(proxies_[0]->broken() + proxies_[1]->broken(), 3);
  Set({});
  ExpectOrderlyEnd();
}

// Between machines, TLS sees that a record is another one: its connection ends, and all of it comes again.
TEST_F(LinkFaultsTest, AFlippedBitNeverBecomesAValueOrAMessage) {
  Join(20'000, "0.0.0.0:0");
  Set({.flipped = 0.05});
  for (int round = 0; round < 50; ++round) {
    Send(20);
    if (round % 10 == 0) ExpectValues();
  }
  ExpectAll();
  EXPECT_GT(proxies_[0]->flipped() + proxies_[1]->flipped(), 3);
  EXPECT_GT((*links_)[0].statistics().repairs + (*links_)[1].statistics().repairs, 0);
  Set({});
  ExpectOrderlyEnd();
}

// For less than keepalive takes to notice: the connection stands, and what was sent comes.
TEST_F(LinkFaultsTest, AWayThatIsCutForASecondDelays) {
  for (const Way way : {Way::kToTarget, Way::kToCaller, Way::kBoth}) {
    proxies_.clear();
    sent_ = 0;
    Join();
    Send(10);
    ExpectAll();
    for (const auto& proxy : proxies_) proxy->Cut(way);
    Send(100);
    std::this_thread::sleep_for(milliseconds(1'000));  // The cut itself is what is tested.
    EXPECT_LT(links_->runtime(way == Way::kToCaller ? 1 : 0).WaitForMessages(0).size(), sent_);
    for (const auto& proxy : proxies_) proxy->Mend();
    ExpectAll();
    ExpectValues();
    EXPECT_EQ((*links_)[0].statistics().repairs, 0);
    ExpectOrderlyEnd();
    links_.reset();
  }
}

// Nobody is told that the connections are of no use: keepalive finds out after 10 s of silence and 5 s more,
// and the messages that nobody has acknowledged come over new ones.
TEST_F(LinkFaultsTest, AHalfOpenConnectionIsNoticedAndMadeAnew) {
  Join();
  Send(10);
  ExpectAll();
  for (const auto& proxy : proxies_) {
    proxy->Forget();
    proxy->Mend();
  }
  const auto begin = steady_clock::now();
  Send(100);
  ExpectAll();
  EXPECT_LE(steady_clock::now() - begin, milliseconds(20'000));
  EXPECT_GT((*links_)[0].statistics().repairs + (*links_)[1].statistics().repairs, 0);
  ExpectValues();
  ExpectOrderlyEnd();
}

TEST_F(LinkFaultsTest, AHalfOpenNetworkIsALossThatNamesThePeer) {
  Join(/*repair_ms=*/400);
  for (const auto& proxy : proxies_) proxy->Forget();
  const auto begin = steady_clock::now();
  const Status failure = links_->WaitForFailure(0);
  EXPECT_LE(steady_clock::now() - begin, milliseconds(20'000));
  EXPECT_EQ(failure.code(), StatusCode::kUnavailable);
  EXPECT_EQ(failure.message(), "worker 1 (pid 1001) was lost");
}

}  // namespace
}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/link_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>

#include "cluster/link/link_agreement.h"
#include "core/environment/log.h"
#include "tests/support/process.h"
#include "tests/unit/cluster/linked_ranks.h"

namespace heddle::cluster {
namespace {

using testing_support::ReadText;
using testing_support::TemporaryFolder;

bool IsPowerOfTwo(double rate) { return std::exp2(std::round(std::log2(rate))) == rate; }

// All ranks at once, as executors do.
std::vector<Result<ops::LinkRates>> Agree(Links* links, int ranks, const engine::ConstantsCache& cache) {
  std::vector<std::future<Result<ops::LinkRates>>> agreeing;
  for (int rank = 0; rank < ranks; ++rank)
    agreeing.push_back(std::async(std::launch::async, [links, rank, &cache] {
      return AgreeOnLinks((*links)[static_cast<size_t>(rank)], rank, "key", cache);
    }));
  std::vector<Result<ops::LinkRates>> rates;
  for (auto& each : agreeing) rates.push_back(each.get());
  return rates;
}

// A link to the probe of another rank in this thread; values are copied.
class DirectLink : public actor::Link {
 public:
  explicit DirectLink(std::chrono::nanoseconds delay) : delay_(delay) {}
  void Send(uint32_t, std::span<const actor::Message> messages) override {
    const auto end = std::chrono::steady_clock::now() + delay_;
    while (std::chrono::steady_clock::now() < end) {
    }
    for (const actor::Message& message : messages) other->OnMessage(message);
  }
  void SendError(uint32_t, uint32_t, NodeId, const Status&) override {}
  void Pull(uint32_t, uint32_t run, RegisterId id, uint8_t slot,
            std::function<void(Result<Value>)> done) override {
    const Matrix from = other->Published(run, id, slot)->matrix();
    Matrix copy = *Matrix::Dense(from.rows(), from.columns());
    for (int pass = 0; pass < 10; ++pass) std::copy_n(from.data(), from.rows(), copy.mutable_data());
    done(Value(copy));
  }
  LinkProbe* other = nullptr;

 private:
  const std::chrono::nanoseconds delay_;
};

TEST(LinkProbeTest, SlowMessagesGiveALongTimeAndAPowerOfTwo) {
  const auto measure = [](std::chrono::nanoseconds delay) {
    DirectLink there(delay), back(delay);
    FakeRuntime runtime;
    int over = 0;
    LinkProbe first(there, runtime, 0, 2, [&] { ++over; });
    LinkProbe second(back, runtime, 1, 2, [&] { ++over; });
    there.other = &second;
    back.other = &first;
    ops::LinkRates rates;
    // A machine that does other things meanwhile is asked again.
    for (int attempt = 0; attempt < 200 && !rates.measured; ++attempt) rates = first.Measure();
    EXPECT_GE(over, 2);
    return rates;
  };
  const ops::LinkRates fast = measure(std::chrono::nanoseconds(0));
  const ops::LinkRates slow = measure(std::chrono::milliseconds(1));
  ASSERT_TRUE(fast.measured && slow.measured);
  EXPECT_EQ(fast.message_ns, 16'384);
  EXPECT_EQ(slow.message_ns, 1 << 20);
  EXPECT_TRUE(IsPowerOfTwo(fast.bytes_per_ns)) << fast.bytes_per_ns;
}

TEST(LinkProbeTest, RatesLeaveNoTrace) {
  for (const bool shares_memory : {true, false}) {
    Links links(3, {}, "127.0.0.1:0", 400, std::vector<bool>(3, shares_memory));
    for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
    const ops::LinkRates rates = links[0].MeasureLinks();
    // On a machine that does other things meanwhile there is nothing to be learned.
    EXPECT_TRUE(rates == ops::LinkRates() || (rates.measured && IsPowerOfTwo(rates.bytes_per_ns) &&
                                              IsPowerOfTwo(rates.message_ns) && rates.message_ns >= 16'384));
    if (shares_memory) {
      EXPECT_LE(rates.message_ns, 200'000);
    }
    for (const size_t rank : {0, 1, 2}) {
      const LinkStatistics statistics = links[rank].statistics();
      EXPECT_EQ(statistics.bytes_received, 0);
      EXPECT_EQ(statistics.bytes_sent, 0);
      EXPECT_EQ(statistics.messages_sent, 0);
    }
    // What is no part of a measurement is handed on.
    links.runtime(1).Publish(1, 1, 0, Numbered(10, 1));
    EXPECT_TRUE(links.Pull(0, 1, 1, 1, 0).ok());
    EXPECT_EQ(links.Pull(0, 1, 1, -2, 7).status().code(), StatusCode::kCancelled);
    actor::Message message;
    message.source = TaskId::Make(0, 0, 0);
    message.destination = TaskId::Make(1, 0, 0);
    message.type = actor::MessageType::kAck;
    links[0].Send(1, {&message, 1});
    EXPECT_EQ(links.runtime(1).WaitForMessages(1).size(), 1u);
  }
}

TEST(LinkProbeTest, AllRanksPlanByTheRatesOfRankZeroWhichAreKept) {
  const TemporaryFolder folder;
  const engine::ConstantsCache cache(folder.path() + "/machine");
  ops::LinkRates first;
  {
    Links links(3);
    for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
    const std::vector<Result<ops::LinkRates>> rates = Agree(&links, 3, cache);
    for (const auto& each : rates) ASSERT_TRUE(each.ok()) << each.status().ToString();
    first = *rates[0];
    EXPECT_EQ(*rates[1], first);
    EXPECT_EQ(*rates[2], first);
    EXPECT_EQ(cache.FindLinks("key"), first.measured ? std::optional(first) : std::nullopt);
  }
  const ops::LinkRates kept = {.bytes_per_ns = 0.25, .message_ns = 1 << 20, .measured = true};
  cache.StoreLinks("key", kept);
  Links links(3);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  for (const auto& each : Agree(&links, 3, cache)) EXPECT_EQ(*each, kept) << "not measured again";
  EXPECT_EQ(links[0].statistics().bytes_received, 0);
}

TEST(LinkProbeTest, AnythingElseThanRatesIsRefused) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  links[0].Broadcast("a plan");
  EXPECT_EQ(AgreeOnLinks(links[1], 1, "key", engine::ConstantsCache("")).status().message(),
            "worker 0 tells no rates of links: a plan");
  links[1].Interrupt(Cancelled("the job is over"));
  EXPECT_EQ(AgreeOnLinks(links[1], 1, "key", engine::ConstantsCache("")).status().message(),
            "the job is over");
}

// A link whose other ranks say nothing.
class SilentLink : public actor::Link {
 public:
  void Send(uint32_t, std::span<const actor::Message>) override {}
  void SendError(uint32_t, uint32_t, NodeId, const Status&) override {}
  void Pull(uint32_t, uint32_t, RegisterId, uint8_t, std::function<void(Result<Value>)>) override {}
};

// A rank that answers messages, and hands out no value.
class LinkWithoutValues : public DirectLink {
 public:
  LinkWithoutValues() : DirectLink(std::chrono::nanoseconds(0)) {}
  void Pull(uint32_t, uint32_t, RegisterId, uint8_t, std::function<void(Result<Value>)>) override {}
};

// The machine may stand still meanwhile: the shortest of some attempts counts.
TEST(LinkProbeTest, WhoDoesNotAnswerIsTakenForAnyLinkAndNobodyWaitsForLong) {
  SilentLink silent;
  FakeRuntime runtime;
  LinkWithoutValues there;
  DirectLink back(std::chrono::nanoseconds(0));
  LinkProbe without_answers(silent, runtime, 0, 100, [] {});
  LinkProbe without_values(there, runtime, 0, 2, [] {});
  LinkProbe peer(back, runtime, 1, 2, [] {});
  there.other = &peer;
  back.other = &without_values;
  for (LinkProbe* probe : {&without_answers, &without_values}) {
    const TemporaryFolder folder;
    const std::string log = folder.path() + "/log";
    ASSERT_TRUE(ConfigureLog({.level = LogLevel::kInfo, .standard_error = false, .file = log}).ok());
    auto least = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 10 && least > std::chrono::milliseconds(700); ++attempt) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(probe->Measure(), ops::LinkRates());
      least = std::min(least, std::chrono::steady_clock::now() - begin);
    }
    ASSERT_TRUE(ConfigureLog({}).ok());
    EXPECT_LT(least, std::chrono::milliseconds(700));
    EXPECT_NE(ReadText(log).find("links are not measured: a worker does not answer"), std::string::npos);
  }
}

TEST(LinkProbeTest, TheKeyNamesTheMachinesAndNotTheirPorts) {
  const auto key = [](const std::vector<std::string>& endpoints, bool shares_memory) {
    std::vector<LinkPeer> peers;
    for (const std::string& endpoint : endpoints) peers.push_back({endpoint, "", ""});
    return LinksKey(peers, shares_memory);
  };
  const std::string two = key({"unix-abstract:heddle-1", "unix-abstract:heddle-2"}, true);
  EXPECT_EQ(key({"unix-abstract:heddle-3", "unix-abstract:heddle-4"}, true), two);
  EXPECT_NE(key({"unix-abstract:heddle-3", "unix-abstract:heddle-4"}, false), two);
  EXPECT_NE(key({"unix-abstract:a", "unix-abstract:b", "unix-abstract:c"}, true), two);
  const std::string hosts = key({"10.0.0.1:4000", "10.0.0.2:4001"}, true);
  EXPECT_EQ(key({"10.0.0.2:5000", "10.0.0.1:5001"}, true), hosts);
  EXPECT_NE(key({"10.0.0.1:4000", "10.0.0.3:4001"}, true), hosts);
  EXPECT_NE(key({"10.0.0.1:4000", "10.0.0.1:4001"}, true), hosts);
}

}  // namespace
}  // namespace heddle::cluster

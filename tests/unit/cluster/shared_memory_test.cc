// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <future>
#include <thread>

#include "actor/doorbell.h"
#include "cluster/link/host_peers.h"
#include "cluster/link/host_values.h"
#include "core/memory/memory_budget.h"
#include "tests/unit/cluster/linked_ranks.h"
#include "tests/unit/cluster/trapped_call.h"

namespace heddle::cluster {
namespace {

std::array<Value, 6> ValuesOfAllKinds() {
  Matrix part = *ToSparse(Numbered(5000, 30));
  const std::vector<double> numbers(70'000, 0.5);
  const std::vector<std::string_view> texts(70'000, "some text");
  return {Value(Numbered(300'000, 3)),
          Value(part.Rows(1000, 4000)),
          Value(*Frame::Of({"a", "b"}, {*Column::OfDoubles(numbers), *Column::OfTexts(texts)})),
          Value(Scalar(std::string(3'000'000, 't'))),
          Value(*Matrix::Dense(0, 7)),
          Value(*Matrix::Sparse(0, 7, 0))};
}

void ExpectSame(const Value& a, const Value& b) {
  ASSERT_EQ(a.kind(), b.kind());
  switch (a.kind()) {
    case Value::Kind::kScalar: EXPECT_EQ(a.scalar().AsString(), b.scalar().AsString()); break;
    case Value::Kind::kMatrix: EXPECT_TRUE(Matrix::SameCells(a.matrix(), b.matrix())); break;
    case Value::Kind::kFrame: EXPECT_TRUE(Frame::SameCells(a.frame(), b.frame())); break;
    case Value::Kind::kPanels: ADD_FAILURE() << "panels do not travel"; break;
  }
}

// Pulls values of all kinds both ways; the bytes that came through memory.
int64_t PullAll(const std::vector<bool>& share_memory) {
  Links links(2, {}, "127.0.0.1:0", 400, share_memory);
  for (const Status& status : links.Connect()) EXPECT_TRUE(status.ok()) << status.ToString();
  const std::array<Value, 6> values = ValuesOfAllKinds();
  for (size_t i = 0; i < values.size(); ++i)
    for (const size_t rank : {0, 1}) links.runtime(rank).Publish(1, static_cast<RegisterId>(i), 0, values[i]);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (const size_t rank : {0, 1}) {
        const Result<Value> pulled =
            links.Pull(rank, static_cast<uint32_t>(1 - rank), 1, static_cast<RegisterId>(i), 0);
        EXPECT_TRUE(pulled.ok()) << pulled.status().ToString();
        if (pulled.ok()) ExpectSame(*pulled, values[i]);
      }
    }
  }
  EXPECT_EQ(links.Pull(0, 1, 7, 0, 0).status().code(), StatusCode::kCancelled);
  const LinkStatistics statistics = links[0].statistics();
  EXPECT_EQ(links[0].SharesMemoryWith(1), statistics.bytes_shared > 0);
  EXPECT_GT(statistics.bytes_received, 3 * values[0].bytes());
  EXPECT_GT(links[1].statistics().bytes_sent, 3 * values[0].bytes());
  if (statistics.bytes_shared > 0) {
    EXPECT_EQ(statistics.bytes_shared, statistics.bytes_received);
  }
  return statistics.bytes_shared;
}

TEST(SharedMemoryTest, ValuesOfAllKindsComeThroughIt) { EXPECT_GT(PullAll({true, true}), 0); }
TEST(SharedMemoryTest, WhereItIsForbiddenTheSameValuesComeByTheStream) {
  EXPECT_EQ(PullAll({false, false}), 0);
  EXPECT_EQ(PullAll({true, false}), 0);
  EXPECT_EQ(PullAll({false, true}), 0);
}

TEST(SharedMemoryTest, ALargeValueHoldsUpNoSmallOne) {
  Links links(2, {}, "127.0.0.1:0", 400, {true, true});
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  constexpr int kPulls = 40;
  std::vector<std::promise<Result<Value>>> promises(kPulls);
  for (int i = 0; i < kPulls; ++i) {
    links.runtime(0).Publish(1, i, 0, Numbered(i == 0 ? 2'000'000 : 1000 + i, i % 2 == 0 ? 2 : 1));
    links[1].Pull(0, 1, i, 0, [&promises, i](Result<Value> value) {
      promises[static_cast<size_t>(i)].set_value(std::move(value));
    });
  }
  for (int i = 0; i < kPulls; ++i) {
    const Result<Value> value = promises[static_cast<size_t>(i)].get_future().get();
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_TRUE(
        Matrix::SameCells(value->matrix(), Numbered(i == 0 ? 2'000'000 : 1000 + i, i % 2 == 0 ? 2 : 1)));
  }
}

// --- where the system has no memory to share ---

// In a process of its own: all values arrive, none through shared memory.
[[noreturn]] void PullAllElsewhere() {
  const int64_t shared = PullAll({true, true});
  _exit(shared == 0 && !testing::Test::HasFailure() ? 0 : 1);
}

class WithoutSharedMemoryTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using WithoutSharedMemoryDeathTest = WithoutSharedMemoryTest;

TEST_F(WithoutSharedMemoryDeathTest, ASandboxRefusesTheMemory) {
  EXPECT_EXIT(
      {
        RefuseCall(SYS_memfd_create, EPERM);
        PullAllElsewhere();
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(WithoutSharedMemoryDeathTest, TheMachineHasNoneLeft) {
  EXPECT_EXIT(
      {
        RefuseCall(SYS_fallocate, ENOSPC);
        PullAllElsewhere();
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(WithoutSharedMemoryDeathTest, FilesMayNotBeThatLarge) {
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 1 << 20;
        setrlimit(RLIMIT_FSIZE, &limit);
        if (SharedInbox::Create(2).status().message().find("ulimit -f allows no file of ") ==
            std::string::npos)
          _exit(2);
        PullAllElsewhere();
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(WithoutSharedMemoryDeathTest, TheBudgetHasNoRoomForARing) {
  EXPECT_EXIT(
      {
        // A sixteenth of it is less than a ring. The values do not fit either, which nobody checks here.
        MemoryBudget::Process().SetLimit(int64_t{60} << 20);
        Links links(2);
        for (const Status& status : links.Connect())
          if (!status.ok()) _exit(2);
        links.runtime(0).Publish(1, 1, 0, Numbered(1000, 3));
        const Result<Value> value = links.Pull(1, 0, 1, 1, 0);
        const LinkStatistics statistics = links[1].statistics();
        _exit(value.ok() && Matrix::SameCells(value->matrix(), Numbered(1000, 3)) &&
                      links[1].SharesMemoryWith(0) && statistics.bytes_shared == 0
                  ? 0
                  : 1);
      },
      testing::ExitedWithCode(0), "");
}

// --- one end, and a peer that may say anything ---

Hello HelloOf(int rank) {
  return {
      .job = fmt::format("values {}", getpid()), .attempt = 1, .rank = rank, .ranks = 2, .token = "secret"};
}

class RuntimeWithALongFailure : public FakeRuntime {
 public:
  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) override {
    if (long_text.empty()) return FakeRuntime::Published(run, register_id, slot);
    return Cancelled("not published").At({.file = long_text, .line = 1, .column = 1});
  }
  std::string long_text;
};

// Rank 0 as it is; rank 1 is the memory alone, at which the test writes what it likes.
struct Ends {
  Ends()
      : first(*HostPeers::Listen(HelloOf(0))),
        second(*HostPeers::Listen(HelloOf(1))),
        values(*first, {&bytes_sent, &bytes_received, &bytes_shared}) {
    second->FindPeers();
    while (!first->Reaches(1)) std::this_thread::yield();
    values.Serve(&runtime, {.elsewhere = [](size_t, uint32_t, RegisterId, uint8_t,
                                            HostValues::Done done) { done(NotFound("elsewhere")); },
                            .broken =
                                [this](size_t rank, const Status& why) {
                                  EXPECT_EQ(rank, 1u);
                                  broken.set_value(why);
                                }});
    pulls.emplace(second->inbox(0)->pulls(1));
    sent.emplace(second->inbox(0)->values(1));
  }

  std::future<Result<Value>> Pull() {
    auto promise = std::make_shared<std::promise<Result<Value>>>();
    HostValues::Done done = [promise](Result<Value> value) { promise->set_value(std::move(value)); };
    EXPECT_TRUE(values.Pull(1, 1, 1, 0, &done));
    return promise->get_future();
  }
  // What a peer that pulls, or sends a frame, says.
  void SayPull(const std::string& record) {
    EXPECT_TRUE(pulls->Append({record}));
    pulls->Publish();
    actor::Ring(second->inbox(0)->doorbell_of_server(), actor::DoorbellReach::kMachine);
  }
  void SayFrame(const std::string& record) {
    EXPECT_TRUE(sent->Append({record}));
    sent->Publish();
    actor::Ring(second->inbox(0)->doorbell_of_client(), actor::DoorbellReach::kMachine);
  }
  std::string WhyBroken() { return std::string(broken.get_future().get().message()); }

  std::atomic<int64_t> bytes_sent{0}, bytes_received{0}, bytes_shared{0};
  std::promise<Status> broken;
  RuntimeWithALongFailure runtime;
  std::unique_ptr<HostPeers> first, second;
  HostValues values;
  std::optional<RingWriter> pulls, sent;
};

std::string Encoded(const engine::FrameHeader& header) {
  const auto bytes = header.Encode();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A record of the ring of values: header and payload on lines of the cache.
std::string FrameOf(const engine::FrameHeader& header, const std::string& payload) {
  std::string record = Encoded(header);
  record.resize(60);
  record += payload;
  record.resize(60 + (payload.size() + 63) / 64 * 64);
  return record;
}

engine::FrameHeader PullHeader() {
  engine::FrameHeader header;
  header.kind = engine::FrameKind::kPull;
  header.request = 1;
  header.run = 1;
  header.register_id = 1;
  return header;
}

engine::FrameHeader BeginHeader(uint32_t size) {
  engine::FrameHeader header;
  header.kind = engine::FrameKind::kBegin;
  header.request = 1;
  header.size = size;
  return header;
}

std::string MessageOf(std::future<Result<Value>> pulled) {
  const Result<Value> value = pulled.get();
  return value.ok() ? "" : std::string(value.status().message());
}

TEST(HostValuesTest, ARingCountsFromTheFirstPullOn) {
  const int64_t before = MemoryBudget::Process().used();
  const auto ring_bytes = static_cast<int64_t>(SharedInbox::ValueBytes(2));
  {
    Ends ends;
    EXPECT_LT(MemoryBudget::Process().used(), before + ring_bytes);
    const std::future<Result<Value>> pulled = ends.Pull();
    EXPECT_GE(MemoryBudget::Process().used(), before + ring_bytes);
    ends.values.Fail(Cancelled("the test is over"));
  }
  EXPECT_LT(MemoryBudget::Process().used(), before + ring_bytes);
}

TEST(HostValuesTest, WhatIsPendingFailsWithTheLinkAndWhatFollowsToo) {
  Ends ends;
  std::future<Result<Value>> pulled = ends.Pull();
  ends.values.Fail(Unavailable("worker 1 was lost"));
  EXPECT_EQ(MessageOf(std::move(pulled)), "worker 1 was lost");
  EXPECT_EQ(MessageOf(ends.Pull()), "worker 1 was lost");
}

std::atomic<bool> kernel_clears{false};
std::atomic<bool> kernel_may_end{false};

// The first pull takes the memory of the ring, which the kernel clears. Others need not wait for that.
TEST_F(WithoutSharedMemoryDeathTest, NobodyWaitsWhileTheKernelClearsARing) {
  EXPECT_EXIT(
      {
        Ends ends;
        TrapCall(SYS_fallocate, [](const std::array<int64_t, 3>&) -> int64_t {
          kernel_clears = true;
          while (!kernel_may_end) usleep(100);
          return -ENOSPC;
        });
        auto first = std::async(std::launch::async, [&] { return MessageOf(ends.Pull()); });
        while (!kernel_clears) std::this_thread::yield();
        auto second = std::async(std::launch::async, [&] { return ends.Pull(); });
        if (second.wait_for(std::chrono::seconds(20)) != std::future_status::ready) _exit(1);
        kernel_may_end = true;
        if (first.get() != "elsewhere" || MessageOf(second.get()) != "elsewhere") _exit(2);
        HostValues::Done done = [](const Result<Value>&) {};
        _exit(ends.values.Pull(1, 1, 1, 0, &done) ? 4 : 0);  // There is no ring: not even tried again.
      },
      testing::ExitedWithCode(0), "");
}

TEST(HostValuesTest, MorePullsThanTheRingHasRoomForAllArrive) {
  Links links(2);
  for (const Status& status : links.Connect()) ASSERT_TRUE(status.ok()) << status.ToString();
  links.runtime(0).Publish(1, 1, 0, Numbered(1000, 1));
  constexpr int kPulls = 5000;
  std::atomic<int> right{0};
  std::promise<void> all;
  for (int i = 0; i < kPulls; ++i) {
    links[1].Pull(0, 1, 1, 0, [&](Result<Value> value) {
      EXPECT_TRUE(value.ok() && value->matrix().data()[999] == 999);
      if (right.fetch_add(1) + 1 == kPulls) all.set_value();
    });
  }
  all.get_future().wait();
}

TEST(HostValuesTest, AFailureWithATextThatIsTooLongIsAskedForElsewhere) {
  engine::FrameHeader answer;
  {
    Ends ends;
    ends.runtime.long_text = std::string(3'000'000, 'x');
    ends.SayPull(Encoded(PullHeader()));
    RingReader reader(ends.second->own().values(0));
    size_t bytes = 0;
    while (!*reader.Find(&bytes)) std::this_thread::yield();
    std::array<uint8_t, engine::kHeaderBytes> header;
    reader.CopyPart(0, header.data(), header.size());
    answer = *engine::FrameHeader::Decode(header.data());
    EXPECT_EQ(bytes, 60u);
    EXPECT_TRUE(answer.last);
    EXPECT_EQ(ends.bytes_sent.load(), 0);
  }
  Ends ends;
  std::future<Result<Value>> pulled = ends.Pull();
  ends.SayFrame(FrameOf(answer, ""));
  EXPECT_EQ(MessageOf(std::move(pulled)), "elsewhere");
}

TEST(HostValuesTest, NonsenseOfAPeerThatPullsIsNotRead) {
  engine::FrameHeader no_pull = PullHeader();
  no_pull.kind = engine::FrameKind::kData;
  std::string unknown_kind = Encoded(PullHeader());
  unknown_kind[28] = 99;
  const std::pair<std::string, std::string> all[] = {
      {"x", "a pull of the wrong length"},
      {Encoded(PullHeader()) + "x", "a pull of the wrong length"},
      {Encoded(no_pull), "a pull that cannot be"},
      {unknown_kind, "a frame of unknown kind 99"},
  };
  for (const auto& [record, why] : all) {
    Ends ends;
    ends.SayPull(record);
    EXPECT_EQ(ends.WhyBroken(), why);
    ends.SayPull(Encoded(PullHeader()));
    EXPECT_EQ(ends.bytes_sent.load(), 0);
  }
  Ends ends;
  ends.second->inbox(0)->pulls(1).positions->written.store(uint64_t{1} << 60);
  actor::Ring(ends.second->inbox(0)->doorbell_of_server(), actor::DoorbellReach::kMachine);
  EXPECT_EQ(ends.WhyBroken(), "a peer wrote nonsense into memory that it shares with this executor");
}

TEST(HostValuesTest, NonsenseOfAPeerThatAnswersIsNotRead) {
  engine::FrameHeader absurd = BeginHeader(4'000'000'000u);
  std::string unknown_kind = FrameOf(BeginHeader(0), "");
  unknown_kind[28] = 99;
  const std::pair<std::string, std::string> all[] = {
      {"x", "a frame shorter than its header"},
      {FrameOf(absurd, std::string(64, 'x')), "a frame of the wrong length"},
      {FrameOf(BeginHeader(65), std::string(64, 'x')), "a frame of the wrong length"},
      {unknown_kind, "a frame of unknown kind 99"},
  };
  for (const auto& [record, why] : all) {
    Ends ends;
    std::future<Result<Value>> pulled = ends.Pull();
    ends.SayFrame(record);
    EXPECT_EQ(ends.WhyBroken(), why);
    ends.values.Fail(Unavailable("lost"));
    EXPECT_EQ(MessageOf(std::move(pulled)), "lost");
  }
  Ends ends;
  const std::future<Result<Value>> pulled = ends.Pull();
  ends.second->inbox(0)->values(1).positions->written.store(uint64_t{1} << 60);
  actor::Ring(ends.second->inbox(0)->doorbell_of_client(), actor::DoorbellReach::kMachine);
  EXPECT_EQ(ends.WhyBroken(), "a peer wrote nonsense into memory that it shares with this executor");
}

// What the peer says of other values is read on, and answers pulls.
TEST(HostValuesTest, FramesOfAValueThatCannotBeEndItsPullAlone) {
  Ends ends;
  std::future<Result<Value>> first = ends.Pull();
  std::future<Result<Value>> second = ends.Pull();
  ends.SayFrame(FrameOf(BeginHeader(3), "abc"));
  EXPECT_EQ(MessageOf(std::move(first)), "a matrix frame is malformed");
  ends.SayFrame(FrameOf(BeginHeader(3), "abc"));  // Of a pull that is over,
  engine::FrameHeader unknown = BeginHeader(3);
  unknown.request = 77;  // and of one that never was.
  ends.SayFrame(FrameOf(unknown, "abc"));
  engine::OutgoingValue value(/*request=*/2, Value(Scalar(std::string("the second"))), /*piece_bytes=*/4);
  for (std::optional<engine::OutgoingFrame> frame; (frame = value.Next()).has_value();) {
    const char* const payload =
        frame->payload != nullptr ? static_cast<const char*>(frame->payload) : frame->owned.data();
    ends.SayFrame(FrameOf(frame->header, std::string(payload, frame->header.size)));
  }
  const Result<Value> pulled = second.get();
  ASSERT_TRUE(pulled.ok()) << pulled.status().ToString();
  EXPECT_EQ(pulled->scalar().AsString(), "the second");
  // Its frames came last: what was wrong before has been read.
  EXPECT_EQ(ends.broken.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

}  // namespace
}  // namespace heddle::cluster

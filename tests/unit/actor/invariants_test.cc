// SPDX-License-Identifier: Apache-2.0
// Each of the invariants I1-I10 and I12 (runtime reference 2.12) is broken here on purpose, and seen to be
// noticed. I9 is in launch_test.cc. Those that stop the process do so in debug builds only, but for I1 and
// I2.
#include <gtest/gtest.h>

#include "actor/memory_ledger.h"
#include "actor/message_times.h"
#include "actor/plan_instance.h"
#include "tests/simulation/plan_writer.h"

namespace heddle::actor {
namespace {

// A world in which nothing happens but what the test does.
class QuietHost : public ActorHost {
 public:
  void Send(const Message& message) override { sent.push_back(message); }
  Launch Perform(Actor&, std::span<const Value* const>, int64_t, ActResult* result) override {
    result->values[0] = Value(1.0);
    return Launch::kInline;
  }
  void Pull(Actor&, TaskId, RegisterId, uint8_t, std::shared_ptr<PulledBody>) override {}
  void Expose(RegisterId, uint8_t, const Value&) override {}
  void Withdraw(RegisterId, uint8_t) override {}
  void Failed(Actor&, Status status) override { failure = std::move(status); }
  void Finished(Actor&) override {}

  std::vector<Message> sent;
  Status failure;
};

// Keeps every act of it going.
class HoldingHost : public QuietHost {
 public:
  Launch Perform(Actor&, std::span<const Value* const>, int64_t, ActResult*) override {
    return Launch::kAsynchronous;
  }
};

// Starts the first actor and delivers what is sent until nothing is.
void RunToTheEnd(PlanInstance& instance, QuietHost& host) {
  instance.actors()[0].Start(host);
  for (size_t i = 0; i < host.sent.size(); ++i) {
    const Message message = host.sent[i];
    instance.Find(message.destination)->Handle(message, host);
    ASSERT_TRUE(instance.CheckInvariants(/*quiet=*/false).ok());
  }
}

bool Names(const Status& status, const std::string& invariant) {
  return status.code() == StatusCode::kInternal && status.message().find(invariant) != std::string::npos;
}

// A source of two pieces and its sink, both ready for run 5.
class InvariantsTest : public testing::Test {
 protected:
  InvariantsTest() {
    PlanWriter writer(1);
    const size_t source = writer.Add(TaskKind::kSource, 0, 0, {}, 1, 2);
    writer.Add(TaskKind::kSink, 0, 0, {writer.Output(source)});
    instance_ = *PlanInstance::Create(std::make_shared<const Plan>(writer.Finish()), 0);
    instance_->Begin(5);
  }
  Actor& source() { return instance_->actors()[0]; }
  Actor& sink() { return instance_->actors()[1]; }
  RegisterState& made() { return *source().produced()[0]; }
  Message To(Actor& actor, MessageType type, uint32_t sequence = 0) {
    return {.destination = actor.task().id, .run = 5, .sequence = sequence, .type = type};
  }

  std::unique_ptr<PlanInstance> instance_;
  QuietHost host_;
};
using InvariantsDeathTest = InvariantsTest;

TEST_F(InvariantsTest, TheQuietRunBreaksNone) {
  RunToTheEnd(*instance_, host_);
  EXPECT_TRUE(instance_->CheckInvariants(/*quiet=*/true).ok());
  EXPECT_TRUE(host_.failure.ok());
}

TEST_F(InvariantsTest, I1AnAckOfAFreeSlot) {
  source().Handle(To(source(), MessageType::kAck), host_);
  EXPECT_TRUE(Names(host_.failure, "I1"));
}
TEST_F(InvariantsTest, I1AnAckOfASlotThatDoesNotExist) {
  source().Start(host_);
  Message ack = To(source(), MessageType::kAck);
  ack.slot = 7;
  source().Handle(ack, host_);
  EXPECT_TRUE(Names(host_.failure, "I1"));
}
TEST_F(InvariantsDeathTest, I1AReleaseOfAFreeSlot) { EXPECT_DEATH(made().Release(0), "I1"); }

TEST_F(InvariantsDeathTest, I2MorePiecesThanSlots) {
  SlotQueue queue(1);
  queue.Push(0);
  EXPECT_DEATH(queue.Push(0), "I2");
}
TEST_F(InvariantsTest, I2AReadyThatNobodySent) {
  HoldingHost holding;
  sink().Handle(To(sink(), MessageType::kReady), holding);
  EXPECT_TRUE(sink().CheckInvariants(false).ok()) << "only a look at both ends tells";
  EXPECT_TRUE(Names(sink().CheckEdges(), "I2"));
}

TEST_F(InvariantsTest, I3ASlotReleasedBehindTheActorsBack) {
  source().Start(host_);
  EXPECT_TRUE(source().CheckInvariants(false).ok());
  made().Release(0);
  EXPECT_TRUE(Names(source().CheckInvariants(false), "I3"));
}

#ifndef NDEBUG
TEST_F(InvariantsDeathTest, I4AWriteToASlotThatIsRead) {
  source().Start(host_);
  EXPECT_DEATH(made().BeginWrite(), "I4");
}
#endif

TEST_F(InvariantsTest, I5AReadyOutOfSequence) {
  sink().Handle(To(sink(), MessageType::kReady, /*sequence=*/1), host_);
  EXPECT_TRUE(Names(host_.failure, "I5"));
}

#ifndef NDEBUG
TEST_F(InvariantsDeathTest, I6AMessageOfAStaleRun) {
  Message stale = To(sink(), MessageType::kReady);
  stale.run = 4;
  EXPECT_DEATH(sink().Handle(stale, host_), "I6");
}
#endif

TEST_F(InvariantsTest, I7AReadyAfterEos) {
  HoldingHost holding;
  sink().Handle(To(sink(), MessageType::kReady), holding);
  sink().Handle(To(sink(), MessageType::kEos), holding);
  EXPECT_TRUE(holding.failure.ok());
  sink().Handle(To(sink(), MessageType::kReady, 1), holding);
  EXPECT_TRUE(Names(holding.failure, "I7"));
}
TEST_F(InvariantsTest, I7EosTwice) {
  HoldingHost holding;
  sink().Handle(To(sink(), MessageType::kReady), holding);
  sink().Handle(To(sink(), MessageType::kEos), holding);
  sink().Handle(To(sink(), MessageType::kEos), holding);
  EXPECT_TRUE(Names(holding.failure, "I7"));
}
#ifndef NDEBUG
TEST_F(InvariantsDeathTest, I7AMessageForATaskThatIsDone) {
  sink().Handle(To(sink(), MessageType::kEos), host_);
  EXPECT_DEATH(sink().Handle(To(sink(), MessageType::kReady), host_), "I7");
}
#endif

Register OfBytes(RegisterId id, int64_t bytes, int32_t slots = 1) {
  Register made;
  made.id = id;
  made.bytes = bytes;
  made.slots = slots;
  made.info = ValueInfo::OfMatrix({bytes / 8, 1});
  return made;
}

TEST(MemoryLedgerTest, I8RegistersThatTakeMoreThanThePeak) {
  MemoryLedger ledger(100);
  ledger.BeginWrite(OfBytes(1, 64), 0);
  EXPECT_TRUE(ledger.status().ok());
  EXPECT_EQ(ledger.used_bytes(), 64);
  ledger.BeginWrite(OfBytes(2, 64), 0);
  EXPECT_TRUE(Names(ledger.status(), "I8"));
}
TEST(MemoryLedgerTest, I8AValueLargerThanItsRegister) {
  MemoryLedger ledger(64);
  const Register made = OfBytes(1, 64);
  ledger.BeginWrite(made, 0);
  ledger.Publish(made, 0, 1, Value(*Matrix::Dense(8, 1)));
  EXPECT_TRUE(ledger.status().ok());
  ledger.Publish(made, 0, 1, Value(*Matrix::Dense(9, 1)));
  EXPECT_TRUE(Names(ledger.status(), "I8"));
}

TEST(MessageTimesTest, I10TooManySlowMessages) {
  MessageTimes times;
  for (int i = 0; i < 100'000; ++i) times.Add(500);
  for (int i = 0; i < 100; ++i) times.Add(MessageTimes::kBoundNs + 1);
  EXPECT_TRUE(times.WithinBound());
  times.Add(MessageTimes::kBoundNs + 1);
  EXPECT_FALSE(times.WithinBound());
}

TEST(MemoryLedgerTest, ASlotIsInUseUntilItsLastReaderIsThrough) {
  MemoryLedger ledger(64);
  const Register first = OfBytes(1, 64);
  for (int i = 0; i < 3; ++i) {
    ledger.BeginWrite(first, 0);
    ledger.BeginWrite(first, 0);
    ledger.Publish(first, 0, 2, Value(1.0));
    ledger.EndRead(first, 0);
    EXPECT_FALSE(ledger.IsEmpty());
    ledger.EndRead(first, 0);
    EXPECT_TRUE(ledger.IsEmpty());
  }
  ledger.BeginWrite(OfBytes(2, 32, 2), 0);
  ledger.BeginWrite(OfBytes(2, 32, 2), 1);
  EXPECT_TRUE(ledger.status().ok());
  EXPECT_EQ(ledger.used_bytes(), 64);
  ledger.Reset();
  EXPECT_TRUE(ledger.IsEmpty());
}

TEST_F(InvariantsTest, I12ATaskThatIsNotThrough) {
  source().Start(host_);
  EXPECT_TRUE(Names(instance_->CheckInvariants(/*quiet=*/true), "I12"));
}

#ifndef NDEBUG
TEST(MemoryLedgerTest, I12MemoryThatIsStillInUse) {
  PlanWriter writer(1);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}));
  writer.Add(TaskKind::kSink, 0, 0, {made});
  writer.reg(made).bytes = 64;
  Plan plan = writer.Finish();
  plan.peak_bytes = {64};
  auto instance = *PlanInstance::Create(std::make_shared<const Plan>(plan), 0);
  instance->Begin(1);
  ASSERT_NE(instance->ledger(), nullptr);
  QuietHost host;
  RunToTheEnd(*instance, host);
  EXPECT_TRUE(instance->CheckInvariants(/*quiet=*/true).ok());
  instance->actors()[0].produced()[0]->BeginWrite();
  EXPECT_EQ(instance->ledger()->used_bytes(), 64);
  EXPECT_TRUE(Names(instance->CheckInvariants(/*quiet=*/true), "I12"));
  instance->Clear();
  EXPECT_TRUE(instance->ledger()->IsEmpty());
}
#endif

}  // namespace
}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
// When checkpoints are taken, and what becomes of one that cannot be written.
#include "engine/checkpoints/checkpoints.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "engine/variables/control_state.h"
#include "tests/unit/engine/memory_checkpoints.h"

namespace heddle::engine {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
using Moment = StateTaker::Moment;

constexpr Moment kRound = {.block = 7, .ends_round = true};

TEST(CheckpointMomentsTest, MeetAboutAQuarterOfASecondApart) {
  CheckpointMoments moments;
  int64_t now = 0;
  int meetings = 0;
  for (int round = 0; round < 100'000; ++round) {
    now += 1'000'000;
    if (!moments.Meet(kRound)) continue;
    ++meetings;
    moments.SetNext(7, moments.NextOf(7, now), now);
  }
  // 100 s of rounds of a millisecond, and some meetings until their time is known.
  EXPECT_GE(meetings, 390);
  EXPECT_LE(meetings, 420);
}

TEST(CheckpointMomentsTest, ALoopWhoseRoundsBecomeSlowMeetsSoon) {
  CheckpointMoments moments;
  int64_t now = 0;
  for (int round = 0; round < 10'000; ++round) {
    now += 10'000;
    if (moments.Meet(kRound)) moments.SetNext(7, moments.NextOf(7, now), now);
  }
  // Another loop begins with its first round.
  EXPECT_TRUE(moments.Meet({.block = 8, .ends_round = true}));
  EXPECT_FALSE(moments.Meet({.block = 9, .ends_round = false}));
}

TEST(CheckpointMomentsTest, StatementsOfTheMainProgramAreMeetings) {
  CheckpointMoments moments;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(moments.Meet({}));
    moments.SetNext(Moment::kMain, moments.NextOf(Moment::kMain, i), i);
  }
}

TEST(CheckpointIntervalTest, FollowsYoungWithinItsBounds) {
  const int64_t week = int64_t{7} * 24 * 3'600 * kSecond;
  EXPECT_EQ(CheckpointIntervalOf(0, week), 30 * kSecond);
  // sqrt(2 * 1 s * 604800 s) = 1099.8 s
  EXPECT_NEAR(static_cast<double>(CheckpointIntervalOf(kSecond, week)), 1099.8e9, 1e9);
  // At most 2 % of the time, where losses are frequent.
  EXPECT_EQ(CheckpointIntervalOf(10 * kSecond, 60 * kSecond), 500 * kSecond);
}

class CheckpointsTest : public testing::Test {
 protected:
  std::unique_ptr<Checkpoints> Make(int64_t interval_ns, CheckpointStore& store) {
    return std::make_unique<Checkpoints>(
        CheckpointOptions{.folder = "j1-0/5", .interval_ns = interval_ns}, 0, store, clock_,
        [] { return 42; },
        [this](const WrittenCheckpoint& about) {
          const std::lock_guard lock(mutex_);
          written_.push_back(about);
        });
  }
  static Result<std::string> Alone(const std::function<std::string()>& make) { return make(); }
  static ControlState State() {
    ControlState state;
    state.seeds.push_back({});
    VariableTable frame;
    frame.Set("x", Variable::OfScalar(Scalar(1.5)));
    state.frames.push_back(std::move(frame));
    return state;
  }
  std::vector<WrittenCheckpoint> written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }

  VirtualClock clock_;
  std::mutex mutex_;
  std::vector<WrittenCheckpoint> written_;
};

TEST_F(CheckpointsTest, AreDueAfterTheInterval) {
  MemoryCheckpoints store;
  const auto checkpoints = Make(10 * kSecond, store);
  int taken = 0;
  for (int i = 1; i <= 35; ++i) {
    clock_.Advance(kSecond);
    const Result<bool> wants = checkpoints->Wants({}, Alone);
    ASSERT_TRUE(wants.ok());
    if (!*wants) continue;
    ++taken;
    EXPECT_TRUE(checkpoints->Take(State()).ok());
  }
  EXPECT_EQ(taken, 3);
  checkpoints->LetGo();
  ASSERT_EQ(written().size(), 3u);
  EXPECT_EQ(written()[2].number, 3);
  EXPECT_EQ(written()[2].printed, 42);
  EXPECT_TRUE(written()[2].status.ok());
  EXPECT_TRUE(store.objects().contains("j1-0/5-3/rank-0"));
}

TEST_F(CheckpointsTest, OneThatIsAskedForIsTakenAtTheNextMeeting) {
  MemoryCheckpoints store;
  const auto checkpoints = Make(3'600 * kSecond, store);
  EXPECT_FALSE(*checkpoints->Wants({}, Alone));
  checkpoints->Ask();
  EXPECT_TRUE(*checkpoints->Wants({}, Alone));
  EXPECT_TRUE(checkpoints->Take(State()).ok());
  EXPECT_FALSE(*checkpoints->Wants({}, Alone));
}

TEST_F(CheckpointsTest, OtherRanksDoAsRank0Says) {
  MemoryCheckpoints store;
  const auto checkpoints = Make(3'600 * kSecond, store);
  EXPECT_TRUE(*checkpoints->Wants({}, [](const auto&) { return Result<std::string>("+1"); }));
  EXPECT_FALSE(*checkpoints->Wants({}, [](const auto&) { return Result<std::string>("-1"); }));
  for (const char* wrong : {"", "+", "1", "+0", "+x", "+1 "})
    EXPECT_EQ(Make(kSecond, store)
                  ->Wants({}, [&](const auto&) { return Result<std::string>(wrong); })
                  .status()
                  .code(),
              StatusCode::kInternal)
        << wrong;
}

// Takes a few bytes, and then no more.
class FullCheckpoints : public MemoryCheckpoints {
 public:
  Result<std::unique_ptr<Writer>> Create(const std::string&) override {
    return ResourceExhausted("checkpoints: the disk is full");
  }
};

TEST_F(CheckpointsTest, OneThatCannotBeWrittenIsToldAndNoMore) {
  FullCheckpoints store;
  const auto checkpoints = Make(kSecond, store);
  EXPECT_TRUE(checkpoints->Take(State()).ok());
  checkpoints->LetGo();
  ASSERT_EQ(written().size(), 1u);
  EXPECT_EQ(written()[0].status.code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace heddle::engine

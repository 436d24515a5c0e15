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

// Rounds of a loop, each as long as `round_ns`; the numbers of those behind which the ranks met.
std::vector<int> MeetingsOf(CheckpointMoments* moments, int32_t block, int rounds, int64_t round_ns,
                            int64_t* now, bool begins) {
  std::vector<int> meetings;
  for (int round = 0; round < rounds; ++round) {
    *now += round_ns;
    const bool is_first_round = begins && round == 0;
    if (is_first_round) moments->BeginLoop(block, *now);
    if (!moments->Meet({.block = block, .ends_round = true, .is_first_round = is_first_round})) continue;
    meetings.push_back(round);
    moments->SetNext(block, moments->NextOf(block, *now), *now);
  }
  return meetings;
}

TEST(CheckpointMomentsTest, ALoopWhoseRoundsBecomeSlowMeetsSoon) {
  CheckpointMoments moments;
  int64_t now = 0;
  const std::vector<int> fast = MeetingsOf(&moments, 7, 100'000, 10'000, &now, /*begins=*/true);
  EXPECT_LE(fast.size(), 100'000 / CheckpointMoments::kMostRounds + 20);
  const std::vector<int> slow = MeetingsOf(&moments, 7, 10'000, kSecond, &now, /*begins=*/false);
  ASSERT_FALSE(slow.empty());
  EXPECT_LE(slow.front(), static_cast<int>(CheckpointMoments::kMostRounds));
  EXPECT_LE(slow[1] - slow[0], static_cast<int>(CheckpointMoments::kMostRounds) / 100) << "its mean is known";
  EXPECT_EQ(slow.back() - slow[slow.size() - 2], 1);
}

// Its rounds may be others than those of the time before.
TEST(CheckpointMomentsTest, ALoopThatRunsAgainMeetsWithinItsFirstRounds) {
  CheckpointMoments moments;
  int64_t now = 0;
  (void)MeetingsOf(&moments, 7, 100'000, 10'000, &now, /*begins=*/true);
  const std::vector<int> slow = MeetingsOf(&moments, 7, 100, 10 * kSecond, &now, /*begins=*/true);
  ASSERT_FALSE(slow.empty());
  EXPECT_LT(slow.front(), static_cast<int>(CheckpointMoments::kFirstRounds));
  EXPECT_GE(slow.size(), 100 - CheckpointMoments::kFirstRounds);
  // Another loop begins with its first round.
  EXPECT_TRUE(moments.Meet({.block = 8, .ends_round = true}));
  EXPECT_FALSE(moments.Meet({.block = 9, .ends_round = false}));
}

TEST(CheckpointMomentsTest, LoopsOfFewRoundsDoNotMeetEachTimeThatTheyRun) {
  CheckpointMoments moments;
  int64_t now = 0;
  size_t meetings = 0;
  for (int run = 0; run < 1'000; ++run)
    meetings += MeetingsOf(&moments, 7, 10, 1'000, &now, /*begins=*/true).size();
  EXPECT_LE(meetings, 10'000 / CheckpointMoments::kFirstRounds + 10);
  EXPECT_GE(meetings, 100u);
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
  checkpoints->WaitForWrite();
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

// Fails where it is told to.
class FailingCheckpoints : public MemoryCheckpoints {
 public:
  enum class Step : uint8_t { kCreate, kAppend, kFinish };
  /// `appends`: so many parts are taken before.
  FailingCheckpoints(Step step, int appends) : step_(step), appends_(appends) {}

  Result<std::unique_ptr<Writer>> Create(const std::string& name) override {
    if (step_ == Step::kCreate) return Full();
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Writer> writer, MemoryCheckpoints::Create(name));
    return std::unique_ptr<Writer>(std::make_unique<FailingWriter>(*this, std::move(writer)));
  }

 private:
  class FailingWriter : public Writer {
   public:
    FailingWriter(FailingCheckpoints& store, std::unique_ptr<Writer> writer)
        : store_(store), writer_(std::move(writer)) {}
    Status Append(std::string_view bytes) override {
      if (store_.step_ == Step::kAppend && store_.appends_-- == 0) return Full();
      return writer_->Append(bytes);
    }
    Status Finish() override { return store_.step_ == Step::kFinish ? Full() : writer_->Finish(); }

   private:
    FailingCheckpoints& store_;
    const std::unique_ptr<Writer> writer_;
  };
  static Status Full() { return ResourceExhausted("checkpoints: the disk is full"); }

  const Step step_;
  int appends_;
};

TEST_F(CheckpointsTest, OneThatCannotBeWrittenIsToldAndNoMore) {
  using Step = FailingCheckpoints::Step;
  int failed = 0;
  const auto fails_at = [&](Step step, int appends) {
    FailingCheckpoints store(step, appends);
    written_.clear();
    const auto checkpoints = Make(kSecond, store);
    EXPECT_TRUE(checkpoints->Take(State()).ok());
    checkpoints->WaitForWrite();
    EXPECT_EQ(written().size(), 1u);
    if (written().size() != 1 || written()[0].status.ok()) return false;
    EXPECT_EQ(written()[0].status.message(), "checkpoints: the disk is full");
    EXPECT_TRUE(store.objects().empty());
    EXPECT_TRUE(checkpoints->Take(State()).ok()) << "the next one is tried";
    checkpoints->WaitForWrite();
    EXPECT_EQ(written().size(), 2u);
    return true;
  };
  EXPECT_TRUE(fails_at(Step::kCreate, 0));
  while (fails_at(Step::kAppend, failed)) ++failed;
  EXPECT_GT(failed, 3) << "each part of an object was refused once";
  EXPECT_TRUE(fails_at(Step::kFinish, 0));
}

}  // namespace
}  // namespace heddle::engine

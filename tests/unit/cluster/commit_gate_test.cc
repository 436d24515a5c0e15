// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/commit_gate.h"

#include <gtest/gtest.h>

#include <functional>

#include "cluster/master/beat_clock.h"
#include "ops/io/files/files.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using testing_support::ReadText;

class CommitGateTest : public testing::Test {
 protected:
  CommitGateTest()
      : gate_([this](const ExecutorCommit& question) { answer_(question); }, clock_),
        files_(ops::MakeFiles(folder_.path(), &gate_)) {}

  std::string Path() const { return folder_.path() + "/out.csv"; }

  testing_support::TemporaryFolder folder_;
  VirtualClock clock_;
  std::function<void(const ExecutorCommit&)> answer_;
  CommitGate gate_;
  std::unique_ptr<ops::Files> files_;
};

TEST_F(CommitGateTest, AFileAppearsWhenThatIsGranted) {
  int asked = 0;
  answer_ = [&](const ExecutorCommit& question) {
    ++asked;
    EXPECT_EQ(question.path, "out.csv");
    EXPECT_FALSE(std::filesystem::exists(Path()));
    gate_.Answer({question.id - 1, 100});  // of another question
    gate_.Answer({question.id, 100});
  };
  EXPECT_TRUE(files_->Replace("out.csv", "1\n").ok());
  EXPECT_EQ(ReadText(Path()), "1\n");
  EXPECT_EQ(asked, 1);
}

// As when the process is stopped after the answer came, and goes on much later.
TEST_F(CommitGateTest, APermissionThatHasRunOutIsAskedForAgain) {
  testing_support::WriteText(Path(), "of another job\n");
  int asked = 0;
  answer_ = [&](const ExecutorCommit& question) {
    gate_.Answer({question.id, clock_.MonotonicNs() + 100});
    if (++asked == 1) return clock_.Advance(100);
    EXPECT_EQ(ReadText(Path()), "of another job\n");
    if (asked == 2) gate_.Close(Cancelled("the attempt is not the current one any more"));
  };
  const Status status = files_->Replace("out.csv", "1\n");
  EXPECT_EQ(status.message(), "the attempt is not the current one any more");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(ReadText(Path()), "of another job\n");
  EXPECT_EQ(files_->Remove("out.csv").code(), StatusCode::kCancelled);
  EXPECT_EQ(ReadText(Path()), "of another job\n");
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    ++entries;
    EXPECT_EQ(entry.path().filename(), "out.csv") << "nothing else is left";
  }
  EXPECT_EQ(entries, 1);
}

TEST_F(CommitGateTest, RemovingIsAChange) {
  testing_support::WriteText(Path(), "1\n");
  int asked = 0;
  answer_ = [&](const ExecutorCommit& question) {
    ++asked;
    gate_.Answer({question.id, 100});
  };
  EXPECT_TRUE(files_->Remove("missing.csv").ok());
  EXPECT_EQ(asked, 0) << "there is nothing to change";
  EXPECT_TRUE(files_->Remove("out.csv").ok());
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST(BeatClockTest, CountsWhatItWasAwakeFor) {
  VirtualClock clock;
  BeatClock beats(clock, 100);
  EXPECT_EQ(beats.NextCount(BeatClock::kNever), BeatClock::kNever);
  EXPECT_EQ(beats.NextCount(1000), 100) << "at least once a beat";
  clock.Advance(60);
  EXPECT_FALSE(beats.Count());
  EXPECT_EQ(beats.now_ns(), 60);
  EXPECT_EQ(beats.NextCount(90), 90);
  clock.Advance(300);
  EXPECT_FALSE(beats.Count()) << "late, as on a busy machine";
  EXPECT_EQ(beats.now_ns(), 160);
  clock.Advance(10'000);
  EXPECT_TRUE(beats.Count());
  EXPECT_EQ(beats.now_ns(), 260);
  EXPECT_EQ(beats.NextCount(300), 10'400);
  EXPECT_EQ(beats.NextCount(200), 10'360) << "at once";
}

}  // namespace
}  // namespace heddle::cluster

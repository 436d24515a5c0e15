// SPDX-License-Identifier: Apache-2.0
// What a program and the checkpoints that are taken of it do with memory, and with values that both have.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "core/environment/clock.h"
#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "engine/checkpoints/checkpoints.h"
#include "engine/variables/control_state.h"
#include "ops/io/files/files.h"
#include "tests/support/process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Checkpoints in files, so that they take no memory.
class FileCheckpoints : public CheckpointStore {
 public:
  Result<std::unique_ptr<Writer>> Create(const std::string& name) override {
    return std::unique_ptr<Writer>(std::make_unique<FileWriter>(PathOf(name)));
  }
  Result<int64_t> SizeOf(const std::string& name) override {
    std::error_code missing;
    const auto size = std::filesystem::file_size(PathOf(name), missing);
    if (missing) return NotFound("no '{}'", name);
    return static_cast<int64_t>(size);
  }
  Status Read(const std::string& name, int64_t offset, std::span<char> to) override {
    std::ifstream file(PathOf(name), std::ios::binary);
    file.seekg(offset);
    file.read(to.data(), static_cast<std::streamsize>(to.size()));
    return file.good() ? OkStatus() : DataLoss("'{}' is too short", name);
  }
  Status RemoveAll(const std::string&) override { return OkStatus(); }

 private:
  class FileWriter : public Writer {
   public:
    explicit FileWriter(const std::string& path) : file_(path, std::ios::binary) {}
    Status Append(std::string_view bytes) override {
      file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      return OkStatus();
    }
    Status Finish() override {
      file_.close();
      return file_.good() ? OkStatus() : ResourceExhausted("no room");
    }

   private:
    std::ofstream file_;
  };
  std::string PathOf(std::string name) const {
    std::replace(name.begin(), name.end(), '/', '.');
    return folder_.path() + "/" + name;
  }
  const testing_support::TemporaryFolder folder_;
};

// Counts how often a program waits for a state that is being written; takes none.
class CountingTaker : public StateTaker {
 public:
  Result<bool> Wants(const Moment&, const Share&) override { return false; }
  Status Take(ControlState) override { return OkStatus(); }
  void WaitForWrite() override { ++waits_; }
  int waits() const { return waits_; }

 private:
  int waits_ = 0;
};

class SessionWithCheckpointsTest : public testing::Test {
 protected:
  SessionWithCheckpointsTest() : limit_(MemoryBudget::Process().limit()) {}
  ~SessionWithCheckpointsTest() override { MemoryBudget::Process().SetLimit(limit_); }

  // What the process has in use, and so many bytes more.
  static SessionOptions WithMemory(int64_t bytes) {
    BlockPool::Process().Trim();
    SessionOptions options;
    options.memory_bytes = MemoryBudget::Process().used() + bytes;
    return options;
  }
  // Runs it, or goes on from a checkpoint of the store.
  Status Run(const Program& program, SessionOptions options, StateTaker* states,
             const std::string& checkpoint = "", CheckpointStore* store = nullptr) {
    output_.clear();
    options.seed = 42;
    const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder_.path());
    SessionEnvironment environment;
    environment.files = files.get();
    environment.clock = &SystemClock();
    environment.print = [this](std::string_view text) {
      output_ += text;
      if (printed_) printed_(text);
    };
    environment.states = states;
    const std::unique_ptr<Session> session = Session::Create(options, program, environment);
    if (options.memory_bytes > 0) MemoryBudget::Process().SetLimit(options.memory_bytes);
    const Status status = checkpoint.empty() ? session->Run() : session->Resume(checkpoint, 1, *store);
    MemoryBudget::Process().SetLimit(limit_);
    return status;
  }
  std::unique_ptr<Checkpoints> Make(int64_t interval_ns, CheckpointStore& store) {
    return std::make_unique<Checkpoints>(
        CheckpointOptions{.folder = "j1/1", .interval_ns = interval_ns}, 0, store, SystemClock(),
        [this] { return static_cast<int64_t>(output_.size()); },
        [this](const WrittenCheckpoint& about) { written_.push_back(about); });
  }

  const int64_t limit_;
  const testing_support::TemporaryFolder folder_;
  std::string output_;
  std::function<void(std::string_view)> printed_;
  std::vector<WrittenCheckpoint> written_;  // On a thread of the checkpoints, until they are written.
};

Program LargerThanMemory() {
  return CompileOrDie(
      "X = rand(rows=125000, cols=20, min=-1, max=1, seed=3) + seq(1, 125000)\n"
      "Y = X * 0.5\n"
      "for (i in 1:3) {\n  Y = Y * 0.5 + X\n  print(i + \" \" + sum(Y))\n}\n"
      "print(sum(X) + \" \" + sum(Y))\n");
}

// The values of the program have all memory but what plans work with, and go on from a checkpoint so.
TEST_F(SessionWithCheckpointsTest, ValuesLargerThanMemoryAreWrittenAndReadBackWithinIt) {
  const Program program = LargerThanMemory();
  ASSERT_TRUE(Run(program, {}, nullptr).ok());
  const std::string expected = output_;
  FileCheckpoints store;
  const auto checkpoints = Make(/*interval_ns=*/1, store);
  const Status status = Run(program, WithMemory(24 * kMiB), checkpoints.get());
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(output_, expected);
  checkpoints->WaitForWrite();
  int64_t most_bytes = 0;
  for (const WrittenCheckpoint& written : std::vector(written_)) {
    EXPECT_TRUE(written.status.ok()) << written.number << " " << written.status.ToString();
    most_bytes = std::max(most_bytes, written.bytes);
    if (written.bytes < 36 * kMiB || written.number % 3 == 0) continue;
    const Status resumed =
        Run(program, WithMemory(24 * kMiB), nullptr, fmt::format("j1/1-{}", written.number), &store);
    ASSERT_TRUE(resumed.ok()) << written.number << " " << resumed.ToString();
    EXPECT_EQ(output_, expected.substr(static_cast<size_t>(written.printed)));
  }
  EXPECT_GE(most_bytes, 36 * kMiB) << "X and Y, which have no sources";
}

// Asks for memory to work with.
class WorkingTaker : public StateTaker {
 public:
  Result<bool> Wants(const Moment&, const Share&) override { return true; }
  int64_t working_bytes() const override { return 9 * kMiB; }
  Status Take(ControlState) override {
    ++taken_;
    most_bytes_ = std::max(most_bytes_, BlockPool::Process().Statistics().in_use_bytes);
    return OkStatus();
  }
  int taken() const { return taken_; }
  int64_t most_bytes() const { return most_bytes_; }

 private:
  int taken_ = 0;
  int64_t most_bytes_ = 0;
};

TEST_F(SessionWithCheckpointsTest, PanelsThatAreKeptMakeRoomForWhoTakesAState) {
  WorkingTaker taker;
  const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
  const Status status = Run(LargerThanMemory(), WithMemory(16 * kMiB), &taker);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_GT(taker.taken(), 5);
  EXPECT_LE(taker.most_bytes() - before + taker.working_bytes(), 16 * kMiB);
}

// Its lanes run on other threads, and need the memory that the checkpoint holds.
TEST_F(SessionWithCheckpointsTest, AParforWaitsForTheCheckpointThatIsBeingWritten) {
  SessionOptions options;
  options.threads = 2;
  CountingTaker taker;
  ASSERT_TRUE(
      Run(CompileOrDie("R = matrix(0, rows=4, cols=1)\nfor (i in 1:4) { R[i, 1] = i }\nprint(sum(R))"),
          options, &taker)
          .ok());
  EXPECT_EQ(taker.waits(), 0);
  ASSERT_TRUE(
      Run(CompileOrDie("R = matrix(0, rows=4, cols=1)\nparfor (i in 1:4) { R[i, 1] = i }\nprint(sum(R))"),
          options, &taker)
          .ok());
  EXPECT_EQ(taker.waits(), 1);
}

// What a plan reads is in memory already, and is not needed once more.
TEST_F(SessionWithCheckpointsTest, APlanWaitsForMemoryThatItDoesNotHaveYet) {
  const Program program = CompileOrDie(
      "X = rand(rows=400000, cols=10, seed=1)\n"
      "for (i in 1:3) { print(sum(X * i)) }\n");
  CountingTaker with_room;
  const Status status = Run(program, WithMemory(46 * kMiB), &with_room);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(with_room.waits(), 0);
  SessionOptions in_panels;
  in_panels.panel_bytes = 1 << 16;
  ASSERT_TRUE(Run(program, in_panels, &with_room).ok());
  EXPECT_EQ(with_room.waits(), 0) << "without a limit no memory is short";
}

// Objects that are not written until somebody lets them be.
class GatedCheckpoints : public MemoryCheckpoints {
 public:
  Result<std::unique_ptr<Writer>> Create(const std::string& name) override {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Writer> writer, MemoryCheckpoints::Create(name));
    return std::unique_ptr<Writer>(std::make_unique<GatedWriter>(*this, std::move(writer)));
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  // Whether somebody waits to write, soon.
  bool AwaitWriter() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [this] { return is_awaited_; });
  }

 private:
  class GatedWriter : public Writer {
   public:
    GatedWriter(GatedCheckpoints& store, std::unique_ptr<Writer> writer)
        : store_(store), writer_(std::move(writer)) {}
    Status Append(std::string_view bytes) override {
      std::unique_lock lock(store_.mutex_);
      store_.is_awaited_ = true;
      store_.changed_.notify_all();
      store_.changed_.wait(lock, [this] { return store_.is_open_; });
      return writer_->Append(bytes);
    }
    Status Finish() override { return writer_->Finish(); }

   private:
    GatedCheckpoints& store_;
    const std::unique_ptr<Writer> writer_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false, is_awaited_ = false;  // Under mutex_.
};

// The program changes a matrix and a list in place, and takes variables away, while both are being written.
TEST_F(SessionWithCheckpointsTest, WhatTheProgramChangesWhileItIsWrittenIsWrittenAsItWas) {
  const Program program = CompileOrDie(
      "X = rand(rows=300, cols=10, seed=1) + 1\n"
      "L = list(X, 7)\n"
      "F = as.frame(X)\n"
      "print(\"take it\")\n"
      "for (i in 1:3) {\n"
      "  X[i, 1] = i * 100\n  L[2] = i * 1000\n  L = append(L, i)\n"
      "  F[i, 2] = as.frame(matrix(5, rows=1, cols=1))\n"
      "  print(sum(X) + \" \" + as.scalar(L[2]) + \" \" + length(L) + \" \" + sum(as.matrix(F)))\n"
      "}\n"
      "print(\"changed\")\n"
      "print(sum(X) + \" \" + sum(as.matrix(L[1])))\n");
  GatedCheckpoints store;
  const auto checkpoints = Make(/*interval_ns=*/int64_t{3'600} * 1'000'000'000, store);
  printed_ = [&](std::string_view text) {
    if (text == "take it\n") checkpoints->Ask();
    if (text == "changed\n") {
      EXPECT_TRUE(store.AwaitWriter()) << "the state of before was taken";
      store.Open();
    }
  };
  const Status status = Run(program, {}, checkpoints.get());
  store.Open();
  checkpoints->WaitForWrite();
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string expected = output_;
  ASSERT_EQ(written_.size(), 1u);
  ASSERT_TRUE(written_[0].status.ok()) << written_[0].status.ToString();
  EXPECT_EQ(written_[0].printed, 8) << "the state of before the loop";
  const Status resumed = Run(program, {}, nullptr, "j1/1-1", &store);
  ASSERT_TRUE(resumed.ok()) << resumed.ToString();
  EXPECT_EQ(output_, expected.substr(8));
}

}  // namespace
}  // namespace heddle::engine

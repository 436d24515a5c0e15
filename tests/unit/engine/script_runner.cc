// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/script_runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "actor/in_process_link.h"
#include "compiler/compile.h"
#include "core/environment/clock.h"
#include "engine/checkpoints/checkpoint_file.h"
#include "engine/session/state_taker.h"
#include "ops/io/files/files.h"
#include "tests/unit/engine/control_channel_in_process.h"

namespace heddle::engine {

Program CompileOrDie(const std::string& text) {
  compiler::CompileOptions options;
  options.script = "test.dml";
  compiler::Diagnostics diagnostics;
  Result<Program> program = compiler::CompileScript(text, options, &diagnostics);
  HEDDLE_CHECK(program.ok(), program.status().ToString().c_str());
  return *std::move(program);
}

SessionOptions SplitOver(int ranks, int threads) {
  SessionOptions options;
  options.ranks = ranks;
  options.threads = threads;
  options.min_distributed_bytes = 0;
  return options;
}

namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

// Stands still before block number stretch->end of its rank.
class StopAtTheEnd : public StateTaker {
 public:
  StopAtTheEnd(Stretch* stretch, size_t rank) : stretch_(stretch), rank_(rank) {}

  Result<bool> Wants(const Moment&, const Share&) override {
    if (rank_ == 0) stretch_->blocks = block_ + 1;
    if (stretch_->fault) HEDDLE_RETURN_IF_ERROR(stretch_->fault(rank_, block_));
    return block_++ == stretch_->end;
  }
  Status Take(ControlState state) override {
    HEDDLE_RETURN_IF_ERROR(
        WriteCheckpoint(state, static_cast<int>(rank_), Stretch::kCheckpoint, *stretch_->states, kPieceBytes)
            .status());
    return Cancelled("it stands still");
  }

 private:
  Stretch* const stretch_;
  const size_t rank_;
  int64_t block_ = 0;
};

// Turns a wait for ever into a failure.
class Deadline {
 public:
  explicit Deadline(const std::function<void()>& passed)
      : thread_([this, passed] {
          std::unique_lock lock(mutex_);
          if (!changed_.wait_for(lock, std::chrono::minutes(1), [this] { return has_ended_; })) passed();
        }) {}
  void End() {
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::thread thread_;
};

Status RunFrom(Session& session, const Stretch& stretch) {
  return stretch.begin == nullptr ? session.Run()
                                  : session.Resume(Stretch::kCheckpoint, stretch.begin_ranks, *stretch.begin);
}

}  // namespace

ScriptOutcome RunScript(const std::string& text, SessionOptions options, const ops::KernelSource* kernels) {
  Stretch whole;
  whole.is_watched = false;
  return RunProgram(CompileOrDie(text), std::move(options), &whole, kernels);
}

ScriptOutcome RunProgram(const Program& program, SessionOptions options, Stretch* stretch,
                         const ops::KernelSource* kernels) {
  const auto ranks = static_cast<size_t>(options.ranks);
  if (options.seed == -1) options.seed = 42;
  stretch->states = std::make_shared<MemoryCheckpoints>();
  ScriptOutcome outcome;
  actor::InProcessNetwork network(static_cast<uint32_t>(options.ranks));
  const std::vector<std::unique_ptr<ControlChannel>> channels = InProcessChannels(options.ranks);
  std::vector<std::unique_ptr<ops::Files>> files;
  std::vector<std::unique_ptr<StateTaker>> takers;
  std::vector<std::unique_ptr<Session>> sessions;
  for (size_t rank = 0; rank < ranks; ++rank) {
    options.rank = static_cast<int>(rank);
    files.push_back(ops::MakeFiles(stretch->folders.empty() ? testing::TempDir() : stretch->folders[rank]));
    SessionEnvironment environment;
    environment.files = files.back().get();
    environment.clock = &SystemClock();
    environment.print = [&outcome](std::string_view part) { outcome.output += part; };  // rank 0 only
    environment.link = ranks > 1 ? &network.LinkOf(static_cast<uint32_t>(rank)) : nullptr;
    environment.control = ranks > 1 ? channels[rank].get() : nullptr;
    environment.kernels = kernels;
    takers.push_back(std::make_unique<StopAtTheEnd>(stretch, rank));
    if (stretch->is_watched) environment.states = takers.back().get();
    sessions.push_back(Session::Create(options, program, environment));
    if (ranks > 1) network.Attach(static_cast<uint32_t>(rank), *sessions.back()->handler());
  }
  std::vector<Status> statuses(ranks);
  std::vector<std::thread> threads;
  Deadline deadline([&] {
    for (const auto& session : sessions) session->Cancel(Internal("the ranks wait for each other"));
  });
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] = RunFrom(*sessions[rank], *stretch);
      if (statuses[rank].ok() || statuses[rank].message() == "it stands still") return;
      for (size_t other = 0; other < ranks; ++other)
        if (other != rank) sessions[other]->Cancel(statuses[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  deadline.End();
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (ranks > 1) network.Detach(static_cast<uint32_t>(rank));
    outcome.statistics.push_back(sessions[rank]->statistics());
    if (outcome.status.ok()) outcome.status = statuses[rank];
  }
  return outcome;
}

}  // namespace heddle::engine

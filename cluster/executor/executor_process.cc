// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/executor_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "cluster/executor/executor_messages.h"
#include "cluster/executor/line_channel.h"
#include "cluster/process/control_group.h"
#include "cluster/process/process_end.h"
#include "cluster/process/verb_process.h"
#include "core/environment/random.h"
#include "core/memory/memory_bounds.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::cluster {
namespace {

constexpr std::string_view kName = "an executor";
constexpr int kBeatsUntilStuck = 10;
constexpr int kMostStarvedTimes = 10;  // So often a process that waits for a processor may be silent in turn.
constexpr int64_t kNsPerMs = 1'000'000;

struct ProcessorUse {
  int64_t ran_ns = 0;        // All threads of a process together.
  bool is_runnable = false;  // A thread runs, or waits for a processor.
};

ProcessorUse UseOf(pid_t pid) {
  ProcessorUse use;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    std::ifstream times(thread.path() / "schedstat"), file(thread.path() / "stat");
    int64_t ran_ns = 0;
    std::string line;
    if (times >> ran_ns) use.ran_ns += ran_ns;
    if (!std::getline(file, line)) continue;
    const size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.compare(name_end, 3, ") R") == 0) use.is_runnable = true;
  }
  return use;
}

class ExecutorProcessImpl : public ExecutorProcess {
 public:
  ExecutorProcessImpl(int own_fd, ExecutorEvents events, std::string group)
      : events_(std::move(events)), channel_(own_fd), group_(std::move(group)) {}

  ~ExecutorProcessImpl() override {
    Kill();
    if (thread_.joinable()) thread_.join();
  }

  // The thread that spawns is the one that stays until the process has ended: the kernel kills the child with
  // it.
  Status Spawn(const ExecutorStart& start, const std::string& binary, Descriptor control, int log) {
    silence_ms_ = start.silence_ms;
    std::promise<Result<pid_t>> spawned;
    std::future<Result<pid_t>> result = spawned.get_future();
    LauncherMessage message;
    message.start = start;
    thread_ = std::thread([this, line = ToLine(message), binary, control = std::move(control), log,
                           spawned = std::move(spawned)]() mutable {
      const int64_t memory_kills = Kills();
      Result<pid_t> pid = StartVerb(
          "executor",
          {.child = kName, .program = binary, .control = control.get(), .log = log, .closes_all = true});
      control = Descriptor();
      const bool running = pid.ok();
      if (running) pid_ = *pid;
      // Before it is told anything: it has hardly any memory yet.
      if (running && !group_.empty() && !EnterGroup(group_, pid_)) {
        RemoveGroup(group_);
        group_.clear();
      }
      spawned.set_value(std::move(pid));
      if (!running) return;
      channel_.LimitWriting(silence_ms_);
      if (!channel_.WriteLine(line)) Kill();  // it does not even listen
      Read();
      WaitForEnd();
      Reap(memory_kills);
    });
    return result.get().status();
  }

  pid_t pid() const override { return pid_; }

  void SendPeers(const std::vector<ExecutorPeer>& peers) override {
    LauncherMessage message;
    message.peers = peers;
    channel_.WriteLine(ToLine(message));
  }

  void Grant(const ExecutorGrant& grant) override {
    LauncherMessage message;
    message.grant = grant;
    channel_.WriteLine(ToLine(message));
  }

  void Send(const CheckpointOrder& order) override {
    LauncherMessage message;
    message.checkpoint = order;
    channel_.WriteLine(ToLine(message));
  }

  void Cancel(const Status& why) override {
    LauncherMessage message;
    message.cancel = why;
    channel_.WriteLine(ToLine(message));
  }

  void Kill() override { Signal(SIGKILL); }

  bool Signal(int number) override {
    const std::lock_guard lock(mutex_);
    if (pid_ <= 0 || reaped_) return false;
    if (number == SIGKILL) killed_ = true;
    return kill(pid_, number) == 0;
  }

 private:
  // To the end of the conversation. Beats are counted, not time: should this process itself be stopped for a
  // while, that is one beat.
  void Read() {
    const int beat_ms = static_cast<int>(std::max<int64_t>(silence_ms_ / kBeatsUntilStuck, 1));
    int missed_beats = 0;
    int starved_times = 0;
    int64_t ran_ns = 0;
    std::string line;
    for (;;) {
      const LineChannel::Outcome outcome = channel_.ReadLine(&line, beat_ms);
      if (outcome == LineChannel::Outcome::kClosed) return;
      if (outcome == LineChannel::Outcome::kSilence) {
        if (missed_beats == 0) ran_ns = UseOf(pid_).ran_ns;
        if (++missed_beats < kBeatsUntilStuck) continue;
        // One that would run and hardly gets a processor is not stuck: the machine has too much to do.
        const ProcessorUse use = UseOf(pid_);
        const bool is_starved = use.is_runnable && use.ran_ns - ran_ns < silence_ms_ * kNsPerMs / 2;
        if (!is_starved || ++starved_times > kMostStarvedTimes) return KillSilent();
        missed_beats = 0;
        continue;
      }
      missed_beats = starved_times = 0;
      Result<ExecutorMessage> message = ParseExecutorMessage(line);
      if (!message.ok()) return Kill();  // not our executor any more
      if (message->ready && events_.ready)
        events_.ready(message->ready->endpoint, message->ready->certificate);
      if (message->output && events_.output) events_.output(*message->output);
      if (message->plan && events_.plan) events_.plan(*message->plan);
      if (message->progress && events_.progress) events_.progress(*message->progress);
      if (message->record && events_.record) events_.record(*message->record);
      if (message->hidden) hidden_.insert(*message->hidden);
      if (message->gone) hidden_.erase(*message->gone);
      if (message->commit && events_.commit) events_.commit(*message->commit);
      if (message->checkpoint && events_.checkpoint) events_.checkpoint(*message->checkpoint);
      if (message->done && events_.done) events_.done(*message->done);
    }
  }

  // It has closed its end, so that it is about to end; one that does not is stuck.
  void WaitForEnd() {
    // Not by <sys/pidfd.h>: that of Debian 12 is no C++ header.
    const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    if (fd < 0) return;
    pollfd poller = {fd, POLLIN, 0};
    int ready = 0;
    while ((ready = poll(&poller, 1, static_cast<int>(silence_ms_))) < 0 && errno == EINTR) {
    }
    close(fd);
    if (ready == 0) KillSilent();
  }

  void KillSilent() {
    silent_ms_ = silence_ms_;
    // One that runs has no such state.
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
        info.si_code == CLD_STOPPED)
      stopped_by_ = info.si_status;
    Kill();
  }

  // `memory_kills`: how many processes had been killed for memory when this one was started.
  void Reap(int64_t memory_kills) {
    siginfo_t info;
    // Without reaping first: until then the number of the process cannot be given to another.
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    ExecutorExit exit;
    exit.pid = pid_;
    exit.silent_ms = silent_ms_;
    {
      const std::lock_guard lock(mutex_);
      int status = 0;
      rusage used{};
      wait4(pid_, &status, 0, &used);
      reaped_ = true;
      exit.signalled = WIFSIGNALED(status);
      exit.value = !exit.signalled ? WEXITSTATUS(status) : stopped_by_ != 0 ? stopped_by_ : WTERMSIG(status);
      exit.peak_bytes = int64_t{used.ru_maxrss} << 10;
      // The kernel says nothing to the parent of whom it kills for memory, but it counts.
      exit.out_of_memory = exit.signalled && exit.value == SIGKILL && !killed_ && Kills() > memory_kills;
    }
    for (const std::string& path : hidden_) ops::RemoveHiddenPath(path);
    if (exit.out_of_memory) exit.limit_bytes = ReadMemoryBounds().Smallest();
    if (!group_.empty()) {
      if (const int64_t limit = MemoryLimitOfGroup(group_); exit.out_of_memory && limit > 0)
        exit.limit_bytes = std::min(exit.limit_bytes, limit);
      RemoveGroup(group_);
    }
    if (events_.exited) events_.exited(exit);
  }

  // Of processes that the kernel killed for memory, where this executor is one of them if it was killed.
  int64_t Kills() const { return group_.empty() ? MemoryKills() : KillsInGroup(group_); }

  const ExecutorEvents events_;
  LineChannel channel_;
  std::string group_;  // of the thread
  pid_t pid_ = 0;      // set before Spawn returns
  std::mutex mutex_;
  bool reaped_ = false;
  bool killed_ = false;           // by this object
  int64_t silence_ms_ = 0;        // set before the thread starts
  int64_t silent_ms_ = 0;         // of the thread
  int stopped_by_ = 0;            // of the thread: the signal, when it was silent for that
  std::set<std::string> hidden_;  // of the thread: what the process may leave
  std::thread thread_;
};

}  // namespace

std::string ExecutorExit::Describe() const {
  if (silent_ms > 0)
    return fmt::format("gave no sign of life for {} s and was killed{}", static_cast<double>(silent_ms) / 1e3,
                       IsSignalOfStop(value) ? fmt::format(": signal {} had stopped it", value) : "");
  if (out_of_memory)
    return fmt::format(
        "was killed by the kernel because memory ran out: it held {} bytes, of {} that its surroundings allow; "
        "a smaller --memory of the job or of its worker lets it stop by itself",
        peak_bytes, limit_bytes);
  if (CodeOf() == StatusCode::kResourceExhausted) return "ran out of memory";
  return signalled ? fmt::format("was killed by signal {}", value) : fmt::format("ended with code {}", value);
}

std::string ExecutorExit::Kind() const {
  if (silent_ms > 0) return "silent";
  if (CodeOf() == StatusCode::kResourceExhausted) return "out of memory";
  if (signalled) return fmt::format("signal {}", value);
  return value == 0 ? "done" : fmt::format("code {}", value);
}

StatusCode ExecutorExit::CodeOf() const {
  if (out_of_memory || (!signalled && value == kMemoryExitCode)) return StatusCode::kResourceExhausted;
  const bool is_bug = signalled ? IsSignalOfBug(value) : value == kBugExitCode;
  return is_bug ? StatusCode::kInternal : StatusCode::kUnavailable;
}

Result<std::unique_ptr<ExecutorProcess>> ExecutorProcess::Start(const ExecutorStart& start,
                                                                ExecutorEvents events,
                                                                const std::string& binary, int log,
                                                                const std::string& group) {
  HEDDLE_ASSIGN_OR_RETURN(ControlSockets sockets, MakeControlSockets(kName));
  auto process = std::make_unique<ExecutorProcessImpl>(sockets.own.Release(), std::move(events), group);
  HEDDLE_RETURN_IF_ERROR(process->Spawn(start, binary, std::move(sockets.child), log));
  return std::unique_ptr<ExecutorProcess>(std::move(process));
}

}  // namespace heddle::cluster

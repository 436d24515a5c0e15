// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/launch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cluster/executor/executor_process.h"
#include "cluster/executor/lease_clock.h"
#include "cluster/security/token.h"
#include "core/environment/random.h"
#include "core/memory/memory_bounds.h"
#include "engine/report/rank_record_json.h"

namespace heddle::cluster {
namespace {

// How long executors may take to end on their own once one has failed or the run was cancelled.
constexpr auto kGrace = std::chrono::seconds(5);
// After a cancellation: a user is to be answered within a second.
constexpr std::chrono::milliseconds kCancelGrace{500};
// The same where what they have recorded is waited for (--report, --trace).
constexpr std::chrono::milliseconds kCancelGraceOfRecords{3000};
// For how long an executor may change the file that it asked for. Its launcher waits for its end before it
// makes another attempt, so that the permission bounds nothing else.
constexpr int64_t kGrantNs = 3'600'000'000'000;

struct Member {
  std::unique_ptr<ExecutorProcess> process;
  std::optional<std::string> endpoint;
  std::string certificate;
  std::optional<Status> done;
  bool own_cause = false;
  std::optional<engine::SessionStatistics> statistics;
  std::optional<engine::RankRecord> record;
  std::optional<ExecutorExit> exit;

  bool Crashed() const { return exit.has_value() && !done.has_value(); }
};

class Launch {
 public:
  Launch(const engine::RunSurroundings& surroundings, const LocalAttempt& attempt, size_t ranks)
      : surroundings_(surroundings), attempt_(attempt), members_(ranks) {}

  ~Launch() {
    for (Member& member : members_) member.process.reset();  // kills and waits
  }

  engine::RunOutcome Run(const ExecutorStart& start, const std::string& binary) {
    if (start.options.recorded_events > 0) cancel_grace_ = kCancelGraceOfRecords;
    if (surroundings_.cancellation != nullptr) {
      surroundings_.cancellation->Listen([this](const Status& why) {
        const std::lock_guard lock(mutex_);
        cancelled_ = why;
        changed_.notify_all();
      });
    }
    engine::RunOutcome outcome;
    outcome.status = StartAll(start, binary);
    if (outcome.status.ok()) outcome.status = Supervise();
    if (attempt_.ends) attempt_.ends();
    if (surroundings_.cancellation != nullptr) surroundings_.cancellation->Listen(nullptr);
    for (Member& member : members_) member.process.reset();
    for (const Member& member : members_)
      if (member.statistics) outcome.statistics.push_back(*member.statistics);
    for (Member& member : members_)
      if (member.record) outcome.records.push_back(*std::move(member.record));
    return outcome;
  }

 private:
  Status StartAll(ExecutorStart start, const std::string& binary) {
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      start.options.rank = static_cast<int>(rank);
      start.shows_progress =
          rank == 0 && surroundings_.tell_progress != nullptr;             // it is at the same statement
      start.show_plans = rank == 0 && surroundings_.show_plan != nullptr;  // the others run the same
      // Sockets without a name in the file system: faster than loopback, and nothing is left of them.
      start.listen = fmt::format("unix-abstract:heddle-{}", MakeToken());
      HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<ExecutorProcess> process,
                              ExecutorProcess::Start(start, EventsOf(rank), binary));
      const std::lock_guard lock(mutex_);
      members_[rank].process = std::move(process);
    }
    if (attempt_.started) {
      std::vector<ExecutorProcess*> processes;
      for (const Member& member : members_) processes.push_back(member.process.get());
      attempt_.started(processes);
    }
    return OkStatus();
  }

  ExecutorEvents EventsOf(size_t rank) {
    ExecutorEvents events;
    events.ready = [this, rank](const std::string& endpoint, const std::string& certificate) {
      const std::lock_guard lock(mutex_);
      members_[rank].endpoint = endpoint;
      members_[rank].certificate = certificate;
      changed_.notify_all();
    };
    events.output = surroundings_.print;
    events.plan = surroundings_.show_plan;
    events.progress = surroundings_.tell_progress;
    events.record = [this, rank](const std::string& json) {
      Result<engine::RankRecord> record = engine::ParseRankRecord(json);
      const std::lock_guard lock(mutex_);
      if (record.ok()) members_[rank].record = *std::move(record);
    };
    events.done = [this, rank](const ExecutorDone& done) {
      const std::lock_guard lock(mutex_);
      members_[rank].done = done.status;
      members_[rank].own_cause = done.own_cause;
      members_[rank].statistics = done.statistics;
      changed_.notify_all();
    };
    events.checkpoint = [this, rank](const engine::WrittenCheckpoint& written) {
      if (attempt_.wrote) attempt_.wrote(rank, written);
    };
    events.commit = [this, rank](const ExecutorCommit& commit) { AnswerCommit(rank, commit); };
    events.exited = [this, rank](const ExecutorExit& exit) {
      const std::lock_guard lock(mutex_);
      members_[rank].exit = exit;
      if (members_[rank].Crashed() && !crashed_.has_value() && !KnowsCause()) crashed_ = rank;
      changed_.notify_all();
    };
    return events;
  }

  // From started processes to the outcome.
  Status Supervise() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return AllHave(&Member::endpoint) || HasTrouble(); });
    const bool before_peers = HasTrouble();
    if (!before_peers) {
      lock.unlock();
      const Status linked = SendPeers();
      lock.lock();
      if (!linked.ok() && refused_.ok()) refused_ = linked;
      changed_.wait(lock, [&] { return AllHave(&Member::done) || HasTrouble(); });
    }
    // Linked executors tell each other of a failure; before that they only hear it from here.
    const Status cancelled = !cancelled_.ok() ? cancelled_ : refused_;
    const Status stop = !cancelled.ok() ? cancelled
                        : before_peers  ? Cancelled("another executor failed")
                                        : OkStatus();
    if (!stop.ok()) ForAll(lock, [&](ExecutorProcess& process) { process.Cancel(stop); });
    changed_.wait_for(lock, cancelled.ok() ? std::chrono::milliseconds(kGrace) : cancel_grace_,
                      [&] { return crashed_.has_value() || AllEnded(); });
    // Those that are left remove the files that they were about to write.
    if (crashed_.has_value() && !AllEnded()) {
      ForAll(lock, [&](ExecutorProcess& process) { process.Cancel(Cancelled("another executor crashed")); });
      changed_.wait_for(lock, kCancelGrace, [&] { return AllEnded(); });
    }
    are_killed_ = true;
    if (!AllHave(&Member::done)) ForAll(lock, [&](ExecutorProcess& process) { process.Kill(); });
    changed_.wait_for(lock, kGrace, [&] { return AllHave(&Member::exit); });
    return cancelled.ok() ? Outcome() : cancelled;
  }

  // The rank table of each.
  Status SendPeers() {
    for (size_t caller = 0; caller < members_.size(); ++caller) {
      std::vector<ExecutorPeer> peers;
      for (size_t rank = 0; rank < members_.size(); ++rank) {
        std::string endpoint = *members_[rank].endpoint;
        if (attempt_.route && rank != caller) {
          HEDDLE_ASSIGN_OR_RETURN(endpoint, attempt_.route(caller, rank, endpoint));
        }
        peers.push_back({endpoint, members_[rank].certificate, NameOf(rank)});
      }
      members_[caller].process->SendPeers(peers);
    }
    return OkStatus();
  }

  // On the thread of the executor that asks. An attempt that is ending changes nothing any more.
  void AnswerCommit(size_t rank, const ExecutorCommit& commit) {
    const std::lock_guard one_at_a_time(commits_);
    {
      const std::lock_guard lock(mutex_);
      if (HasTrouble() || are_killed_) return;
    }
    const Status answer = attempt_.may_change ? attempt_.may_change(rank, commit.path) : OkStatus();
    if (answer.ok()) return members_[rank].process->Grant({commit.id, LeaseClock().MonotonicNs() + kGrantNs});
    const std::lock_guard lock(mutex_);
    if (refused_.ok()) refused_ = answer;
    changed_.notify_all();
  }

  Status Outcome() const {
    if (crashed_.has_value()) {
      const ExecutorExit& exit = *members_[*crashed_].exit;
      const std::string text = fmt::format("{} {}", NameOf(*crashed_), exit.Describe());
      return Status(
          exit.CodeOf() == StatusCode::kResourceExhausted ? exit.CodeOf() : StatusCode::kUnavailable, text);
    }
    for (const Member& member : members_)
      if (member.done && !member.done->ok() && member.own_cause) return *member.done;
    for (const Member& member : members_)
      if (member.done && !member.done->ok()) return *member.done;
    for (size_t rank = 0; rank < members_.size(); ++rank)
      if (!members_[rank].done) return Unavailable("{} did not answer", NameOf(rank));
    return OkStatus();
  }

  // Calls outside the lock: events may come meanwhile.
  template <typename Call>
  void ForAll(std::unique_lock<std::mutex>& lock, const Call& call) {
    lock.unlock();
    for (Member& member : members_) call(*member.process);
    lock.lock();
  }

  template <typename Field>
  bool AllHave(Field field) const {
    for (const Member& member : members_)
      if (!(member.*field).has_value()) return false;
    return true;
  }
  bool AllEnded() const {
    for (const Member& member : members_)
      if (!member.done && !member.exit) return false;
    return true;
  }
  // Whatever ends from now on does so because of a failure that is known.
  bool KnowsCause() const {
    return are_killed_ || std::ranges::any_of(members_, [](const Member& member) {
             return member.done && !member.done->ok() && member.own_cause;
           });
  }
  bool HasTrouble() const {
    if (crashed_.has_value() || !cancelled_.ok() || !refused_.ok()) return true;
    for (const Member& member : members_)
      if (member.done && !member.done->ok()) return true;
    return false;
  }
  std::string NameOf(size_t rank) const {
    return fmt::format("worker {} (pid {})", rank, members_[rank].process->pid());
  }

  const engine::RunSurroundings& surroundings_;
  const LocalAttempt& attempt_;
  std::mutex commits_;  // Taken before mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  std::optional<size_t> crashed_;  // the first that ended without an outcome, where that is the cause
  bool are_killed_ = false;        // Those that have not ended in time.
  Status cancelled_;
  Status refused_;  // Why a file was not to be changed, or no links could be made.
  std::chrono::milliseconds cancel_grace_ = kCancelGrace;
};

}  // namespace

engine::RunOutcome RunOnLocalProcesses(const Program& program, const engine::SessionOptions& options,
                                       const engine::RunSurroundings& surroundings,
                                       const LocalProcesses& processes) {
  const LocalAttempt only;
  const LocalAttempt& attempt = processes.attempt != nullptr ? *processes.attempt : only;
  ExecutorStart start;
  start.job = "sim";
  start.attempt = attempt.number;
  start.epoch = attempt.may_change ? attempt.number : 0;
  start.token = MakeToken();
  start.program = program.ToText();
  start.directory = surroundings.directory;
  start.roots = engine::RootsOfRun();
  start.silence_ms = surroundings.silence_ms;
  start.sharers = options.ranks;
  start.shares_memory = processes.shares_memory;
  start.checkpoints = attempt.checkpoints;
  start.options = options;
  // The same for all of them, whatever each finds of itself.
  if (options.memory_bytes == 0)
    start.options.available_bytes = ReadMemoryBounds().DefaultLimit(options.ranks);
  if (options.recorded_events > 0) start.options.times_operators = true;
  if (start.options.seed == -1) start.options.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
  return Launch(surroundings, attempt, static_cast<size_t>(options.ranks)).Run(start, processes.binary);
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cluster/master/master_core.h"
#include "core/environment/log.h"

// How attempts and jobs end.
namespace heddle::cluster {
namespace {

constexpr int64_t kStoreRetryNs = 1'000'000'000;  // The disk may be full for a while.
constexpr int64_t kNsPerMs = 1'000'000;

// How long a job waits before its next attempt: not at all after the first failure, then twice as long after
// each, so that a machine that keeps failing is not kept busy with starts.
int64_t PauseNs(int failures) {
  constexpr int64_t kFirstNs = 1'000'000'000, kLongestNs = 60'000'000'000;
  constexpr int kDoublings = 6;
  return failures < 2 ? 0 : std::min(kLongestNs, kFirstNs << std::min(failures - 2, kDoublings));
}

// "24 h", "90 min", "8 s"
std::string Duration(int64_t ms) {
  constexpr std::pair<int64_t, const char*> kUnits[] = {{3'600'000, "h"}, {60'000, "min"}, {1'000, "s"}};
  for (const auto& [unit_ms, name] : kUnits)
    if (ms >= unit_ms && ms % unit_ms == 0) return fmt::format("{} {}", ms / unit_ms, name);
  return ms == 0 ? "0" : ms < 1'000 ? fmt::format("{} ms", ms) : fmt::format("{} s", ms / 1'000);
}

std::string Times(int count) { return count == 1 ? "once" : fmt::format("{} times", count); }

}  // namespace

void MasterCore::Finish(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
  StoreLogs(entry);
  Job& job = entry.job;
  bool moved = true;
  if (job.state == JobState::kCancelling) {
    job.outcome = Cancelled("the job was cancelled");
    moved = Move(entry, JobState::kCancelled, job.outcome.message());
  } else if (attempt.AllDone() && !attempt.HasFailed()) {
    job.statistics = attempt.Statistics();
    job.outcome = OkStatus();  // an earlier try to store another one may have failed
    // A job that ended while the master was away has not been seen running.
    if (job.state == JobState::kAdmitted) moved = Move(entry, JobState::kStarting, "");
    if (moved && job.state != JobState::kRunning) moved = Move(entry, JobState::kRunning, "");
    moved = moved && Move(entry, JobState::kSucceeded, "");
  } else if (attempt.stop.code() == StatusCode::kDeadlineExceeded) {
    job.statistics = attempt.Statistics();
    job.outcome = attempt.stop;
    moved = Move(entry, JobState::kFailed, job.outcome.message());
  } else {
    moved = FinishFailed(entry);
  }
  if (!moved) {
    attempt.deadline_ns = Now() + kStoreRetryNs;
    job.is_held_up = true;
    SetReason(entry, fmt::format("waits: {}", store_status_.message()));
    return;
  }
  for (size_t rank = 0; rank < attempt.members().size(); ++rank) {
    Order(entry, rank, WorkerOrder::Kind::kForget);
    Worker* worker = membership_.Find(attempt.members()[rank].worker);
    if (worker != nullptr) worker->shares.erase(job.id);
  }
  Charge(job, /*begins=*/false);
  entry.attempt.reset();
  entry.progress.clear();
  if (IsFinal(job.state)) job.specification.DropProgram();
  Index(entry);
}

// After an attempt that failed: the next one, or the end of the job. False when it could not be stored;
// nothing has changed then.
bool MasterCore::FinishFailed(Entry& entry) {
  const JobAttempt& attempt = *entry.attempt;
  Job& job = entry.job;
  const int wanted = job.specification.workers_wanted;
  JobSpecification specification = std::move(job.specification);  // Large, and never changes.
  Job before = job;
  job.specification = std::move(specification);
  const Status cause = attempt.Cause();
  const Blame blame = attempt.BlameOfCause();
  // What the plans say was not enough: that is no fault of the job, which gets a whole share.
  const int64_t plan_bytes = job.specification.plan_bytes;
  const bool needs_more = plan_bytes > 0 && cause.code() == StatusCode::kResourceExhausted;
  if (needs_more) job.specification.plan_bytes = 0;
  const bool moves = !attempt.moves.empty();
  const bool needs_all = !moves && !needs_more && blame == Blame::kScript &&
                         cause.code() == StatusCode::kResourceExhausted &&
                         attempt.members().size() < static_cast<size_t>(wanted);
  // What was lost before the job got on does not count.
  if (attempt.last_checkpoint > 0) job.losses = 0;
  if (!moves && blame == Blame::kCrash) ++job.crashes;
  if (!moves && blame == Blame::kMachine && job.losses++ == 0) {
    job.first_loss_ms = clock_.WallMs();
    entry.first_loss_ms = SteadyMs();
  }
  job.outcome = moves || needs_all || needs_more ? OkStatus() : WhyFinal(entry, blame, cause);
  bool moved = false;
  if (job.outcome.ok()) {
    job.workers.clear();
    job.worker_names.clear();
    const bool is_failure = blame == Blame::kCrash || blame == Blame::kMachine;
    const int64_t pause_ns = is_failure && !moves ? PauseNs(job.crashes + job.losses) : 0;
    std::string reason = moves ? fmt::format("goes on elsewhere: {}", attempt.moves)
                               : fmt::format("attempt {} ended: {}", job.attempt, cause.message());
    if (needs_more) reason += fmt::format("; it had {} bytes, by its plans, and gets more", plan_bytes);
    if (pause_ns > 0) reason += fmt::format("; the next one starts in {}", Duration(pause_ns / kNsPerMs));
    moved = Move(entry, JobState::kRecovering, reason);
    if (moved) entry.not_before_ns = Now() + pause_ns;
  } else {
    job.statistics = attempt.Statistics();
    moved = Move(entry, JobState::kFailed, cause.message());
  }
  if (!moved) {
    before.specification = std::move(job.specification);
    before.specification.plan_bytes = plan_bytes;
    job = std::move(before);
    return false;
  }
  if (blame == Blame::kCheckpoint && !moves) DropCheckpoint(entry);
  entry.needs_all = entry.needs_all || needs_all;
  if (blame == Blame::kCrash) ++counts_.crashes;
  if (blame == Blame::kMachine) ++counts_.losses;
  for (const std::string& uuid : attempt.broken_workers()) ++entry.failures[uuid];
  return true;
}

// The outcome of a job whose attempt failed, or Ok when it is started again. A machine that is lost says
// nothing about the job, so that only time ends that; a crash may well come from what the job does.
Status MasterCore::WhyFinal(const Entry& entry, Blame blame, const Status& cause) const {
  const Job& job = entry.job;
  switch (blame) {
    case Blame::kScript: return cause;
    case Blame::kCheckpoint: return OkStatus();
    case Blame::kCrash:
      if (job.crashes < options_.most_crashes) return OkStatus();
      return cause.WithNote(fmt::format("the job was started {} times; {} attempts broke by themselves",
                                        job.attempt, job.crashes));
    case Blame::kMachine: break;
  }
  const int64_t since_ms = SteadyMs() - entry.first_loss_ms;
  if (since_ms < job.specification.retry_for_ms) return OkStatus();
  return cause.WithNote(
      fmt::format("machines or processes were lost {} within {}; the job is given up after --retry-for {}",
                  Times(job.losses), Duration(since_ms), Duration(job.specification.retry_for_ms)));
}

// When a job that has lost machines and waits for others is given up; kNever for all other jobs.
int64_t MasterCore::GivesUpAtMs(const Entry& entry) const {
  const Job& job = entry.job;
  const bool waits = entry.attempt == nullptr && job.state == JobState::kRecovering && job.losses > 0;
  if (!waits) return Membership::kNever;
  // Workers need a moment to find a master that has just been started.
  return std::max(entry.first_loss_ms + job.specification.retry_for_ms,
                  started_ms_ + 2 * options_.ttl_ns / kNsPerMs);
}

// When a job has to be finished; kNever without a deadline.
int64_t MasterCore::EndsByMs(const Entry& entry) {
  const int64_t deadline_ms = entry.job.specification.deadline_ms;
  return deadline_ms > 0 ? entry.submitted_ms + deadline_ms : Job::kNever;
}

Status MasterCore::DeadlineOver(const Job& job) {
  return Status(StatusCode::kDeadlineExceeded,
                fmt::format("the job was not finished {} after it was submitted, as its deadline says",
                            Duration(job.specification.deadline_ms)))
      .WithNote("a job gets more time with --deadline, and comes first with --priority");
}

// The end of a job that waits and whose time is over. Tried again when it could not be stored.
void MasterCore::GiveUp(Entry& entry) {
  Job& job = entry.job;
  if (SteadyMs() >= EndsByMs(entry)) {
    job.outcome = DeadlineOver(job);
    if (!job.reason.empty()) job.outcome = job.outcome.WithNote(fmt::format("it still {}", job.reason));
  } else {
    job.outcome = Unavailable("machines or processes were lost {} and no attempt ended in {}",
                              Times(job.losses), Duration(job.specification.retry_for_ms))
                      .WithNote(fmt::format("the last word: {}", job.reason))
                      .WithNote("a job is started again for a longer time with --retry-for");
  }
  if (Move(entry, JobState::kFailed, job.outcome.message())) {
    job.specification.DropProgram();
  } else {
    job.outcome = OkStatus();
    entry.give_up_not_before_ms = SteadyMs() + kStoreRetryNs / kNsPerMs;
  }
  Index(entry);
}

// Jobs whose deadline has passed, and those that nobody will start again.
void MasterCore::EndDue() {
  while (!due_.empty() && due_.begin()->first <= SteadyMs()) {
    Entry& entry = entries_.find(due_.begin()->second)->second;
    if (entry.attempt == nullptr) {
      GiveUp(entry);
    } else {
      Stop(entry, DeadlineOver(entry.job));
      Index(entry);
      Advance(entry);
    }
  }
}

}  // namespace heddle::cluster

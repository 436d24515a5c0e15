// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "cluster/master/master_core.h"
#include "cluster/security/token.h"
#include "core/environment/log.h"

// From a waiting job to executors, and from executors to an outcome.
namespace heddle::cluster {
namespace {

constexpr int64_t kStoreRetryNs = 1'000'000'000;  // The disk may be full for a while.
constexpr int kFailuresThatExclude = 2;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLeastSilenceMs = 3'000;  // A busy machine may keep an executor waiting.

bool TakesJobs(const Worker& worker) { return worker.state == WorkerState::kAlive && !worker.drained; }

// A worker that does not say how much it has takes every job.
bool HasMemory(const Worker& worker, int64_t bytes) {
  return worker.description.memory_bytes == 0 || worker.description.memory_bytes >= bytes;
}

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

void LimitMemory(const Worker& worker, engine::SessionOptions* options) {
  const int64_t limit = worker.description.memory_bytes;
  if (limit > 0 && (options->memory_bytes == 0 || limit < options->memory_bytes))
    options->memory_bytes = limit;
}

}  // namespace

void MasterCore::Schedule() {
  schedule_again_ns_ = Membership::kNever;
  const int64_t now_ns = clock_.MonotonicNs();
  const Staff staff = PresentStaff();
  std::set<const Worker*> kept;  // for jobs that have waited long enough
  for (auto& [id, entry] : entries_) {
    const bool waits = entry.attempt == nullptr &&
                       (entry.job.state == JobState::kQueued || entry.job.state == JobState::kRecovering);
    if (!waits || GiveUp(entry) || Now() < entry.not_before_ns) continue;
    const Choice choice = Choose(entry, staff, kept);
    if (choice.why_not.empty()) {
      entry.waits_since_ns = Membership::kNever;
      if (!Admit(entry, choice.workers)) return;  // the store: nobody else would fare better
      continue;
    }
    SetReason(entry, choice.why_not);
    // Only waiting for workers that are here counts: the job could have had them.
    if (!choice.busy)
      entry.waits_since_ns = Membership::kNever;
    else if (entry.waits_since_ns == Membership::kNever)
      entry.waits_since_ns = now_ns;
    else if (now_ns - entry.waits_since_ns >= options_.overtaking_ns)
      kept.insert(choice.workers.begin(), choice.workers.end());
  }
}

Status MasterCore::CheckCanStart(const JobSpecification& specification) const {
  if (specification.workers_wanted > options_.most_workers)
    return ResourceExhausted("the job wants {} workers; this master gives a job {} at most",
                             specification.workers_wanted, options_.most_workers)
        .WithNote("submit it with fewer: --workers N");
  const int64_t wanted = specification.options.memory_bytes;
  int64_t largest = 0;
  for (const auto& [uuid, worker] : membership_.workers()) {
    if (HasMemory(worker, wanted)) return OkStatus();
    largest = std::max(largest, worker.description.memory_bytes);
  }
  if (largest == 0) return OkStatus();  // nobody knows what workers there will be
  return ResourceExhausted("the job asks for {} bytes of memory on a worker; the largest worker has {}",
                           wanted, largest)
      .WithNote("submit it with less: --memory SIZE");
}

MasterCore::Staff MasterCore::PresentStaff() const {
  Staff staff;
  for (const auto& [uuid, worker] : membership_.workers()) {
    if (worker.awaited && worker.state != WorkerState::kLost && !worker.drained) staff.awaited = &worker;
    if (TakesJobs(worker))
      staff.workers.push_back(&worker);
    else if (worker.state == WorkerState::kAlive)
      ++staff.drained;
  }
  std::sort(staff.workers.begin(), staff.workers.end(), [](const Worker* a, const Worker* b) {
    return std::tie(a->description.name, a->description.uuid) <
           std::tie(b->description.name, b->description.uuid);
  });
  for (const Worker* worker : staff.workers)
    staff.largest_bytes = std::max(staff.largest_bytes, worker->description.memory_bytes);
  return staff;
}

MasterCore::Choice MasterCore::Choose(const Entry& entry, const Staff& staff,
                                      const std::set<const Worker*>& kept) const {
  Choice choice;
  const int64_t memory_bytes = entry.job.specification.options.memory_bytes;
  const auto wanted = static_cast<size_t>(entry.job.specification.workers_wanted);
  const size_t least = std::max<size_t>(1, wanted);
  const size_t alive = staff.workers.size();
  if (wanted == 0 && staff.awaited != nullptr) {
    choice.why_not = fmt::format("waits for worker {}, which was here before the master was away",
                                 staff.awaited->description.name);
    return choice;
  }
  if (alive == 0) {
    choice.why_not = staff.drained == 0
                         ? "waits: no worker is alive; 'heddle worker' starts one"
                         : "waits: every worker is drained; 'heddle admin undrain' gives one jobs again";
    return choice;
  }
  if (alive < least) {
    choice.why_not = fmt::format("waits for {} workers; {} alive", wanted,
                                 alive == 1 ? "1 is" : fmt::format("{} are", alive));
    if (staff.drained > 0) choice.why_not += fmt::format(" and {} drained", staff.drained);
    return choice;
  }
  // Those that are free first, each kind by name: what is kept for a job while it waits does not change by
  // itself. Workers on which it failed come last of all.
  std::vector<const Worker*> free, busy, bad;
  for (const Worker* worker : staff.workers) {
    if (!HasMemory(*worker, memory_bytes)) continue;
    const auto failures = entry.failures.find(worker->description.uuid);
    if (failures != entry.failures.end() && failures->second >= kFailuresThatExclude)
      bad.push_back(worker);
    else
      (worker->job.empty() && !kept.contains(worker) ? free : busy).push_back(worker);
  }
  const size_t able = free.size() + busy.size() + bad.size();
  if (able < least) {
    choice.why_not =
        fmt::format("waits for {} worker{} with {} bytes of memory; the largest that is alive has {}", least,
                    least == 1 ? "" : "s", memory_bytes, staff.largest_bytes);
    return choice;
  }
  if (free.size() + busy.size() < least)  // there are no others
    for (const Worker* worker : std::exchange(bad, {}))
      (worker->job.empty() && !kept.contains(worker) ? free : busy).push_back(worker);
  const size_t needed = wanted == 0 ? free.size() + busy.size() : wanted;
  choice.workers = std::move(free);
  if (choice.workers.size() < needed) {
    choice.busy = true;
    const Worker* first = busy.front();
    choice.why_not = first->job.empty() ? "waits: workers are kept for a job that has waited longer"
                                        : fmt::format("waits: workers are busy with job {}", first->job);
    choice.workers.insert(choice.workers.end(), busy.begin(), busy.end());
  }
  choice.workers.resize(needed);
  return choice;
}

bool MasterCore::Admit(Entry& entry, const std::vector<const Worker*>& chosen) {
  Job& job = entry.job;
  const Job before = job;
  ++job.attempt;
  // Also above those of a store that was lost: a worker may still run an attempt of that one.
  job.epoch = std::max(last_epoch_ + 1, clock_.WallMs());
  job.workers.clear();
  job.worker_names.clear();
  for (const Worker* worker : chosen) {
    job.workers.push_back(worker->description.uuid);
    job.worker_names.push_back(worker->description.name);
  }
  if (!Move(entry, JobState::kAdmitted, "has its workers")) {
    job = before;
    SetReason(entry, "waits: the master cannot write to its job store");
    schedule_again_ns_ = Now() + kStoreRetryNs;
    return false;
  }
  last_epoch_ = job.epoch;
  Move(entry, JobState::kStarting, "executors are being started");
  entry.attempt = std::make_unique<JobAttempt>(job, MakeToken(), /*restored=*/false);
  for (size_t rank = 0; rank < job.workers.size(); ++rank) {
    membership_.Find(job.workers[rank])->job = job.id;
    Order(entry, rank, WorkerOrder::Kind::kStart).message = StartMessage(entry, rank);
  }
  return true;
}

LauncherMessage MasterCore::StartMessage(const Entry& entry, size_t rank) const {
  const Job& job = entry.job;
  LauncherMessage message;
  message.start.emplace();
  ExecutorStart& start = *message.start;
  start.job = job.id;
  start.attempt = job.attempt;
  start.epoch = job.epoch;
  start.token = entry.attempt->token();
  start.silence_ms = std::max(options_.ttl_ns / kNsPerMs, kLeastSilenceMs);
  start.owner = job.specification.owner;
  start.program = job.specification.program;
  start.directory = job.specification.directory;
  start.roots = RootsOf(job.specification);
  start.options = job.specification.options;
  start.options.rank = static_cast<int>(rank);
  start.options.ranks = static_cast<int>(job.workers.size());
  if (start.options.ranks != job.specification.options.ranks)
    start.options.plans.clear();  // made for other ranks
  // Plans depend on the budget, so that it must be the same on every rank: the smallest.
  for (const std::string& uuid : job.workers) {
    const auto found = membership_.workers().find(uuid);
    if (found != membership_.workers().end()) LimitMemory(found->second, &start.options);
  }
  return message;
}

ops::FileRoots MasterCore::RootsOf(const JobSpecification& specification) const {
  ops::FileRoots roots;
  roots.own_folders = ops::FileRoots::OwnFolders::kClosed;
  roots.is_job = true;
  roots.named = specification.data_roots;
  roots.arguments = specification.named_paths;
  roots.of_master = options_.data_roots;
  roots.closed = options_.closed_paths;
  return roots;
}

engine::SessionOptions MasterCore::ExpectedOptions(const JobSpecification& specification) const {
  engine::SessionOptions options = specification.options;
  int alive = 0;
  int threads = options.threads;
  for (const auto& [uuid, worker] : membership_.workers()) {
    if (!TakesJobs(worker) || !HasMemory(worker, specification.options.memory_bytes)) continue;
    ++alive;
    const int theirs = worker.description.threads;
    if (options.threads <= 0) threads = threads <= 0 ? theirs : std::min(threads, theirs);
    LimitMemory(worker, &options);
  }
  options.ranks = specification.workers_wanted > 0 ? specification.workers_wanted : std::max(1, alive);
  options.constants = ops::OrBuiltIn(options.constants, threads);
  return options;
}

// The caller adds what belongs to an order of its kind.
WorkerOrder& MasterCore::Order(const Entry& entry, size_t rank, WorkerOrder::Kind kind) {
  WorkerOrder& order = orders_.emplace_back();
  order.worker = entry.attempt->members()[rank].worker;
  order.job = entry.job.id;
  order.attempt = entry.job.attempt;
  order.kind = kind;
  return order;
}

// An executor of which the master knows nothing (any more).
void MasterCore::OrderForget(const std::string& uuid, const ExecutorNews& news) {
  WorkerOrder& order = orders_.emplace_back();
  order.worker = uuid;
  order.job = news.job;
  order.attempt = news.attempt;
  order.kind = WorkerOrder::Kind::kForget;
}

// Does what the news of an attempt call for.
void MasterCore::Advance(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
  if (attempt.restored && attempt.AllReported()) {
    attempt.restored = false;
    attempt.deadline_ns = Membership::kNever;
    if (!attempt.stop.ok()) {
      const Status why = std::exchange(attempt.stop, OkStatus());
      Stop(entry, why);
    } else if (!attempt.HasFailed() && !attempt.AllReady() && !attempt.AllEnded()) {
      Move(entry, JobState::kStarting, "its executors are still there");
    }
  }
  if (attempt.HasFailed() && attempt.stop.ok())
    Stop(entry, Cancelled("another executor failed: {}", attempt.Cause().message()));
  if (!attempt.restored && attempt.stop.ok() && !attempt.peers_sent && attempt.AllReady()) {
    attempt.peers_sent = true;
    for (size_t rank = 0; rank < attempt.members().size(); ++rank)
      Order(entry, rank, WorkerOrder::Kind::kPeers).message.peers = attempt.Peers();
    if (entry.job.state == JobState::kAdmitted) Move(entry, JobState::kStarting, "executors are ready");
    const size_t ranks = attempt.members().size();
    if (entry.job.state != JobState::kAdmitted)
      Move(entry, JobState::kRunning, fmt::format("on {} worker{}", ranks, ranks == 1 ? "" : "s"));
  }
  if (attempt.AllDone() && attempt.stop.ok() && !attempt.AllEnded() &&
      attempt.deadline_ns == Membership::kNever)
    attempt.deadline_ns = Now() + options_.grace_ns;
  if (attempt.AllEnded()) Finish(entry);
}

void MasterCore::Stop(Entry& entry, const Status& why) {
  JobAttempt& attempt = *entry.attempt;
  attempt.stop = why;
  if (!attempt.restored) attempt.deadline_ns = Now() + options_.grace_ns;
  for (size_t rank = 0; rank < attempt.members().size(); ++rank)
    if (!attempt.members()[rank].ended) Order(entry, rank, WorkerOrder::Kind::kCancel).message.cancel = why;
}

void MasterCore::Kill(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
  attempt.killed = true;
  for (size_t rank = 0; rank < attempt.members().size(); ++rank)
    if (!attempt.members()[rank].ended) Order(entry, rank, WorkerOrder::Kind::kKill);
}

void MasterCore::Finish(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
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
  } else {
    moved = FinishFailed(entry);
  }
  if (!moved) {
    attempt.deadline_ns = Now() + kStoreRetryNs;
    return;
  }
  for (size_t rank = 0; rank < attempt.members().size(); ++rank) {
    Order(entry, rank, WorkerOrder::Kind::kForget);
    Worker* worker = membership_.Find(attempt.members()[rank].worker);
    if (worker != nullptr && worker->job == job.id) worker->job.clear();
  }
  entry.attempt.reset();
  if (IsFinal(job.state)) job.specification.DropProgram();
}

// After an attempt that failed: the next one, or the end of the job. False when it could not be stored;
// nothing has changed then.
bool MasterCore::FinishFailed(Entry& entry) {
  const JobAttempt& attempt = *entry.attempt;
  Job& job = entry.job;
  JobSpecification specification = std::move(job.specification);  // Large, and never changes.
  Job before = job;
  job.specification = std::move(specification);
  const Status cause = attempt.Cause();
  const Blame blame = attempt.BlameOfCause();
  if (blame == Blame::kCrash) ++job.crashes;
  if (blame == Blame::kMachine && job.losses++ == 0) job.first_loss_ms = clock_.WallMs();
  job.outcome = WhyFinal(job, blame, cause);
  bool moved = false;
  if (job.outcome.ok()) {
    job.workers.clear();
    job.worker_names.clear();
    const int64_t pause_ns = PauseNs(job.crashes + job.losses);
    std::string reason = fmt::format("attempt {} ended: {}", job.attempt, cause.message());
    if (pause_ns > 0) reason += fmt::format("; the next one starts in {}", Duration(pause_ns / kNsPerMs));
    moved = Move(entry, JobState::kRecovering, reason);
    if (moved) entry.not_before_ns = Now() + pause_ns;
  } else {
    job.statistics = attempt.Statistics();
    moved = Move(entry, JobState::kFailed, cause.message());
  }
  if (!moved) {
    before.specification = std::move(job.specification);
    job = std::move(before);
    return false;
  }
  for (const std::string& uuid : attempt.broken_workers()) ++entry.failures[uuid];
  return true;
}

// The outcome of a job whose attempt failed, or Ok when it is started again. A machine that is lost says
// nothing about the job, so that only time ends that; a crash may well come from what the job does.
Status MasterCore::WhyFinal(const Job& job, Blame blame, const Status& cause) const {
  switch (blame) {
    case Blame::kScript: return cause;
    case Blame::kCrash:
      if (job.crashes < options_.most_crashes) return OkStatus();
      return cause.WithNote(fmt::format("the job was started {} times; {} attempts broke by themselves",
                                        job.attempt, job.crashes));
    case Blame::kMachine: break;
  }
  const int64_t since_ms = clock_.WallMs() - job.first_loss_ms;
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
  return std::max(job.first_loss_ms + job.specification.retry_for_ms,
                  started_ms_ + 2 * options_.ttl_ns / kNsPerMs);
}

// True when the time of the job is over, whether its end could be stored or not.
bool MasterCore::GiveUp(Entry& entry) {
  if (clock_.WallMs() < GivesUpAtMs(entry)) return false;
  Job& job = entry.job;
  job.outcome = Unavailable("machines or processes were lost {} and no attempt ended in {}",
                            Times(job.losses), Duration(job.specification.retry_for_ms))
                    .WithNote(fmt::format("the last word: {}", job.reason))
                    .WithNote("a job is started again for a longer time with --retry-for");
  if (Move(entry, JobState::kFailed, job.outcome.message())) {
    job.specification.DropProgram();
  } else {
    job.outcome = OkStatus();
    entry.not_before_ns = Now() + kStoreRetryNs;
  }
  return true;
}

}  // namespace heddle::cluster

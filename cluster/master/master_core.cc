// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_core.h"

#include <algorithm>

#include "cluster/executor/fresh_output.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kBeatsInLease = 8;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kMostPlanBytes = int64_t{8} << 20;  // of jobs that have not ended
constexpr int kFinishedUntilPruned = 64;

}  // namespace

MasterCore::MasterCore(JobStore& store, Clock& clock, const MasterCoreOptions& options)
    : store_(store),
      clock_(clock),
      options_(options),
      beats_(clock, options.ttl_ns / kBeatsInLease),
      membership_(options.ttl_ns) {}

Status MasterCore::Start() {
  started_ms_ = clock_.WallMs();
  started_ns_ = clock_.MonotonicNs();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KnownWorker> drained, store_.Drained());
  for (const KnownWorker& worker : drained) drained_[worker.uuid] = worker.name;
  HEDDLE_ASSIGN_OR_RETURN(identity_, store_.Identity());
  HEDDLE_ASSIGN_OR_RETURN(last_job_, store_.LastJob());
  HEDDLE_ASSIGN_OR_RETURN(last_epoch_, store_.LastEpoch());
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KnownWorker> here, store_.Here());
  for (const KnownWorker& worker : here) {
    here_.insert(worker.uuid);
    membership_.Await(worker.uuid, worker.name, Now());
    membership_.Find(worker.uuid)->drained = drained_.contains(worker.uuid);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<UserUsage> usage, store_.Usage());
  for (const UserUsage& user : usage) {
    const double seconds = static_cast<double>(started_ms_ - user.time_ms) / 1e3;
    shares_.Restore(user.user, FairShare::Faded(static_cast<double>(user.core_ms) / 1e3, seconds),
                    clock_.MonotonicNs());
  }
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_.Load());
  for (Job& job : jobs) {
    const std::string id = job.id;
    Entry& entry = entries_[id];
    entry.job = std::move(job);
    entry.submitted_ms = std::min(entry.job.submitted_ms, started_ms_);
    entry.first_loss_ms = std::min(entry.job.first_loss_ms, started_ms_);
    if (entry.job.specification.owner.empty()) entry.job.specification.owner = options_.first_owner;
    HEDDLE_RETURN_IF_ERROR(Restore(entry));
    Index(entry);
    if (IsFinal(entry.job.state) && !entry.job.checkpoints.empty()) RemoveCheckpoints(entry);
  }
  Schedule();
  return OkStatus();
}

Status MasterCore::Restore(Entry& entry) {
  Job& job = entry.job;
  if (IsFinal(job.state)) return OkStatus();
  if (job.state == JobState::kQueued || (job.state == JobState::kRecovering && job.workers.empty()))
    return OkStatus();
  entry.attempt = std::make_unique<JobAttempt>(job, /*token=*/"", /*restored=*/true);
  entry.attempt->deadline_ns = Now() + 2 * options_.ttl_ns;
  Charge(job, /*begins=*/true);
  if (job.state == JobState::kCancelling) {
    entry.attempt->stop = Cancelled("the job was cancelled");
  } else if (job.state != JobState::kRecovering) {
    return store_.Move(&job, JobState::kRecovering,
                       "the master was restarted; it waits for the workers of this job");
  }
  return OkStatus();
}

bool MasterCore::Move(Entry& entry, JobState state, const std::string& reason) {
  const Status status = store_.Move(&entry.job, state, reason);
  store_status_ = status;
  if (!status.ok()) {
    HEDDLE_LOG(kError, "transition not stored", {"job", entry.job.id}, {"state", Name(state)},
               {"error", status});
    HEDDLE_CHECK(status.code() != StatusCode::kInternal, "the master only makes legal transitions");
    return false;
  }
  HEDDLE_LOG(kInfo, "job", {"job", entry.job.id}, {"state", Name(state)}, {"attempt", entry.job.attempt},
             {"reason", reason});
  entry.job.is_held_up = false;
  changed_.push_back(entry.job.id);
  if (IsFinal(state)) {
    ++counts_.finished[std::string(Name(state))];
    ++unpruned_;
    RemoveCheckpoints(entry);
  }
  return true;
}

void MasterCore::SetReason(Entry& entry, const std::string& reason) {
  if (entry.job.reason == reason) return;
  entry.job.reason = reason;
  changed_.push_back(entry.job.id);
}

Result<const Job*> MasterCore::Submit(const JobSpecification& specification, const std::string& sources) {
  HEDDLE_RETURN_IF_ERROR(CheckCanStart(specification));
  HEDDLE_RETURN_IF_ERROR(MayQueue(specification));
  bool existed = false;
  HEDDLE_ASSIGN_OR_RETURN(Job job, store_.Add(specification, &existed));
  const std::string id = job.id;
  if (!existed) {
    Entry& entry = entries_[id];
    last_job_ = std::max(last_job_, NumberOfJob(id));
    entry.job = std::move(job);
    entry.submitted_ms = SteadyMs();
    entry.job.specification.program = std::string();  // in the store until the job starts
    int64_t plan_bytes = 0;
    for (const std::string& plan : specification.options.plans)
      plan_bytes += static_cast<int64_t>(plan.size());
    if (plan_bytes_ + plan_bytes > kMostPlanBytes)  // its executors make them
      entry.job.specification.DropProgram();
    Index(entry);
    changed_.push_back(id);
    ++counts_.submitted;
    KeepFile(id, {.kind = JobFileKind::kSources, .bytes = sources});
    if (unpruned_ > 0) Prune();
    Schedule();
    Entry& queued = entries_.find(id)->second;
    if (queued.waiting && queued.job.reason.empty()) SetReason(queued, "waits for its turn");
  }
  return Find(id);
}

// Finished jobs that are remembered take memory and room on the disk.
void MasterCore::Prune() {
  unpruned_ = 0;
  const Result<std::vector<std::string>> pruned = store_.Prune();
  if (!pruned.ok()) {  // tried again when more have finished
    HEDDLE_LOG(kWarning, "old jobs not removed", {"error", pruned.status()});
    return;
  }
  for (const std::string& old : *pruned) entries_.erase(old);
}

Result<const Job*> MasterCore::Find(const std::string& job) const {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return NoJob(job);
  return &found->second.job;
}

// A copy: they may end on the way.
std::vector<MasterCore::Entry*> MasterCore::Active() {
  std::vector<Entry*> active;
  for (const std::string& id : active_) active.push_back(&entries_.find(id)->second);
  return active;
}

Status MasterCore::NoJob(const std::string& job) {
  return NotFound("there is no job '{}'", job).WithNote("'heddle job list' lists the jobs");
}

std::vector<const Job*> MasterCore::Jobs() const {
  std::vector<const Job*> jobs;
  for (const auto& [id, entry] : entries_) jobs.push_back(&entry.job);
  return jobs;
}

Status MasterCore::Cancel(const std::string& job) {
  HEDDLE_RETURN_IF_ERROR(Find(job).status());
  Entry& entry = entries_.find(job)->second;
  if (IsFinal(entry.job.state) || entry.job.state == JobState::kCancelling) return OkStatus();
  const Status why = Cancelled("the job was cancelled");
  if (entry.attempt == nullptr) {
    entry.job.outcome = why;
    if (!Move(entry, JobState::kCancelled, why.message())) {
      entry.job.outcome = OkStatus();
      return ResourceExhausted("the master cannot write to its job store");
    }
    entry.job.specification.DropProgram();
    Index(entry);
    Schedule();
    return OkStatus();
  }
  if (!Move(entry, JobState::kCancelling, why.message()))
    return ResourceExhausted("the master cannot write to its job store");
  Stop(entry, why);
  Index(entry);
  Advance(entry);
  return OkStatus();
}

Result<KnownWorker> MasterCore::FindWorker(const std::string& node) const {
  std::map<std::string, std::string> found(drained_);  // name by uuid
  for (const auto& [uuid, worker] : membership_.workers()) found[uuid] = worker.description.name;
  std::erase_if(found, [&](const auto& worker) { return worker.first != node && worker.second != node; });
  if (found.empty())
    return NotFound("there is no worker '{}'", node).WithNote("'heddle admin nodes' lists the workers");
  if (found.size() > 1)
    return Usage("{} workers are called '{}'", found.size(), node)
        .WithNote("name one by its uuid: heddle admin nodes --json");
  return KnownWorker{found.begin()->first, found.begin()->second};
}

Result<KnownWorker> MasterCore::Drain(const std::string& node, bool drained) {
  HEDDLE_ASSIGN_OR_RETURN(const KnownWorker worker, FindWorker(node));
  HEDDLE_RETURN_IF_ERROR(store_.SetDrained(worker, drained));
  if (drained)
    drained_[worker.uuid] = worker.name;
  else
    drained_.erase(worker.uuid);
  if (Worker* here = membership_.Find(worker.uuid)) here->drained = drained;
  HEDDLE_LOG(kInfo, drained ? "worker drained" : "worker undrained", {"worker", worker.name});
  Schedule();
  return worker;
}

// Time as the master counts it: the part of it in which it was awake.
int64_t MasterCore::Now() {
  const bool waited = NextEvent() != Membership::kNever;
  if (beats_.Count() && waited) {
    HEDDLE_LOG(kWarning, "the master was stopped for a while", {"leases", "begin anew"});
    membership_.RenewAll(beats_.now_ns());
  }
  return beats_.now_ns();
}

Status MasterCore::MayConnect(const WorkerDescription& description) const {
  const auto here = membership_.workers().find(description.uuid);
  if (here != membership_.workers().end() && here->second.description.instance == description.instance &&
      here->second.description.connection > description.connection)
    return Aborted("a later connection of this worker came first");
  return membership_.MayRegister(description);
}

// For the next master. Without the note it does not wait for that worker, that is all.
void MasterCore::SetHere(const KnownWorker& worker, bool here) {
  if (here_.contains(worker.uuid) == here) return;
  const Status status = store_.SetHere(worker, here);
  if (!status.ok()) {
    HEDDLE_LOG(kWarning, "worker not noted", {"worker", worker.name}, {"error", status});
  } else if (here) {
    here_.insert(worker.uuid);
  } else {
    here_.erase(worker.uuid);
  }
}

void MasterCore::WorkerConnected(const WorkerDescription& description,
                                 const std::vector<ExecutorNews>& executors) {
  const std::string& uuid = description.uuid;
  const bool replaced = membership_.Register(description, Now());
  SetHere({uuid, description.name}, true);
  HEDDLE_LOG(kInfo, "worker connected", {"worker", description.name}, {"host", description.host},
             {"pid", description.pid}, {"executors", executors.size()});
  for (const ExecutorNews& news : executors) {
    const auto found = entries_.find(news.job);
    if (found == entries_.end() || !IsCurrent(found->second, news)) OrderForget(uuid, news);
  }
  membership_.Find(uuid)->shares.clear();
  membership_.Find(uuid)->drained = drained_.contains(uuid);
  for (Entry* entry : Active()) Reconcile(*entry, uuid, executors, replaced);
  RepeatRemovals(uuid);
  Schedule();
}

// Compares what a worker runs with what it should run for one job.
void MasterCore::Reconcile(Entry& entry, const std::string& uuid, const std::vector<ExecutorNews>& executors,
                           bool replaced) {
  JobAttempt& attempt = *entry.attempt;
  bool concerned = false;
  for (size_t rank = 0; rank < attempt.members().size(); ++rank) {
    JobAttempt::Member& member = attempt.members()[rank];
    if (member.worker != uuid) continue;
    concerned = true;
    const auto news = std::find_if(executors.begin(), executors.end(), [&](const ExecutorNews& one) {
      return one.job == entry.job.id && IsCurrent(entry, one) && one.rank == static_cast<int>(rank);
    });
    if (news != executors.end()) {
      if (!member.ended) Reserve(entry, rank);
      attempt.Report(*news);
      Repeat(entry, rank);
    } else if (replaced || attempt.restored || member.reported) {
      attempt.Lose(rank, "was lost: its worker was restarted");
    } else if (!member.ended) {
      const Result<JobSpecification> stored = store_.Specification(entry.job.id);
      if (!stored.ok()) {
        attempt.Lose(rank, fmt::format("was not started: {}", stored.status().message()));
        continue;
      }
      Reserve(entry, rank);
      Order(entry, rank, WorkerOrder::Kind::kStart).message = StartMessage(entry, rank, stored->program);
    }
  }
  if (concerned) Advance(entry);
}

// A transition that failed may have been the last for a long time.
const Status& MasterCore::CheckStore() {
  if (!store_status_.ok()) store_status_ = store_.CheckWritable();
  return store_status_;
}

// What a worker may have missed while it was not connected.
void MasterCore::Repeat(Entry& entry, size_t rank) {
  JobAttempt& attempt = *entry.attempt;
  if (rank == 0) Order(entry, rank, WorkerOrder::Kind::kOutputUntil).output_until = entry.job.output_bytes;
  if (rank == 0 && attempt.asked_checkpoint) AskCheckpoint(entry);
  if (attempt.peers_sent) Order(entry, rank, WorkerOrder::Kind::kPeers).message.peers = attempt.Peers();
  if (!attempt.stop.ok()) Order(entry, rank, WorkerOrder::Kind::kCancel).message.cancel = attempt.stop;
  if (attempt.killed) Order(entry, rank, WorkerOrder::Kind::kKill);
}

bool MasterCore::WorkerHeard(const std::string& uuid) {
  const Worker* worker = membership_.Find(uuid);
  const bool was_away = worker != nullptr && (worker->state == WorkerState::kSuspect || worker->awaited);
  const bool known = membership_.Heartbeat(uuid, Now());
  if (known && was_away) Schedule();
  return known;
}

void MasterCore::WorkerDisconnected(const std::string& uuid) { membership_.Disconnect(uuid, Now()); }

void MasterCore::WorkerLeft(const std::string& uuid) {
  membership_.Leave(uuid);
  LoseWorker(uuid, "was lost: its worker was ended");
  Schedule();
}

void MasterCore::LoseWorker(const std::string& uuid, const std::string& why) {
  if (Worker* worker = membership_.Find(uuid)) {
    worker->shares.clear();
    ++counts_.workers_lost;
    SetHere({uuid, worker->description.name}, false);
    HEDDLE_LOG(kWarning, "worker lost", {"worker", worker->description.name}, {"why", why});
  }
  RepeatRemovals(uuid);
  for (Entry* entry : Active()) {
    JobAttempt& attempt = *entry->attempt;
    bool concerned = false;
    for (size_t rank = 0; rank < attempt.members().size(); ++rank) {
      if (attempt.members()[rank].worker != uuid) continue;
      if (attempt.restored && !attempt.members()[rank].reported) continue;  // until its own end
      attempt.Lose(rank, why);
      concerned = true;
    }
    if (concerned) Advance(*entry);
  }
}

bool MasterCore::News(const std::string& uuid, const ExecutorNews& news) {
  if (!WorkerHeard(uuid)) return false;
  const auto found = entries_.find(news.job);
  const bool known = found != entries_.end() && IsCurrent(found->second, news) && news.rank >= 0 &&
                     news.rank < static_cast<int>(found->second.attempt->members().size()) &&
                     found->second.attempt->members()[static_cast<size_t>(news.rank)].worker == uuid;
  if (!known) {
    OrderForget(uuid, news);
    return true;
  }
  Entry& entry = found->second;
  if (!news.log.empty() || !news.progress.empty()) {  // comes alone, and changes nothing but what is shown
    if (!news.progress.empty()) entry.progress = news.progress;
    entry.attempt->Report(news);
    changed_.push_back(news.job);
    return true;
  }
  if (news.commit) AnswerCommit(entry, news);
  if (!news.output.empty() && news.rank == 0) TakeOutput(entry, news);
  if (!news.record.empty())
    KeepFile(news.job, {JobFileKind::kRecord, news.attempt, news.rank, 0, news.record});
  if (news.exit && !entry.attempt->members()[static_cast<size_t>(news.rank)].ended)
    ++counts_.executors_ended[news.exit->Kind()];
  entry.attempt->Report(news);
  TakeCheckpoint(entry);
  Advance(entry);
  if (unpruned_ >= kFinishedUntilPruned) Prune();
  Schedule();
  return true;
}

bool MasterCore::IsCurrent(const Entry& entry, const ExecutorNews& news) const {
  return entry.attempt != nullptr && entry.job.attempt == news.attempt && entry.job.epoch == news.epoch;
}

// The permission ends before the worker could be given up for lost, however slow its clock and its answer:
// it was heard of just now, and counts the time from before it asked.
void MasterCore::AnswerCommit(const Entry& entry, const ExecutorNews& news) {
  const JobAttempt& attempt = *entry.attempt;
  const auto rank = static_cast<size_t>(news.rank);
  if (!attempt.stop.ok() || attempt.killed || attempt.members()[rank].ended) return;
  WorkerOrder& order = Order(entry, rank, WorkerOrder::Kind::kCommit);
  order.commit = *news.commit;
  order.valid_ns = options_.ttl_ns / 4 * 3;
  if (Worker* const worker = membership_.Find(attempt.members()[rank].worker))
    worker->permitted_ns = beats_.now_ns() + order.valid_ns;
}

// The attempts of a job print the same bytes, so that those of a later attempt that are here already are left
// out.
void MasterCore::TakeOutput(Entry& entry, const ExecutorNews& news) {
  const int64_t end = news.output_offset + static_cast<int64_t>(news.output.size());
  const std::string_view fresh = FreshOutput(entry.job.output_bytes, news.output_offset, news.output);
  if (!fresh.empty()) {
    const Status status = store_.AppendOutput(&entry.job, fresh);
    if (status.ok()) {
      counts_.output_bytes += static_cast<int64_t>(fresh.size());
      changed_.push_back(entry.job.id);
    } else {
      ExecutorNews failed;
      failed.rank = news.rank;
      failed.done.emplace();
      failed.done->status = status;
      failed.done->own_cause = true;
      entry.attempt->Report(failed);
    }
  }
  Order(entry, static_cast<size_t>(news.rank), WorkerOrder::Kind::kOutputUntil).output_until = end;
}

std::string MasterCore::WhyLost(const std::string& uuid) const {
  const auto worker = membership_.workers().find(uuid);
  const bool is_cut = worker != membership_.workers().end() && worker->second.disconnected_ns >= 0;
  return is_cut ? "was lost: its connection broke, and it did not come back"
                : fmt::format("was lost: nothing was heard of its machine for {} s",
                              static_cast<double>(options_.ttl_ns) / 1e9);
}

void MasterCore::Tick() {
  const int64_t now = Now();
  for (const std::string& uuid : membership_.Tick(now)) LoseWorker(uuid, WhyLost(uuid));
  for (Entry* entry : Active()) {
    JobAttempt& attempt = *entry->attempt;
    if (now < attempt.deadline_ns) continue;
    attempt.deadline_ns = Membership::kNever;
    if (attempt.restored) {
      for (size_t rank = 0; rank < attempt.members().size(); ++rank)
        if (!attempt.members()[rank].reported) attempt.Lose(rank, "was lost while the master was restarted");
      attempt.restored = false;
    } else if (!attempt.AllEnded()) {
      Kill(*entry);
    }
    Advance(*entry);
  }
  OrderRemovals();
  if (unpruned_ >= kFinishedUntilPruned) Prune();
  Schedule();
}

int64_t MasterCore::NextDeadline() const { return beats_.NextCount(NextEvent()); }

// Milliseconds that pass evenly, whoever sets the time of day: that of the start, and what has passed since.
int64_t MasterCore::SteadyMs() const {
  return started_ms_ + clock_.MonotonicNs() / kNsPerMs - started_ns_ / kNsPerMs;
}

// By counted time.
int64_t MasterCore::NextEvent() const {
  int64_t next = std::min({membership_.NextDeadline(), schedule_again_ns_, removals_due_ns_});
  for (const std::string& id : active_) next = std::min(next, entries_.find(id)->second.attempt->deadline_ns);
  if (!pauses_.empty()) next = std::min(next, pauses_.begin()->first);
  if (!due_.empty()) {
    const int64_t left_ms = std::max<int64_t>(0, due_.begin()->first - SteadyMs());
    if (left_ms < kLongestDeadlineMs) next = std::min(next, beats_.now_ns() + left_ms * kNsPerMs);
  }
  return next;
}

}  // namespace heddle::cluster

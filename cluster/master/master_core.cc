// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_core.h"

#include <algorithm>

#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kBeatsInLease = 8;
constexpr int64_t kNsPerMs = 1'000'000;

}  // namespace

MasterCore::MasterCore(JobStore& store, Clock& clock, const MasterCoreOptions& options)
    : store_(store),
      clock_(clock),
      options_(options),
      beats_(clock, options.ttl_ns / kBeatsInLease),
      membership_(options.ttl_ns) {}

Status MasterCore::Start() {
  started_ms_ = clock_.WallMs();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KnownWorker> drained, store_.Drained());
  for (const KnownWorker& worker : drained) drained_[worker.uuid] = worker.name;
  HEDDLE_ASSIGN_OR_RETURN(last_epoch_, store_.LastEpoch());
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KnownWorker> here, store_.Here());
  for (const KnownWorker& worker : here) {
    here_.insert(worker.uuid);
    membership_.Await(worker.uuid, worker.name, Now());
    membership_.Find(worker.uuid)->drained = drained_.contains(worker.uuid);
  }
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_.Load());
  for (Job& job : jobs) {
    const std::string id = job.id;
    Entry& entry = entries_[id];
    entry.job = std::move(job);
    if (entry.job.specification.owner.empty()) entry.job.specification.owner = options_.first_owner;
    HEDDLE_RETURN_IF_ERROR(Restore(entry));
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
  if (!status.ok()) {
    HEDDLE_LOG(kError, "transition not stored", {"job", entry.job.id}, {"state", Name(state)},
               {"error", status});
    HEDDLE_CHECK(status.code() != StatusCode::kInternal, "the master only makes legal transitions");
    return false;
  }
  HEDDLE_LOG(kInfo, "job", {"job", entry.job.id}, {"state", Name(state)}, {"attempt", entry.job.attempt},
             {"reason", reason});
  changed_.push_back(entry.job.id);
  return true;
}

void MasterCore::SetReason(Entry& entry, const std::string& reason) {
  if (entry.job.reason == reason) return;
  entry.job.reason = reason;
  changed_.push_back(entry.job.id);
}

Result<const Job*> MasterCore::Submit(const JobSpecification& specification) {
  HEDDLE_RETURN_IF_ERROR(CheckCanStart(specification));
  bool existed = false;
  HEDDLE_ASSIGN_OR_RETURN(Job job, store_.Add(specification, &existed));
  const std::string id = job.id;
  if (!existed) {
    entries_[id].job = std::move(job);
    changed_.push_back(id);
    const Result<std::vector<std::string>> pruned = store_.Prune();
    if (pruned.ok()) {
      for (const std::string& old : *pruned) entries_.erase(old);
    } else {  // tried again with the next job
      HEDDLE_LOG(kWarning, "old jobs not removed", {"error", pruned.status()});
    }
    Schedule();
  }
  return Find(id);
}

Result<const Job*> MasterCore::Find(const std::string& job) const {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return NoJob(job);
  return &found->second.job;
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
    Schedule();
    return OkStatus();
  }
  if (!Move(entry, JobState::kCancelling, why.message()))
    return ResourceExhausted("the master cannot write to its job store");
  Stop(entry, why);
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
  membership_.Find(uuid)->job.clear();
  membership_.Find(uuid)->drained = drained_.contains(uuid);
  for (auto& [id, entry] : entries_)
    if (entry.attempt != nullptr) Reconcile(entry, uuid, executors, replaced);
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
      if (!member.ended) membership_.Find(uuid)->job = entry.job.id;
      attempt.Report(*news);
      Repeat(entry, rank);
    } else if (replaced || attempt.restored || member.reported) {
      attempt.Lose(rank, "was lost: its worker was restarted");
    } else if (!member.ended) {
      membership_.Find(uuid)->job = entry.job.id;
      Order(entry, rank, WorkerOrder::Kind::kStart).message = StartMessage(entry, rank);
    }
  }
  if (concerned) Advance(entry);
}

// What a worker may have missed while it was not connected.
void MasterCore::Repeat(Entry& entry, size_t rank) {
  JobAttempt& attempt = *entry.attempt;
  if (rank == 0) Order(entry, rank, WorkerOrder::Kind::kOutputUntil).output_until = entry.job.output_bytes;
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

void MasterCore::WorkerDisconnected(const std::string& uuid) { membership_.Suspect(uuid); }

void MasterCore::WorkerLeft(const std::string& uuid) {
  membership_.Leave(uuid);
  LoseWorker(uuid, "was lost: its worker was ended");
  Schedule();
}

void MasterCore::LoseWorker(const std::string& uuid, const std::string& why) {
  if (Worker* worker = membership_.Find(uuid)) {
    worker->job.clear();
    SetHere({uuid, worker->description.name}, false);
    HEDDLE_LOG(kWarning, "worker lost", {"worker", worker->description.name}, {"why", why});
  }
  for (auto& [id, entry] : entries_) {
    if (entry.attempt == nullptr) continue;
    bool concerned = false;
    for (size_t rank = 0; rank < entry.attempt->members().size(); ++rank) {
      if (entry.attempt->members()[rank].worker != uuid) continue;
      if (entry.attempt->restored && !entry.attempt->members()[rank].reported) continue;  // until its own end
      entry.attempt->Lose(rank, why);
      concerned = true;
    }
    if (concerned) Advance(entry);
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
  if (news.commit) AnswerCommit(entry, news);
  if (!news.output.empty() && news.rank == 0) TakeOutput(entry, news);
  entry.attempt->Report(news);
  Advance(entry);
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
}

// The attempts of a job print the same bytes, so that those of a later attempt that are here already are left
// out.
void MasterCore::TakeOutput(Entry& entry, const ExecutorNews& news) {
  const int64_t end = news.output_offset + static_cast<int64_t>(news.output.size());
  const int64_t have = entry.job.output_bytes;
  if (end > have && news.output_offset <= have) {
    const std::string_view fresh =
        std::string_view(news.output).substr(static_cast<size_t>(have - news.output_offset));
    const Status status = store_.AppendOutput(&entry.job, fresh);
    if (status.ok()) {
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

void MasterCore::Tick() {
  const int64_t now = Now();
  for (const std::string& uuid : membership_.Tick(now))
    LoseWorker(uuid, fmt::format("was lost: nothing was heard of its machine for {} s",
                                 static_cast<double>(options_.ttl_ns) / 1e9));
  for (auto& [id, entry] : entries_) {
    if (entry.attempt == nullptr || now < entry.attempt->deadline_ns) continue;
    entry.attempt->deadline_ns = Membership::kNever;
    if (entry.attempt->restored) {
      for (size_t rank = 0; rank < entry.attempt->members().size(); ++rank)
        if (!entry.attempt->members()[rank].reported)
          entry.attempt->Lose(rank, "was lost while the master was restarted");
      entry.attempt->restored = false;
    } else if (!entry.attempt->AllEnded()) {
      Kill(entry);
    }
    Advance(entry);
  }
  Schedule();
}

int64_t MasterCore::NextDeadline() const { return beats_.NextCount(NextEvent()); }

// By counted time.
int64_t MasterCore::NextEvent() const {
  int64_t next = std::min(membership_.NextDeadline(), schedule_again_ns_);
  for (const auto& [id, entry] : entries_) {
    if (entry.attempt != nullptr) {
      next = std::min(next, entry.attempt->deadline_ns);
    } else if (entry.job.state == JobState::kRecovering) {
      if (entry.not_before_ns > beats_.now_ns()) next = std::min(next, entry.not_before_ns);
      const int64_t gives_up_ms = GivesUpAtMs(entry);
      if (gives_up_ms == Membership::kNever) continue;
      const int64_t left_ns = std::max<int64_t>(0, gives_up_ms - clock_.WallMs()) * kNsPerMs;
      next = std::min(next, std::max(beats_.now_ns() + left_ns, entry.not_before_ns));
    }
  }
  return next;
}

}  // namespace heddle::cluster

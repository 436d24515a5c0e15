// SPDX-License-Identifier: Apache-2.0
// What the master does about checkpoints: docs/recovery.md.
#include <algorithm>

#include "cluster/master/master_core.h"
#include "core/environment/log.h"
#include "core/hash.h"

namespace heddle::cluster {
namespace {

constexpr size_t kKeptCheckpoints = 2;
constexpr int64_t kRemovalPatienceNs = 60'000'000'000;  // for a worker's answer; then another one is asked
constexpr int kMostDoublings = 6;

bool IsOn(const JobAttempt& attempt, const std::string& uuid) {
  return std::any_of(attempt.members().begin(), attempt.members().end(),
                     [&](const JobAttempt::Member& member) { return member.worker == uuid; });
}

}  // namespace

// Of all checkpoints of a job. Another master may use the same place, and number its jobs alike.
std::string MasterCore::FolderOf(const Job& job) const {
  if (!job.checkpoints.empty()) {
    const std::string& name = job.checkpoints.front().name;
    return name.substr(0, name.find('/'));
  }
  return fmt::format("{}-{}-{:016x}", job.id, identity_, FoldHash(0, job.specification.request_id));
}

bool MasterCore::TakesCheckpoints(const Job& job) const {
  return !options_.checkpoints.empty() && job.specification.checkpoint_ms != ExecutorCheckpoints::kNever;
}

// Files are kept there also where no checkpoints are taken.
std::string MasterCore::CheckpointFolder(const Job& job) const {
  return options_.checkpoints.empty() && job.checkpoints.empty() ? "" : FolderOf(job);
}

// Of the attempt that begins.
ExecutorCheckpoints MasterCore::CheckpointsOf(const Job& job) const {
  ExecutorCheckpoints checkpoints;
  checkpoints.location = options_.checkpoints;
  checkpoints.folder = fmt::format("{}/{}", FolderOf(job), job.epoch);
  checkpoints.keeps_files = !checkpoints.location.empty();
  checkpoints.interval_ms = job.specification.checkpoint_ms;
  if (checkpoints.location.empty() || job.checkpoints.empty()) return checkpoints;
  checkpoints.resume = job.checkpoints.back().name;
  checkpoints.resume_ranks = job.checkpoints.back().ranks;
  checkpoints.printed = job.checkpoints.back().printed;
  return checkpoints;
}

// A job that goes on from a checkpoint does so with those that are there.
bool MasterCore::MayShrink(const Entry& entry) const {
  return !CheckpointsOf(entry.job).resume.empty() && !entry.needs_all;
}

// The latest checkpoint counts when all its parts are durable, and what was printed before it is here.
void MasterCore::TakeCheckpoint(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
  Job& job = entry.job;
  const int64_t number = attempt.LatestCheckpoint();
  if (number <= attempt.last_checkpoint) return;
  const engine::WrittenCheckpoint first = attempt.members()[0].checkpoints.at(number);
  if (first.printed > job.output_bytes) return;
  const JobCheckpoint taken = {.name = fmt::format("{}/{}-{}", FolderOf(job), job.epoch, number),
                               .ranks = static_cast<int>(attempt.members().size()),
                               .printed = first.printed,
                               .taken_ms = clock_.WallMs()};
  attempt.last_checkpoint = number;
  attempt.asked_checkpoint = false;
  for (JobAttempt::Member& member : attempt.members()) {
    member.checkpoints.erase(member.checkpoints.begin(), member.checkpoints.upper_bound(number));
    entry.failures.erase(member.worker);  // The job gets on there.
  }
  const bool is_known = std::any_of(job.checkpoints.begin(), job.checkpoints.end(),
                                    [&](const JobCheckpoint& known) { return known.name == taken.name; });
  if (!is_known) {  // a master that was restarted hears of it again
    const std::vector<JobCheckpoint> before = job.checkpoints;
    job.checkpoints.push_back(taken);
    CheckpointOrder order;
    while (job.checkpoints.size() > kKeptCheckpoints) {
      order.unneeded.push_back(job.checkpoints.front().name);
      job.checkpoints.erase(job.checkpoints.begin());
    }
    if (const Status stored = store_.SetCheckpoints(job); !stored.ok()) {
      HEDDLE_LOG(kWarning, "checkpoint not noted", {"job", job.id}, {"error", stored});
      job.checkpoints = before;
      return;
    }
    HEDDLE_LOG(kInfo, "checkpoint", {"job", job.id}, {"name", taken.name}, {"bytes", first.bytes});
    changed_.push_back(job.id);
    if (!order.unneeded.empty())
      this->Order(entry, 0, WorkerOrder::Kind::kCheckpoint).message.checkpoint = std::move(order);
  }
  if (!attempt.stop.ok() || attempt.restored) return;
  attempt.moves = WhyMove(entry);
  if (!attempt.moves.empty()) Stop(entry, Cancelled("the job goes on elsewhere: {}", attempt.moves));
}

// The last one is of no use.
void MasterCore::DropCheckpoint(Entry& entry) {
  if (entry.job.checkpoints.empty()) return;
  entry.job.checkpoints.pop_back();
  if (const Status stored = store_.SetCheckpoints(entry.job); !stored.ok())
    HEDDLE_LOG(kWarning, "checkpoint not dropped", {"job", entry.job.id}, {"error", stored});
}

// Those of a job that has ended, or of its last attempt. Until they are gone the store has one of the job, so
// that the next master knows that there is something to remove.
void MasterCore::RemoveCheckpoints(Entry& entry) {
  Job& job = entry.job;
  const std::string folder = CheckpointFolder(job);
  if (options_.checkpoints.empty() || folder.empty() || job.attempt == 0) return;
  if (job.checkpoints.empty()) {  // parts may be there
    job.checkpoints.push_back({.name = folder});
    if (const Status stored = store_.SetCheckpoints(job); !stored.ok())
      HEDDLE_LOG(kWarning, "checkpoints to remove not noted", {"job", job.id}, {"error", stored});
  }
  removals_.try_emplace(folder);
  OrderRemovals();
}

// Any worker can do it, as all of them see the place; one that does not answer is not asked for ever.
void MasterCore::OrderRemovals() {
  removals_due_ns_ = Membership::kNever;
  if (removals_.empty()) return;
  std::vector<std::string> alive;
  for (const auto& [uuid, worker] : membership_.workers())
    if (worker.state == WorkerState::kAlive && !worker.awaited) alive.push_back(uuid);
  if (alive.empty()) return;  // until one connects
  const int64_t now_ns = beats_.now_ns();
  for (auto& [folder, removal] : removals_) {
    if (removal.next_ns <= now_ns) {
      WorkerOrder& order = orders_.emplace_back();
      order.worker = removal.worker = alive[static_cast<size_t>(removal.asked) % alive.size()];
      order.job = folder.substr(0, folder.find('-'));
      order.kind = WorkerOrder::Kind::kForget;
      order.checkpoints = folder;
      order.checkpoints_place = options_.checkpoints;
      removal.next_ns = now_ns + (kRemovalPatienceNs << std::min(removal.asked, kMostDoublings));
      ++removal.asked;
    }
    removals_due_ns_ = std::min(removals_due_ns_, removal.next_ns);
  }
}

// A worker that has come, or is gone, may not know what it was asked.
void MasterCore::RepeatRemovals(const std::string& uuid) {
  for (auto& [folder, removal] : removals_)
    if (removal.worker == uuid) removal.next_ns = 0;
  OrderRemovals();
}

void MasterCore::CheckpointsRemoved(const std::string& folder) {
  if (removals_.erase(folder) == 0) return;
  const auto found = entries_.find(folder.substr(0, folder.find('-')));
  if (found == entries_.end() || FolderOf(found->second.job) != folder) return;
  Job& job = found->second.job;
  job.checkpoints.clear();
  if (const Status stored = store_.SetCheckpoints(job);
      !stored.ok())  // the next master removes them once more
    HEDDLE_LOG(kWarning, "removed checkpoints not noted", {"job", job.id}, {"error", stored});
}

std::map<std::string, std::string> MasterCore::OrderSweep(int64_t id, bool dry_run) {
  SweepOrder sweep = {.id = id, .dry_run = dry_run, .last = last_job_, .master = identity_};
  for (const auto& [job, entry] : entries_) {
    sweep.known.push_back(NumberOfJob(job));
    if (!IsFinal(entry.job.state)) sweep.unfinished.push_back(NumberOfJob(job));
  }
  std::map<std::string, std::string> asked;
  for (const auto& [uuid, worker] : membership_.workers()) {
    if (worker.state != WorkerState::kAlive || worker.awaited) continue;
    // All workers see the same place.
    sweep.checkpoints_place = asked.empty() ? options_.checkpoints : "";
    asked[uuid] = worker.description.name;
    WorkerOrder& order = orders_.emplace_back();
    order.worker = uuid;
    order.kind = WorkerOrder::Kind::kSweep;
    order.sweep = std::make_shared<const SweepOrder>(sweep);
  }
  return asked;
}

void MasterCore::AskCheckpoint(Entry& entry) {
  entry.attempt->asked_checkpoint = true;
  Order(entry, 0, WorkerOrder::Kind::kCheckpoint).message.checkpoint = CheckpointOrder{.now = true};
}

// Of jobs that would be better off elsewhere.
void MasterCore::AskCheckpoints() {
  if (options_.checkpoints.empty()) return;
  for (Entry* const entry : Active())
    if (entry->job.state == JobState::kRunning && TakesCheckpoints(entry->job) &&
        !entry->attempt->asked_checkpoint && entry->attempt->stop.ok() && !WhyMove(*entry).empty())
      AskCheckpoint(*entry);
}

// Why a job should begin its next attempt now, on other workers; "": it should not.
std::string MasterCore::WhyMove(const Entry& entry) const {
  const JobAttempt& attempt = *entry.attempt;
  size_t kept = 0;  // of its workers
  const Worker* drained = nullptr;
  size_t others = 0;  // that are free
  for (const auto& [uuid, worker] : membership_.workers()) {
    const bool is_own = IsOn(attempt, uuid);
    if (is_own && worker.drained) drained = &worker;
    if (is_own && TakesJobs(worker)) ++kept;
    if (!is_own && IsFreeFor(entry.job, worker) && !entry.failures.contains(uuid)) ++others;
  }
  const size_t members = attempt.members().size();
  if (drained != nullptr && kept + others > 0)
    return fmt::format("worker {} is drained", drained->description.name);
  const auto wanted = static_cast<size_t>(entry.job.specification.workers_wanted);
  if (!entry.needs_all && others > 0 && (wanted == 0 || members < wanted))
    return fmt::format("{} more worker{} there", others, others == 1 ? " is" : "s are");
  return "";
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cluster/executor/log_tail.h"
#include "cluster/master/master_core.h"
#include "core/environment/log.h"

// What users ask of jobs that were submitted: logs, progress, another run, their end.
namespace heddle::cluster {

Result<MasterCore::Entry*> MasterCore::FindFinished(const std::string& job) {
  HEDDLE_RETURN_IF_ERROR(Find(job).status());
  Entry& entry = entries_.find(job)->second;
  if (IsFinal(entry.job.state)) return &entry;
  return FailedPrecondition("job {} is not finished: {}", job, Name(entry.job.state))
      .WithNote(fmt::format("wait for it with 'heddle job wait {0}', or stop it with 'heddle job cancel {0}'",
                            job));
}

Result<const Job*> MasterCore::Retry(const std::string& job, const std::string& request_id) {
  HEDDLE_RETURN_IF_ERROR(FindFinished(job).status());
  HEDDLE_ASSIGN_OR_RETURN(JobSpecification specification, store_.Specification(job));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<JobFile> sources, store_.files().Read(job, JobFileKind::kSources));
  specification.request_id = request_id;
  specification.owner = entries_.find(job)->second.job.specification.owner;
  specification.digest = "retry of " + job;
  return Submit(specification, sources.empty() ? "" : std::move(sources.front().bytes));
}

Status MasterCore::Delete(const std::string& job) {
  HEDDLE_RETURN_IF_ERROR(FindFinished(job).status());
  HEDDLE_RETURN_IF_ERROR(store_.Delete(job));
  entries_.erase(job);
  changed_.push_back(job);  // whoever watches it is told that it is gone
  HEDDLE_LOG(kInfo, "job deleted", {"job", job});
  return OkStatus();
}

const std::string& MasterCore::ProgressOf(const std::string& job) const {
  static const std::string kNone;
  const auto found = entries_.find(job);
  return found == entries_.end() || found->second.attempt == nullptr ? kNone : found->second.progress;
}

Result<MasterCore::LogPart> MasterCore::Log(const std::string& job, int attempt, int rank,
                                            int64_t offset) const {
  HEDDLE_ASSIGN_OR_RETURN(const Job* known, Find(job));
  const Entry& entry = entries_.find(job)->second;
  if (attempt > known->attempt)
    return Usage("job {} has no attempt {}: it was started {} times", job, attempt, known->attempt);
  if (attempt == 0 || attempt == known->attempt) {
    const size_t ranks = known->workers.size();
    if (ranks > 0 && rank >= static_cast<int>(ranks))
      return Usage("job {} has no rank {}: its {} workers are counted from 0", job, rank, ranks);
  }
  LogPart part{.attempt = attempt > 0 ? attempt : known->attempt, .text = "", .end = offset};
  LogTail tail;
  if (entry.attempt != nullptr && part.attempt == known->attempt) {
    tail = entry.attempt->members()[static_cast<size_t>(rank)].log;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const std::optional<JobFile> log,
                            store_.files().Read(job, JobFileKind::kLog, part.attempt, rank));
    if (log) tail.Merge(log->first, log->bytes);
  }
  part.text = tail.From(offset);
  part.end = std::max(tail.end(), offset);
  return part;
}

Result<std::vector<JobFiles::Size>> MasterCore::Logs(const std::string& job) const {
  HEDDLE_RETURN_IF_ERROR(Find(job).status());
  const Entry& entry = entries_.find(job)->second;
  HEDDLE_ASSIGN_OR_RETURN(std::vector<JobFiles::Size> logs, store_.files().Sizes(job, JobFileKind::kLog));
  if (entry.attempt == nullptr) return logs;
  for (size_t rank = 0; rank < entry.attempt->members().size(); ++rank) {
    const LogTail& log = entry.attempt->members()[rank].log;
    if (log.end() > 0)
      logs.push_back({entry.job.attempt, static_cast<int>(rank), log.first(), log.end() - log.first()});
  }
  return logs;
}

// Nothing that a job needs: without it a report or a log is missing.
void MasterCore::KeepFile(const std::string& job, const JobFile& file) {
  if (file.bytes.empty()) return;
  const Status status = store_.files().Put(job, file);
  if (!status.ok()) HEDDLE_LOG(kWarning, "file of a job not kept", {"job", job}, {"error", status});
}

// Of an attempt that has ended, however it did.
void MasterCore::StoreLogs(const Entry& entry) {
  const std::vector<JobAttempt::Member>& members = entry.attempt->members();
  for (size_t rank = 0; rank < members.size(); ++rank)
    KeepFile(entry.job.id, {JobFileKind::kLog, entry.job.attempt, static_cast<int>(rank),
                            members[rank].log.first(), members[rank].log.text()});
}

}  // namespace heddle::cluster

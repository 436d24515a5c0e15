// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/job_attempt.h"

#include <signal.h>

#include <algorithm>

#include "cluster/process/process_end.h"

namespace heddle::cluster {
namespace {

// Signals of an operator, of the system, of a shutdown. What bounds a process sends others.
Blame BlameOf(const ExecutorExit& exit) {
  if (exit.CodeOf() == StatusCode::kResourceExhausted) return Blame::kScript;
  const int signal = exit.value;
  const bool from_outside = exit.signalled && (exit.silent_ms > 0 ? IsSignalOfStop(signal)
                                                                  : signal == SIGKILL || signal == SIGTERM ||
                                                                        signal == SIGINT || signal == SIGHUP);
  return from_outside ? Blame::kMachine : Blame::kCrash;
}

}  // namespace

JobAttempt::JobAttempt(const Job& job, std::string token, bool is_restored)
    : restored(is_restored), token_(std::move(token)) {
  for (size_t rank = 0; rank < job.workers.size(); ++rank) {
    Member& member = members_.emplace_back();
    member.worker = job.workers[rank];
    member.short_name =
        fmt::format("worker {} ({})", rank, rank < job.worker_names.size() ? job.worker_names[rank] : "?");
    member.name = member.short_name;
  }
}

void JobAttempt::Report(const ExecutorNews& news) {
  if (news.rank < 0 || news.rank >= static_cast<int>(members_.size())) return;
  Member& member = members_[static_cast<size_t>(news.rank)];
  member.reported = true;
  if (news.pid > 0)
    member.name =
        fmt::format("{}, pid {})", member.short_name.substr(0, member.short_name.size() - 1), news.pid);
  if (news.endpoint) {
    member.endpoint = news.endpoint;
    member.certificate = news.certificate;
  }
  for (const engine::WrittenCheckpoint& written : news.checkpoints)
    if (written.status.ok() && written.number > last_checkpoint) member.checkpoints[written.number] = written;
  member.log.Merge(news.log_offset, news.log);
  if (news.done && !member.done) {
    member.done = news.done;
    if (!news.done->status.ok()) {
      // One that could not be reached by the others may never be: that is no loss. A link that breaks is one.
      const bool unreachable = news.done->status.code() == StatusCode::kUnavailable;
      if (news.done->own_cause)
        SetCause(news.done->status, news.done->could_not_resume ? Blame::kCheckpoint
                                    : !unreachable              ? Blame::kScript
                                    : peers_sent                ? Blame::kMachine
                                                                : Blame::kCrash);
      else if (provisional_.ok())
        provisional_ = news.done->status;
    }
  }
  if (!news.failure.ok() && !member.ended) {
    member.ended = true;
    broken_workers_.push_back(member.worker);
    SetCause(Unavailable("{}: {}", member.name, news.failure.message()), Blame::kCrash);
  }
  if (news.exit && !member.ended) {
    member.ended = true;
    if (!member.done && !killed) {
      broken_workers_.push_back(member.worker);
      if (crash_.ok()) {
        const std::string text = fmt::format("{} {}", member.name, news.exit->Describe());
        crash_ = Status(news.exit->CodeOf(), text);
        crash_blame_ = BlameOf(*news.exit);
        if (!news.exit->last_words.empty())
          crash_ = crash_.WithNote("its last words: " + news.exit->last_words);
        if (!news.exit->log.empty())
          crash_ = crash_.WithNote(fmt::format("its log is {} on that worker's machine", news.exit->log));
      }
      SetCause(crash_, crash_blame_);
    }
  }
}

void JobAttempt::Lose(size_t rank, const std::string& why) {
  Member& member = members_[rank];
  if (member.ended) return;
  member.ended = true;
  if (member.done) return;
  broken_workers_.push_back(member.worker);
  SetCause(Unavailable("{} {}", member.name, why), Blame::kMachine);
}

void JobAttempt::SetCause(const Status& cause, Blame blame) {
  if (!cause_.ok()) return;
  cause_ = cause;
  cause_blame_ = blame;
}

bool JobAttempt::AllReady() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.endpoint.has_value() && !member.ended; });
}
bool JobAttempt::AllReported() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.reported || member.ended; });
}
bool JobAttempt::AllEnded() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.ended; });
}
bool JobAttempt::AllDone() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.done && member.done->status.ok(); });
}

Status JobAttempt::Cause() const {
  if (IsExplainedByCrash()) return crash_;
  if (!cause_.ok()) return cause_;
  if (!provisional_.ok()) return provisional_;
  return Unavailable("an executor ended without an outcome");
}

Blame JobAttempt::BlameOfCause() const {
  if (IsExplainedByCrash()) return crash_blame_;
  if (!cause_.ok()) return cause_blame_;
  return Cause().code() == StatusCode::kUnavailable ? Blame::kMachine : Blame::kScript;
}

int64_t JobAttempt::LatestCheckpoint() const {
  const std::map<int64_t, engine::WrittenCheckpoint>& first = members_.front().checkpoints;
  for (auto number = first.rbegin(); number != first.rend(); ++number)
    if (std::all_of(members_.begin(), members_.end(),
                    [&](const Member& member) { return member.checkpoints.contains(number->first); }))
      return number->first;
  return 0;
}

std::vector<ExecutorPeer> JobAttempt::Peers() const {
  std::vector<ExecutorPeer> peers;
  for (const Member& member : members_)
    peers.push_back({member.endpoint.value_or(""), member.certificate, member.name});
  return peers;
}

std::vector<std::string> JobAttempt::Statistics() const {
  std::vector<std::string> statistics;
  for (const Member& member : members_)
    if (member.done && member.done->statistics) statistics.push_back(ToJson(*member.done->statistics));
  return statistics;
}

}  // namespace heddle::cluster

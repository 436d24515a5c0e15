// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/executor/executor_messages.h"
#include "cluster/executor/executor_process.h"
#include "cluster/executor/log_tail.h"
#include "cluster/master/job.h"
#include "cluster/placement/membership.h"

namespace heddle::cluster {

/// An executor waits for the master's word before it changes a file.
struct CommitQuestion {
  int64_t id = 0;  ///< Of the executor.
  std::string path;
  int64_t sent_ns = 0;  ///< By the worker's clock.
};

/// News of one executor, from its worker. Telling the same news twice changes nothing.
struct ExecutorNews {
  std::string job;
  int attempt = 0;
  int64_t epoch = 0;
  int rank = 0;
  int64_t pid = 0;
  std::optional<std::string> endpoint;  ///< It is ready.
  std::string certificate;              ///< Of the endpoint; "" without TLS.
  std::string output;                   ///< Standard output from output_offset on.
  int64_t output_offset = 0;
  std::string log;         ///< Standard error of the executor from log_offset on;
  int64_t log_offset = 0;  ///< what was said before may have gone.
  std::string progress;    ///< What the job is at, as JSON (cluster/progress/progress_line.h); of rank 0.
  std::optional<CommitQuestion> commit;
  std::vector<engine::WrittenCheckpoint> checkpoints;  ///< The last that were written, or could not be.
  std::string record;  ///< With `done`, of a job that is recorded: packed JSON (JobFileKind::kRecord).
  std::optional<ExecutorDone> done;
  Status failure;  ///< It could not be started.
  std::optional<ExecutorExit> exit;
};

/// Who is to blame for an attempt that failed.
enum class Blame : uint8_t {
  kScript,      ///< The script, its data or its memory: another attempt would end in the same way.
  kCrash,       ///< An executor broke by itself. Another attempt may do better; many will not.
  kMachine,     ///< A machine, a link or a process was taken away: nothing that the job does.
  kCheckpoint,  ///< The checkpoint that it should go on from is of no use.
};

/// One try to run a job: what is known of its executors. Knows no network and no store.
class JobAttempt {
 public:
  struct Member {
    std::string worker;      ///< uuid
    std::string name;        ///< "worker 1 (alpha, pid 77)" once the pid is known.
    std::string short_name;  ///< "worker 1 (alpha)"
    bool reported = false;   ///< Its worker has said something of it.
    std::optional<std::string> endpoint;
    std::string certificate;
    std::optional<ExecutorDone> done;
    std::map<int64_t, engine::WrittenCheckpoint> checkpoints;  ///< Its part is durable, by number.
    LogTail log;
    bool ended = false;  ///< No such process any more, as far as can be known.
  };

  /// `restored`: of a master that ended; the executors may still run.
  JobAttempt(const Job& job, std::string token, bool restored);

  /// Takes in what an executor's worker reports.
  void Report(const ExecutorNews& news);
  /// The executor on `rank` is gone and nobody can tell how.
  void Lose(size_t rank, const std::string& why);

  bool AllReady() const;
  bool AllReported() const;  ///< Or ended.
  bool AllEnded() const;
  bool AllDone() const;  ///< All with success.
  /// Something went wrong: the first cause, as far as it is known.
  bool HasFailed() const { return !cause_.ok() || !provisional_.ok(); }
  /// Why the attempt failed.
  Status Cause() const;
  Blame BlameOfCause() const;

  /// The number of the latest checkpoint of which all parts are durable; 0: none.
  int64_t LatestCheckpoint() const;
  std::vector<ExecutorPeer> Peers() const;
  std::vector<std::string> Statistics() const;
  std::vector<Member>& members() { return members_; }
  const std::vector<Member>& members() const { return members_; }
  const std::string& token() const { return token_; }
  /// Workers on which an executor broke, for choosing others next time.
  const std::vector<std::string>& broken_workers() const { return broken_workers_; }

  bool restored = false;  ///< Members that have not reported are still expected.
  bool peers_sent = false;
  Status stop;                    ///< Not Ok: executors were asked to stop, for this reason.
  std::string moves;              ///< Why the next attempt is to begin elsewhere; "": it need not.
  bool asked_checkpoint = false;  ///< One is wanted soon.
  int64_t last_checkpoint = 0;    ///< Number of the latest that the job may go on from, of this attempt.
  bool killed = false;
  int64_t deadline_ns = Membership::kNever;  ///< When waiting for executors ends.

 private:
  void SetCause(const Status& cause, Blame blame);
  // A broken link is what the others see of a crash.
  bool IsExplainedByCrash() const { return !crash_.ok() && cause_.code() == StatusCode::kUnavailable; }

  std::vector<Member> members_;
  std::string token_;
  Status cause_;  // the first of all
  Blame cause_blame_ = Blame::kScript;
  Status crash_;  // the first executor that ended without an outcome
  Blame crash_blame_ = Blame::kCrash;
  Status provisional_;  // a failure that another rank caused
  std::vector<std::string> broken_workers_;
};

}  // namespace heddle::cluster

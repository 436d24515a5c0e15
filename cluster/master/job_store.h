// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/master/job.h"
#include "cluster/store/job_files.h"
#include "core/environment/clock.h"

namespace heddle::cluster {

struct JobStoreOptions {
  int64_t most_output_bytes = int64_t{256} << 20;  ///< Of standard output kept for one job.
  int64_t most_file_bytes = int64_t{1} << 30;      ///< Of logs, records and sources of all jobs.
  int most_finished_jobs = 1000;                   ///< Older finished jobs are forgotten.
};

/// A worker of which something is written down, whether it is here or not.
struct KnownWorker {
  std::string uuid;
  std::string name;  ///< At that time.
};

/// How much of the cluster a user has had (FairShare), as of a moment.
struct UserUsage {
  std::string user;
  int64_t core_ms = 0;
  int64_t time_ms = 0;  ///< By the wall clock.
};

/// What the master must not lose (design promise 4). What returned Ok is there after a crash of the master;
/// it is on disk, so that a crash of the machine leaves it as well, once Sync() has returned. Not thread-safe
/// but for Sync().
class JobStore {
 public:
  virtual ~JobStore() = default;
  /// The number of the last change; rises.
  virtual int64_t LastChange() const = 0;
  /// Puts all changes so far on disk. Any thread, beside one that uses the rest. Ends the process where the
  /// disk fails: what a disk that failed once holds nobody knows.
  virtual void Sync() = 0;
  /// Opens or makes the store in a file (":memory:" for tests). `clock` outlives it; used for the times of
  /// transitions. kFailedPrecondition when a newer version of Heddle wrote it, kResourceExhausted when it
  /// cannot be opened.
  static Result<std::unique_ptr<JobStore>> Open(const std::string& path, const JobStoreOptions& options,
                                                Clock& clock);

  /// A new job in state QUEUED; the job of that request id when there is one already (`existed`). kUsage when
  /// that one is of another digest.
  virtual Result<Job> Add(const JobSpecification& specification, bool* existed) = 0;
  /// Moves `job` on and writes what has changed in it (state, attempt, epoch, crashes, losses, reason,
  /// workers, outcome, statistics) together with one record of the transition. kInternal for an illegal
  /// transition; nothing has changed then.
  virtual Status Move(Job* job, JobState state, const std::string& reason) = 0;
  /// Writes down from which checkpoints the job may go on, and how often it has.
  virtual Status SetCheckpoints(const Job& job) = 0;
  /// Whether changes can be stored; changes nothing.
  virtual Status CheckWritable() = 0;
  /// Adds to the standard output of the job. kResourceExhausted past most_output_bytes.
  virtual Status AppendOutput(Job* job, std::string_view bytes) = 0;

  /// Writes down that a worker gets no more jobs, or gets jobs again.
  virtual Status SetDrained(const KnownWorker& worker, bool drained) = 0;
  virtual Result<std::vector<KnownWorker>> Drained() = 0;

  virtual Status SetUsage(const UserUsage& usage) = 0;
  virtual Result<std::vector<UserUsage>> Usage() = 0;

  /// 16 digits that no other store has, but for copies of this one: other masters may use the same place for
  /// what their jobs leave.
  virtual Result<std::string> Identity() = 0;
  /// The highest number of any job there has been, deleted ones too; 0: none.
  virtual Result<int64_t> LastJob() = 0;
  /// The highest epoch of any attempt there has been.
  virtual Result<int64_t> LastEpoch() = 0;
  /// Writes down that a worker is here, so that the next master waits for it; or that it is gone.
  virtual Status SetHere(const KnownWorker& worker, bool here) = 0;
  virtual Result<std::vector<KnownWorker>> Here() = 0;

  /// All jobs, oldest first, without their programs.
  virtual Result<std::vector<Job>> Load() = 0;
  virtual Result<std::vector<JobTransition>> Transitions(const std::string& job) = 0;
  /// Standard output from `offset`, at most about `most_bytes`.
  virtual Result<std::string> Output(const std::string& job, int64_t offset, int64_t most_bytes) = 0;
  /// What was submitted, with the program, of a finished job, too. kNotFound for a job that is not known.
  virtual Result<JobSpecification> Specification(const std::string& job) = 0;
  /// Forgets the finished jobs beyond the limit, those that ended first before the others; their ids.
  virtual Result<std::vector<std::string>> Prune() = 0;
  /// Forgets a job with its output and files.
  virtual Status Delete(const std::string& job) = 0;
  virtual JobFiles& files() = 0;
};

}  // namespace heddle::cluster

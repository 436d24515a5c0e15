// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

struct sqlite3;

namespace heddle::cluster {

/// 17 of "j17"; -1 for what is no id of a job.
int64_t NumberOfJob(std::string_view id);

/// What is kept of a job beside its state and its output.
enum class JobFileKind : uint8_t {
  kSources,  ///< JobSources (proto/master.proto) as a frame of zstd; of attempt 0 and rank 0.
  kLog,      ///< The last that an executor said on its standard error.
  kRecord,   ///< RankRecord as JSON, as a frame of zstd.
};

struct JobFile {
  JobFileKind kind = JobFileKind::kLog;
  int attempt = 0;
  int rank = 0;
  int64_t first = 0;  ///< Of a log: where `bytes` begins, as what was said before has gone.
  std::string bytes;
};

/// The files of jobs in the job store. They go with their job; those of the oldest finished jobs go earlier
/// when all together outgrow their room. Not thread-safe.
class JobFiles {
 public:
  static constexpr int64_t kMostBytesOfJob = int64_t{16} << 20;  ///< Of the records of one job.
  static constexpr int kAttemptsWithLogs = 3;                    ///< The last ones of a job.

  /// The database outlives it. `most_bytes`: of all files together.
  JobFiles(sqlite3* database, int64_t most_bytes) : database_(database), most_bytes_(most_bytes) {}

  /// Puts a file in the place of one of the same kind, attempt and rank. Logs of old attempts and records of
  /// earlier ones go. kResourceExhausted when it cannot be written, or for a record beyond kMostBytesOfJob.
  Status Put(const std::string& job, const JobFile& file);
  /// Those of a kind, by attempt and rank.
  Result<std::vector<JobFile>> Read(const std::string& job, JobFileKind kind) const;
  /// The one of an attempt and a rank; nullopt when there is none.
  Result<std::optional<JobFile>> Read(const std::string& job, JobFileKind kind, int attempt, int rank) const;
  /// The same without the bytes, of which it tells how many there are.
  struct Size {
    int attempt = 0;
    int rank = 0;
    int64_t first = 0;
    int64_t bytes = 0;
  };
  Result<std::vector<Size>> Sizes(const std::string& job, JobFileKind kind) const;
  /// How many bytes there are of each job, by its id.
  Result<std::map<std::string, int64_t>> BytesOfJobs() const;

 private:
  Status MakeRoom();

  sqlite3* const database_;
  const int64_t most_bytes_;
  int64_t bytes_ = -1;  // of all files, or more, as jobs may have gone; -1: not counted yet
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/job_files.h"

#include <algorithm>
#include <charconv>

#include "cluster/store/sqlite_query.h"

namespace heddle::cluster {
namespace {

constexpr std::string_view kSizes = "SELECT coalesce(sum(length(bytes)), 0) FROM job_files";

std::string_view Name(JobFileKind kind) {
  switch (kind) {
    case JobFileKind::kSources: return "sources";
    case JobFileKind::kLog: return "log";
    case JobFileKind::kRecord: return "record";
  }
  return "";
}

}  // namespace

int64_t NumberOfJob(std::string_view id) {
  constexpr size_t kMostDigits = 16;
  if (id.size() < 2 || id.size() > kMostDigits + 1 || id[0] != 'j') return -1;
  int64_t number = -1;
  const auto [end, error] = std::from_chars(id.data() + 1, id.data() + id.size(), number);
  return error == std::errc() && end == id.data() + id.size() ? number : -1;
}

Status JobFiles::Put(const std::string& job, const JobFile& file) {
  const int64_t number = NumberOfJob(job);
  const auto size = static_cast<int64_t>(file.bytes.size());
  Transaction transaction(database_);
  HEDDLE_RETURN_IF_ERROR(transaction.status());
  // Of a record only the last attempt matters.
  if (file.kind != JobFileKind::kSources)
    HEDDLE_RETURN_IF_ERROR(
        Query(database_, "DELETE FROM job_files WHERE job = ? AND kind = ? AND attempt <= ?")
            .Bind(number)
            .Bind(Name(file.kind))
            .Bind(file.attempt - (file.kind == JobFileKind::kLog ? kAttemptsWithLogs : 1))
            .Run());
  if (file.kind == JobFileKind::kRecord) {
    Query sum(database_, (std::string(kSizes) + " WHERE job = ? AND kind = ? AND rank <> ?").c_str());
    sum.Bind(number).Bind(Name(file.kind)).Bind(file.rank);
    const int64_t others = sum.Step() ? sum.Integer(0) : 0;
    HEDDLE_RETURN_IF_ERROR(sum.status());
    if (others + size > kMostBytesOfJob)
      return ResourceExhausted("the records of job {} take more than {} bytes", job, kMostBytesOfJob);
  }
  HEDDLE_RETURN_IF_ERROR(
      Query(
          database_,
          "INSERT OR REPLACE INTO job_files (job, kind, attempt, rank, first, bytes) VALUES (?, ?, ?, ?, ?, ?)")
          .Bind(number)
          .Bind(Name(file.kind))
          .Bind(file.attempt)
          .Bind(file.rank)
          .Bind(file.first)
          .BindBytes(file.bytes)
          .Run());
  HEDDLE_RETURN_IF_ERROR(transaction.Commit());
  if (bytes_ >= 0) bytes_ += size;
  return MakeRoom();
}

// Jobs that are not finished keep theirs.
Status JobFiles::MakeRoom() {
  if (bytes_ >= 0 && bytes_ <= most_bytes_) return OkStatus();
  {
    Query sum(database_, std::string(kSizes).c_str());
    bytes_ = sum.Step() ? sum.Integer(0) : 0;
    HEDDLE_RETURN_IF_ERROR(sum.status());
  }
  if (bytes_ <= most_bytes_) return OkStatus();
  const int64_t target = most_bytes_ / 4 * 3;
  int64_t last = -1;
  int64_t left = bytes_;
  {
    Query oldest(database_,
                 "SELECT job, sum(length(bytes)) FROM job_files JOIN jobs ON jobs.number = job WHERE state IN"
                 " ('SUCCEEDED', 'FAILED', 'CANCELLED') GROUP BY job ORDER BY job");
    while (left > target && oldest.Step()) {
      last = oldest.Integer(0);
      left -= oldest.Integer(1);
    }
    HEDDLE_RETURN_IF_ERROR(oldest.status());
  }
  HEDDLE_RETURN_IF_ERROR(
      Query(database_,
            "DELETE FROM job_files WHERE job <= ? AND job IN (SELECT number FROM jobs WHERE state IN"
            " ('SUCCEEDED', 'FAILED', 'CANCELLED'))")
          .Bind(last)
          .Run());
  bytes_ = left;
  return OkStatus();
}

Result<std::vector<JobFile>> JobFiles::Read(const std::string& job, JobFileKind kind) const {
  std::vector<JobFile> files;
  Query query(
      database_,
      "SELECT attempt, rank, first, bytes FROM job_files WHERE job = ? AND kind = ? ORDER BY attempt, rank");
  query.Bind(NumberOfJob(job)).Bind(Name(kind));
  while (query.Step())
    files.push_back({kind, static_cast<int>(query.Integer(0)), static_cast<int>(query.Integer(1)),
                     query.Integer(2), query.Bytes(3)});
  HEDDLE_RETURN_IF_ERROR(query.status());
  return files;
}

Result<std::optional<JobFile>> JobFiles::Read(const std::string& job, JobFileKind kind, int attempt,
                                              int rank) const {
  Query query(database_,
              "SELECT first, bytes FROM job_files WHERE job = ? AND kind = ? AND attempt = ? AND rank = ?");
  query.Bind(NumberOfJob(job)).Bind(Name(kind)).Bind(attempt).Bind(rank);
  std::optional<JobFile> file;
  if (query.Step()) file = {kind, attempt, rank, query.Integer(0), query.Bytes(1)};
  HEDDLE_RETURN_IF_ERROR(query.status());
  return file;
}

Result<std::vector<JobFiles::Size>> JobFiles::Sizes(const std::string& job, JobFileKind kind) const {
  std::vector<Size> sizes;
  Query query(
      database_,
      "SELECT attempt, rank, first, length(bytes) FROM job_files WHERE job = ? AND kind = ? ORDER BY attempt, rank");
  query.Bind(NumberOfJob(job)).Bind(Name(kind));
  while (query.Step())
    sizes.push_back({static_cast<int>(query.Integer(0)), static_cast<int>(query.Integer(1)), query.Integer(2),
                     query.Integer(3)});
  HEDDLE_RETURN_IF_ERROR(query.status());
  return sizes;
}

Result<std::map<std::string, int64_t>> JobFiles::BytesOfJobs() const {
  std::map<std::string, int64_t> bytes;
  Query query(database_, "SELECT job, sum(length(bytes)) FROM job_files GROUP BY job");
  while (query.Step()) bytes[fmt::format("j{}", query.Integer(0))] = query.Integer(1);
  HEDDLE_RETURN_IF_ERROR(query.status());
  return bytes;
}

}  // namespace heddle::cluster

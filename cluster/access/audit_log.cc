// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/environment/log.h"
#include "core/text/time_text.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kMsPerSecond = 1000;

std::string TimeOf(int64_t ms) {
  return fmt::format("{}.{:03}Z", UtcTime(ms, "%Y-%m-%dT%H:%M:%S"), ms % kMsPerSecond);
}

class AuditLogImpl : public AuditLog {
 public:
  AuditLogImpl(std::string path, const AuditLogOptions& options, Clock& clock)
      : path_(std::move(path)), options_(options), clock_(clock) {}
  ~AuditLogImpl() override {
    if (fd_ >= 0) close(fd_);
  }

  Status Start() {
    fd_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0) return PermissionDenied("cannot write '{}': {}", path_, strerror(errno));
    struct stat status {};
    if (fstat(fd_, &status) == 0) bytes_ = status.st_size;
    return OkStatus();
  }

  void Write(const AuditRecord& record) override {
    const std::lock_guard lock(mutex_);
    Append(record, 0);
  }

  void WriteStranger(const AuditRecord& record) override {
    const std::lock_guard lock(mutex_);
    const int64_t second = clock_.MonotonicNs() / 1'000'000'000;
    if (std::exchange(second_, second) != second) strangers_ = 0;
    if (++strangers_ > options_.most_strangers) {
      ++untold_;
      return;
    }
    Append(record, std::exchange(untold_, 0));
  }

 private:
  // `untold`: calls of strangers before this one that have no line.
  void Append(const AuditRecord& record, int64_t untold) {
    nlohmann::ordered_json json = {{"time", TimeOf(clock_.WallMs())},
                                   {"token", record.token},
                                   {"owner", record.owner},
                                   {"peer", record.peer},
                                   {"rpc", record.rpc},
                                   {"object", record.object},
                                   {"outcome", record.outcome}};
    if (!record.why.empty()) json["why"] = record.why;
    if (untold > 0) json["strangers_before"] = untold;
    const std::string line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (bytes_ > 0 && bytes_ + static_cast<int64_t>(line.size()) > options_.most_bytes) Rotate();
    const ssize_t written = fd_ < 0 ? -1 : write(fd_, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) {
      bytes_ += written;
    } else {
      HEDDLE_LOG(kError, "audit log not written", {"path", path_}, {"error", strerror(errno)},
                 {"record", line});
    }
  }

  void Rotate() {
    const auto numbered = [&](int number) { return fmt::format("{}.{}", path_, number); };
    unlink(numbered(options_.kept_files).c_str());
    for (int i = options_.kept_files; i > 1; --i) rename(numbered(i - 1).c_str(), numbered(i).c_str());
    if (options_.kept_files > 0)
      rename(path_.c_str(), numbered(1).c_str());
    else
      unlink(path_.c_str());
    close(std::exchange(fd_, -1));
    bytes_ = 0;
    if (const Status status = Start(); !status.ok())
      HEDDLE_LOG(kError, "audit log not opened", {"error", status});
  }

  const std::string path_;
  const AuditLogOptions options_;
  Clock& clock_;
  std::mutex mutex_;
  int fd_ = -1;
  int64_t bytes_ = 0;
  int64_t second_ = 0;  // in which strangers_ were written
  int64_t strangers_ = 0;
  int64_t untold_ = 0;
};

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& folder, const AuditLogOptions& options,
                                                 Clock& clock) {
  auto log = std::make_unique<AuditLogImpl>(folder + "/audit.log", options, clock);
  HEDDLE_RETURN_IF_ERROR(log->Start());
  return std::unique_ptr<AuditLog>(std::move(log));
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_upkeep.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "cluster/master/worker_identity.h"
#include "cluster/network/certificates.h"
#include "cluster/security/token.h"
#include "cluster/store/store_backup.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "core/text/utf8.h"
#include "core/version.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBackupPartBytes = 1 << 20;
constexpr std::chrono::seconds kSweepPatience(10);
constexpr int64_t kOrphanAgeMs = 3'600'000;  // whoever writes such a file is done with it by then

int64_t BytesOf(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? int64_t{status.st_size} : 0;
}

void Add(const std::string& kind, const std::string& name, int64_t bytes, int64_t time_ms,
         GarbageReply* reply) {
  GarbageItem* item = reply->add_items();
  item->set_kind(kind);
  item->set_name(name);
  item->set_bytes(bytes);
  item->set_time_ms(time_ms);
}

struct FinishedJob {
  std::string id;
  int64_t finished_ms = 0;
  int64_t bytes = 0;
};

// Those that go, the ones that ended first before the others.
std::vector<FinishedJob> JobsToForget(std::vector<FinishedJob> jobs, const GarbageRequest& request,
                                      int64_t now_ms) {
  std::ranges::stable_sort(jobs, {}, &FinishedJob::finished_ms);
  int64_t left = 0;
  for (const FinishedJob& job : jobs) left += job.bytes;
  const auto stays = [&](const FinishedJob& job) {
    const bool is_old = request.has_older_than_ms() && now_ms - job.finished_ms >= request.older_than_ms();
    const bool is_too_much = request.has_keep_bytes() && left > request.keep_bytes();
    if (!is_old && !is_too_much) return true;
    left -= job.bytes;
    return false;
  };
  std::erase_if(jobs, stays);
  return jobs;
}

// Temporary files of a master that was killed while it wrote them.
void RemoveOrphans(const std::string& folder, bool dry_run, int64_t now_ms, GarbageReply* reply) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    struct stat status {};
    if (!(name.starts_with("backup-") || name.ends_with(".new") || ops::IsHiddenName(name)) ||
        lstat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    const int64_t changed_ms = int64_t{status.st_mtime} * 1000;
    if (now_ms - changed_ms < kOrphanAgeMs) continue;
    if (!dry_run && unlink(entry->path().c_str()) != 0) continue;
    Add("file", entry->path().string(), status.st_size, changed_ms, reply);
  }
}

// What executors have left over on workers.
void SweepWorkers(MasterHub* hub, bool dry_run, const std::function<bool()>& given_up, GarbageReply* reply) {
  const int64_t id = hub->sweeps().Begin();
  const auto asked = hub->Call([&](MasterCore& core) { return core.OrderSweep(id, dry_run); });
  const std::map<std::string, Swept> replies =
      hub->sweeps().Await(id, asked.size(), kSweepPatience, given_up);
  for (const auto& [uuid, name] : asked) {
    const auto found = replies.find(uuid);
    if (found == replies.end()) {
      reply->add_problems(
          fmt::format("worker {} has not answered within {} s", name, kSweepPatience.count()));
      continue;
    }
    for (const GarbageItem& item : found->second.items()) {
      *reply->add_items() = item;
      reply->mutable_items()->rbegin()->set_node(name);
    }
    if (!found->second.failure().empty())
      reply->add_problems(fmt::format("worker {}: {}", name, found->second.failure()));
  }
}

}  // namespace

void ServeAbout(const MasterOptions& options, int64_t started_ms, AboutReply* reply) {
  reply->set_wall_ms(SystemClock().WallMs());
  reply->set_version(kVersion);
  reply->set_host(EscapeInvalidUtf8(HostName()));
  reply->set_pid(getpid());
  reply->set_started_ms(started_ms);
  struct statvfs disk {};
  if (statvfs(options.folder.c_str(), &disk) == 0)
    reply->set_free_bytes(static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize));
  const std::string store = JobStoreFile(options.folder);
  reply->set_store_bytes(BytesOf(store) + BytesOf(store + "-wal"));
  if (options.certificate.empty()) return;
  const Result<CertificateFacts> certificate = ReadCertificate(options.certificate);
  reply->set_certificate_until_ms(certificate.ok() ? certificate->until_ms : -1);
}

void ServeConfig(const MasterOptions& options, ConfigReply* reply) {
  for (const MasterOptions::Setting& one : options.settings) {
    heddle::Setting* setting = reply->add_settings();
    setting->set_name(one.name);
    setting->set_value(one.value);
    setting->set_source(one.is_given ? "command line" : "default");
    setting->set_help(one.help);
  }
}

Status ServeBackup(const MasterOptions& options, const std::function<bool(const BackupPart&)>& write) {
  // In the folder, where there is room for a store and nobody else comes; it has no name any more when the
  // first byte is sent.
  const std::string path = fmt::format("{}/backup-{}.sqlite", options.folder, MakeToken());
  HEDDLE_RETURN_IF_ERROR(BackUp(options.folder, path));
  std::ifstream file(path, std::ios::binary);
  unlink(path.c_str());
  if (!file) return ResourceExhausted("cannot read '{}'", path);
  BackupPart part;
  std::string* bytes = part.mutable_bytes();
  for (;;) {
    bytes->resize(kBackupPartBytes);
    file.read(bytes->data(), static_cast<std::streamsize>(bytes->size()));
    bytes->resize(static_cast<size_t>(file.gcount()));
    if (bytes->empty()) break;
    if (!write(part)) return Cancelled("the backup was given up");
  }
  return file.bad() ? ResourceExhausted("cannot read '{}'", path) : OkStatus();
}

Status ServeGarbage(MasterHub* hub, const MasterOptions& options, const GarbageRequest& request,
                    const std::function<bool()>& given_up, GarbageReply* reply) {
  const int64_t now_ms = SystemClock().WallMs();
  std::vector<FinishedJob> jobs;
  HEDDLE_RETURN_IF_ERROR(hub->Call([&](MasterCore& core) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const auto bytes, hub->store().files().BytesOfJobs());
    for (const Job* job : core.Jobs()) {
      if (!IsFinal(job->state)) continue;
      const auto files = bytes.find(job->id);
      jobs.push_back(
          {job->id, job->finished_ms, job->output_bytes + (files == bytes.end() ? 0 : files->second)});
    }
    return OkStatus();
  }));
  // One at a time: others are served in between.
  for (const FinishedJob& job : JobsToForget(std::move(jobs), request, now_ms)) {
    if (!request.dry_run()) {
      const Status deleted = hub->Call([&](MasterCore& core) { return core.Delete(job.id); });
      if (deleted.code() == StatusCode::kNotFound) continue;  // somebody else was faster
      HEDDLE_RETURN_IF_ERROR(deleted);
    }
    Add("job", job.id, job.bytes, job.finished_ms, reply);
  }
  RemoveOrphans(options.folder, request.dry_run(), now_ms, reply);
  SweepWorkers(hub, request.dry_run(), given_up, reply);
  HEDDLE_LOG(kInfo, "garbage collected", {"items", reply->items_size()}, {"dry_run", request.dry_run()});
  return OkStatus();
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_sweeper.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "cluster/store/job_files.h"
#include "core/environment/clock.h"
#include "core/environment/descriptor.h"
#include "core/text/utf8.h"
#include "ops/io/files/hidden_names.h"
#include "ops/panels/spill_files.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLeftAfterMs = 3'600'000;

void Add(const char* kind, const std::string& name, int64_t bytes, int64_t time_ms, Swept* swept) {
  GarbageItem* item = swept->add_items();
  item->set_kind(kind);
  item->set_name(name);
  item->set_bytes(bytes);
  item->set_time_ms(time_ms);
}

// Of "j17-1-0.log": the number of the job; -1 for a name of something else.
int64_t NumberIn(const std::string& name) {
  return NumberOfJob(std::string_view(name).substr(0, name.find('-')));
}

// Whether the job is none of `those` that stay, nor one that was submitted since the master asked.
bool IsOver(int64_t number, const google::protobuf::RepeatedField<int64_t>& those,
            const heddle::Sweep& order) {
  return number >= 0 && number <= order.last() && !std::ranges::binary_search(those, number);
}

void SweepLogs(const std::string& folder, const heddle::Sweep& order, Swept* swept) {
  std::error_code error;
  std::vector<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if ((name.ends_with(".log") || name.ends_with(".log.old")) &&
        IsOver(NumberIn(name), order.known(), order))
      logs.push_back(entry.path());
  }
  for (const fs::path& log : logs) {
    struct stat status {};
    if (lstat(log.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (!order.dry_run() && !fs::remove(log, error)) continue;
    Add("log", log.string(), status.st_size, int64_t{status.st_mtime} * 1000, swept);
  }
}

// Whether the file of that name in an open folder is one that its writer has left: whoever lives holds its
// lock (ops::LockHidden), and has written it of late where several machines share the folder and not its
// locks.
bool IsLeft(int folder, const char* name, struct stat* status) {
  struct stat named {};
  const Descriptor file(openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.ok() && fstat(file.get(), status) == 0 && S_ISREG(status->st_mode) &&
         SystemClock().WallMs() - int64_t{status->st_mtime} * 1000 > kLeftAfterMs &&
         flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
         fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == status->st_dev &&
         named.st_ino == status->st_ino;
}

void SweepSpillFiles(const std::string& folder, const heddle::Sweep& order, Swept* swept) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.ok()) return;
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (ops::IsHiddenName(entry.path().filename().string()))
      names.push_back(entry.path().filename().string());
  for (const std::string& name : names) {
    struct stat status {};
    if (!IsLeft(opened.get(), name.c_str(), &status)) continue;
    if (!order.dry_run() && !ops::RemoveEntry(opened.get(), name.c_str())) continue;
    Add("spill", folder + "/" + name, status.st_size, int64_t{status.st_mtime} * 1000, swept);
  }
}

// Another master may have its checkpoints at the same place: the names tell whose they are.
Status SweepCheckpoints(const heddle::Sweep& order, Swept* swept) {
  const std::string& place = order.checkpoints_place();
  HEDDLE_ASSIGN_OR_RETURN(const auto folders, CheckpointFolders(place));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<engine::CheckpointStore> store, OpenCheckpoints(place));
  for (const auto& [folder, bytes] : folders) {
    const int64_t number = NumberIn(folder);
    if (!folder.starts_with(fmt::format("j{}-{}-", number, order.master())) ||
        !IsOver(number, order.unfinished(), order))
      continue;
    if (!order.dry_run()) HEDDLE_RETURN_IF_ERROR(store->RemoveAll(folder));
    Add("checkpoints", place + "/" + folder, bytes, 0, swept);
  }
  return OkStatus();
}

}  // namespace

WorkerSweeper::WorkerSweeper(std::string log_folder, std::string spill_folder, std::function<void()> changed)
    : log_folder_(std::move(log_folder)),
      spill_folder_(spill_folder.empty() ? ops::SpillFolder() : std::move(spill_folder)),
      changed_(std::move(changed)) {}

WorkerSweeper::~WorkerSweeper() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wanted_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WorkerSweeper::Sweep(const heddle::Sweep& order) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(order);
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  }
  wanted_changed_.notify_all();
}

std::optional<Swept> WorkerSweeper::NextSwept() {
  const std::lock_guard lock(mutex_);
  if (swept_.empty()) return std::nullopt;
  Swept swept = std::move(swept_.front());
  swept_.pop_front();
  return swept;
}

void WorkerSweeper::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_changed_.wait(lock, [this] { return ended_ || !wanted_.empty(); });
    if (ended_) return;
    const heddle::Sweep order = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    Swept swept = Do(order);
    lock.lock();
    swept_.push_back(std::move(swept));
    lock.unlock();
    changed_();
    lock.lock();
  }
}

Swept WorkerSweeper::Do(const heddle::Sweep& order) const {
  Swept swept;
  swept.set_id(order.id());
  if (!log_folder_.empty()) SweepLogs(log_folder_, order, &swept);
  SweepSpillFiles(spill_folder_, order, &swept);
  if (order.checkpoints_place().empty()) return swept;
  if (const Status status = SweepCheckpoints(order, &swept); !status.ok())
    swept.set_failure(EscapeInvalidUtf8(status.message()));
  return swept;
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/chaos_checkpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <filesystem>
#include <ranges>
#include <system_error>

#include "cluster/checkpoints/checkpoint_stores.h"

namespace heddle::cluster {

ChaosCheckpoints::~ChaosCheckpoints() {
  std::error_code ignored;
  if (!place_.empty()) std::filesystem::remove_all(place_, ignored);
}

Status ChaosCheckpoints::MakePlace() {
  std::error_code error;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
  if (error) return Unavailable("no folder of temporary files for checkpoints: {}", error.message());
  std::string pattern = (std::filesystem::absolute(temporary, error) / "heddle-chaos-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    return Unavailable("no folder for checkpoints in '{}': {}", temporary.string(), strerror(errno));
  place_ = pattern;
  store_ = FolderCheckpoints(place_);
  return OkStatus();
}

// As Checkpoints::Write names it.
std::string ChaosCheckpoints::NameOf(int64_t number) const { return fmt::format("{}-{}", attempt_, number); }

Result<ExecutorCheckpoints> ChaosCheckpoints::Begin(int attempt) {
  attempt_ = attempt;
  complete_ = 0;
  parts_.clear();
  last_written_.clear();
  printed_.clear();
  if (interval_ms_ == 0) return ExecutorCheckpoints();
  if (place_.empty()) HEDDLE_RETURN_IF_ERROR(MakePlace());
  ExecutorCheckpoints checkpoints = resume_;
  checkpoints.location = place_;
  checkpoints.folder = fmt::format("{}", attempt);
  checkpoints.interval_ms = interval_ms_;
  return checkpoints;
}

void ChaosCheckpoints::Wrote(size_t rank, const engine::WrittenCheckpoint& written) {
  const std::lock_guard lock(mutex_);
  last_written_[rank] = written.number;
  if (!written.status.ok()) return;
  if (rank == 0) printed_[written.number] = written.printed;
  parts_[written.number].insert(rank);
  if (written.number <= complete_ || parts_[written.number].size() < ranks_) return;
  // What cannot be removed goes with the place.
  if (!resume_.resume.empty()) (void)store_->RemoveAll(resume_.resume);
  complete_ = written.number;
  resume_.resume = NameOf(complete_);
  resume_.resume_ranks = static_cast<int>(ranks_);
  resume_.printed = printed_[complete_];
  files_.erase(files_.begin(), files_.lower_bound(complete_));
  parts_.erase(parts_.begin(), parts_.upper_bound(complete_));
}

Status ChaosCheckpoints::Save(size_t rank, const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SavedFiles>& files = files_[last_written_[rank]];
  if (files == nullptr) files = std::make_unique<SavedFiles>(directory_, roots_);
  return files->Save(path);
}

Result<int64_t> ChaosCheckpoints::Restore() {
  int64_t changed = 0;
  for (const auto& [number, files] : std::views::reverse(files_)) {  // The first change is undone last.
    HEDDLE_ASSIGN_OR_RETURN(const int64_t restored, files->Restore());
    changed += restored;
  }
  files_.clear();
  return changed;
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/checkpoints/checkpoint_remover.h"

#include <algorithm>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "core/environment/log.h"

namespace heddle::cluster {

CheckpointRemover::~CheckpointRemover() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (store_ != nullptr) store_->GiveUp();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CheckpointRemover::Remove(const std::string& location, const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(wanted_, std::pair(location, folder)) != wanted_.end()) return;
    wanted_.emplace_back(location, folder);
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  }
  changed_.notify_all();
}

void CheckpointRemover::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || !wanted_.empty(); });
    if (ended_) return;
    const auto [location, folder] = wanted_.front();
    Result<std::unique_ptr<engine::CheckpointStore>> opened = OpenCheckpoints(location);
    Status removed = opened.status();
    if (opened.ok()) {
      store_ = *std::move(opened);
      lock.unlock();
      removed = store_->RemoveAll(folder);
      lock.lock();
      store_.reset();
    }
    wanted_.pop_front();
    if (!removed.ok() && !ended_)
      HEDDLE_LOG(kWarning, "checkpoints not removed", {"folder", folder}, {"why", removed});
    if (!removed.ok()) continue;
    lock.unlock();
    removed_(folder);
    lock.lock();
  }
}

}  // namespace heddle::cluster

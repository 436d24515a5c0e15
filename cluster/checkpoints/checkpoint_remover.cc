// SPDX-License-Identifier: Apache-2.0
#include "cluster/checkpoints/checkpoint_remover.h"

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
    const auto [location, folder] = std::move(wanted_.front());
    wanted_.pop_front();
    Result<std::unique_ptr<engine::CheckpointStore>> opened = OpenCheckpoints(location);
    Status removed = opened.status();
    if (opened.ok()) {
      store_ = *std::move(opened);
      lock.unlock();
      removed = store_->RemoveAll(folder);
      lock.lock();
      store_.reset();
    }
    if (!removed.ok() && !ended_)
      HEDDLE_LOG(kWarning, "checkpoints not removed", {"folder", folder}, {"why", removed});
  }
}

}  // namespace heddle::cluster

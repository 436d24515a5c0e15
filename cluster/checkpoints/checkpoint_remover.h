// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "engine/checkpoints/checkpoint_store.h"

namespace heddle::cluster {

/// Removes checkpoints on a thread of its own: whoever asks may not wait for a disk or an object store. What
/// cannot be removed is told to the log and stays.
class CheckpointRemover {
 public:
  /// `removed` is told, on that thread, of a folder below which nothing is left.
  explicit CheckpointRemover(std::function<void(const std::string& folder)> removed)
      : removed_(std::move(removed)) {}
  ~CheckpointRemover();  ///< What has not been removed by then stays.
  CheckpointRemover(const CheckpointRemover&) = delete;
  CheckpointRemover& operator=(const CheckpointRemover&) = delete;

  /// All below `folder` at the location (OpenCheckpoints). Returns at once. Asking twice does it once.
  void Remove(const std::string& location, const std::string& folder);

 private:
  void Work();

  const std::function<void(const std::string& folder)> removed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::string, std::string>> wanted_;  // location, folder; the first is being removed
  std::shared_ptr<engine::CheckpointStore> store_;          // That is being asked.
  bool ended_ = false;
  std::thread thread_;  // From the first wish on.
};

}  // namespace heddle::cluster

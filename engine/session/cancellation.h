// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>

#include "core/status.h"

namespace heddle::engine {

/// One request to stop, from whoever may ask (Ctrl-C, a cancelled job) to whoever runs. Thread-safe.
class Cancellation {
 public:
  /// Asks to stop. The first cause wins; later ones are dropped.
  void Request(Status why) {
    std::lock_guard lock(mutex_);
    if (!why_.ok()) return;
    why_ = std::move(why);
    if (listener_) listener_(why_);
  }
  /// Calls `listener` once when somebody asks (at once if somebody has). An empty function ends that; after
  /// it returned no call is in progress. The listener returns quickly and does not call back.
  void Listen(std::function<void(const Status&)> listener) {
    std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    if (listener_ && !why_.ok()) listener_(why_);
  }
  Status why() const {
    std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  mutable std::mutex mutex_;
  Status why_;
  std::function<void(const Status&)> listener_;
};

}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cluster/session/cancellation.h"

namespace heddle::cluster {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP asks `cancellation` to stop with kCancelled; a second
/// one ends the process with exit code 8, unless `survives`. A signal that was ignored before (nohup) stays
/// so. At most one at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(Cancellation& cancellation, bool survives = false);
  ~InterruptGuard();
  /// Whether one of the signals, SIGTERM or SIGHUP, wants the process to end.
  bool wants_end() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::cluster

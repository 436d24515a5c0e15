// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"

namespace heddle::engine {

/// How rank 0 tells the other ranks of a job what it decided (plans, checks): in order, whole, to all of
/// them. Bulk data never travels here. Implemented by GrpcLink and, for tests, by InProcessChannels.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  /// Sends `decision` to every other rank. Rank 0 only. Returns at once.
  virtual void Broadcast(const std::string& decision) = 0;
  /// The next decision of rank 0, waiting for it. All ranks but 0. An error once Interrupt was called.
  virtual Result<std::string> Receive() = 0;
  /// Makes the present and every later Receive return `why`. Any thread.
  virtual void Interrupt(const Status& why) = 0;
};

}  // namespace heddle::engine

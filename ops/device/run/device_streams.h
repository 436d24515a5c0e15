// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/programs/stream.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// The queues of the streams of devices in one lane of runs: one a stream, made when its first act comes and
/// kept. One thread uses the queues; GiveUp may be called by any.
class DeviceStreams {
 public:
  struct Stream {
    ComputeDevice* device = nullptr;
    DeviceQueue* queue = nullptr;
  };

  /// kUnimplemented: this process does not have the device. kUnavailable: it is lost.
  Result<Stream> Find(Device device, StreamKind kind, DeviceSet* devices);

  /// A command of the device has failed that was queued: what its memory holds is not known any more. Nobody
  /// asks it again; its queues stay until the end of the lane, since their commands may still run.
  void GiveUp(Device device, const Status& why);

 private:
  using Key = std::pair<DeviceType, uint32_t>;
  Status LostBecause(Device device);

  std::mutex mutex_;  // Of the next.
  std::map<Key, Status> lost_;
  std::map<std::pair<Key, StreamKind>, std::unique_ptr<DeviceQueue>> queues_;
};

}  // namespace heddle::ops

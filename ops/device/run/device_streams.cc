// SPDX-License-Identifier: Apache-2.0
#include "ops/device/run/device_streams.h"

#include <vector>

namespace heddle::ops {

Result<DeviceStreams::Stream> DeviceStreams::Find(Device device, StreamKind kind, DeviceSet* devices) {
  Stream stream;
  if (devices != nullptr) {
    const std::vector<ComputeDevice*> all = devices->devices();
    if (device.index < all.size()) stream.device = all[device.index];
  }
  if (stream.device == nullptr) return Unimplemented("this process has no device {}", device.index);
  HEDDLE_RETURN_IF_ERROR(LostBecause(device));
  std::unique_ptr<DeviceQueue>& queue = queues_[{{device.type, device.index}, kind}];
  if (queue == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(queue, stream.device->MakeQueue());
  }
  stream.queue = queue.get();
  return stream;
}

Status DeviceStreams::LostBecause(Device device) {
  const std::lock_guard lock(mutex_);
  const auto found = lost_.find({device.type, device.index});
  return found == lost_.end() ? OkStatus() : found->second;
}

void DeviceStreams::GiveUp(Device device, const Status& why) {
  const std::lock_guard lock(mutex_);
  lost_.try_emplace({device.type, device.index}, Unavailable("{}", why.message()));
}

}  // namespace heddle::ops

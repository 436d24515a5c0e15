// SPDX-License-Identifier: Apache-2.0
#include "engine/devices/memory_on_device.h"

#include <algorithm>

#include "core/values/sizes.h"
#include "engine/session/planning.h"
#include "ops/device/opencl/usable_devices.h"
#include "scheduler/devices/scratch_on_device.h"
#include "scheduler/plan_memory.h"

namespace heddle::engine {

std::optional<MemoryOnDevice> MemoryOnDeviceOf(const Plan& plan) {
  const auto stream = std::find_if(plan.streams.begin(), plan.streams.end(),
                                   [](const StreamDescription& s) { return !s.device.IsHost(); });
  if (stream == plan.streams.end()) return std::nullopt;
  const ops::ComputeDevice* const device = ops::UsableDevice(stream->device);
  if (device == nullptr) return std::nullopt;
  return MemoryOnDevice{.device = stream->device,
                        .memory_bytes = device->description().memory_bytes,
                        .is_host = device->description().is_host,
                        .values = scheduler::PeakOnDevice(plan, stream->device),
                        .working = scheduler::ScratchOnDevice(plan, device->description())};
}

void SetDeviceRoom(const SessionOptions& session, Plan* plan) {
  const std::optional<scheduler::DeviceOptions> asked = scheduler::ParseDevices(session.devices);
  const ops::ComputeDevice* const device = asked ? ops::UsableDevice(asked->device) : nullptr;
  if (device == nullptr) return;
  // A plan without the device leaves all of it, but not all of the memory that both may share.
  const std::optional<MemoryOnDevice> needed = MemoryOnDeviceOf(*plan);
  Plan::DeviceRoom& room = plan->device_room;
  room.bytes = RoomOnDevice(device->description().memory_bytes);
  if (needed) room.bytes -= SaturatingSum(needed->values, needed->working);
  room.is_host = device->description().is_host;
  if (!room.is_host || MemoryOf(session) <= 0) return;
  const std::vector<int64_t>& of_ranks = plan->pool_bytes;
  const int64_t most = of_ranks.empty() ? 0 : *std::max_element(of_ranks.begin(), of_ranks.end());
  room.of_host = MemoryOf(session) - most;
}

}  // namespace heddle::engine

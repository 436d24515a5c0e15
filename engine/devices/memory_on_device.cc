// SPDX-License-Identifier: Apache-2.0
#include "engine/devices/memory_on_device.h"

#include <algorithm>

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

}  // namespace heddle::engine

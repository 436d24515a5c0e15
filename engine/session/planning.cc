// SPDX-License-Identifier: Apache-2.0
#include "engine/session/planning.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ops/base/machine_constants.h"
#include "ops/device/opencl/rates.h"
#include "ops/device/opencl/usable_devices.h"
#include "ops/device/run/run_phases_on_device.h"
#include "ops/device/run/run_on_device.h"
#include "ops/fused/fused.h"
#include "scheduler/memory_of_plan.h"

namespace heddle::engine {

Result<compiler::FuseOptions> FuseOptionsOf(const SessionOptions& session) {
  compiler::FuseOptions options;
  HEDDLE_RETURN_IF_ERROR(compiler::SetMode(session.fusion, &options));
  options.memory_budget = session.memory_bytes;
  options.constants = session.constants;
  options.threads = session.threads;
  options.ranks = session.ranks;
  options.min_distributed_bytes = session.min_distributed_bytes;
  options.can_run = ops::CanRunFused;
  options.fuses_wide_products = session.devices == "cpu";
  if (session.devices != "cpu")
    options.can_run_in_phases = [](const Graph& graph, NodeId node) {
      return ops::CanRunInPhases(graph, node).ok();
    };
  return options;
}

int64_t MemoryOf(const SessionOptions& session) {
  return session.memory_bytes > 0 ? session.memory_bytes : session.available_bytes;
}

int64_t RoomOfPanels(const SessionOptions& session, int64_t planned, int64_t working, int64_t others) {
  if (session.panel_bytes > 0) return session.panel_bytes;
  const int64_t memory = MemoryOf(session);
  if (memory == 0) return INT64_MAX;
  return std::max<int64_t>(0, memory - scheduler::BytesForKernels(memory, working) - others - planned);
}

int64_t RoomOnDevice(int64_t memory_bytes) {
  constexpr int64_t kPartForKernels = 16;  // What they write for the host, and drivers keep for themselves.
  return memory_bytes - memory_bytes / kPartForKernels;
}

namespace {

void AddCosts(ops::ComputeDevice& device, int32_t ranks, scheduler::DeviceOptions* options) {
  options->rates = ops::RatesOf(options->device);
  // All ranks plan the same, and what one of them has compiled is not what others have: there each kernel
  // counts as new.
  options->new_kernel = [&device, ranks](const Node& node,
                                         std::span<const ValueInfo> inputs) -> std::optional<std::string> {
    ops::DeviceOperators& operators = ops::DeviceOperators::Of(device);
    std::string kernel = operators.KernelOf(node, inputs);
    if (kernel.empty() || (ranks == 1 && operators.IsCompiled(kernel))) return std::nullopt;
    return kernel;
  };
}

}  // namespace

int64_t RoomOnDevice(const SessionOptions& session) {
  const std::optional<scheduler::DeviceOptions> device = scheduler::ParseDevices(session.devices);
  const ops::ComputeDevice* const there = device ? ops::UsableDevice(device->device) : nullptr;
  return there == nullptr ? 0 : RoomOnDevice(there->description().memory_bytes);
}

scheduler::ScheduleOptions ScheduleOptionsOf(const SessionOptions& session) {
  scheduler::ScheduleOptions options;
  options.ranks = session.ranks;
  options.min_distributed_bytes = session.min_distributed_bytes;
  options.memory_bytes = session.memory_bytes;
  options.panel_bytes = session.panel_bytes;
  options.constants = ops::OrBuiltIn(session.constants, session.threads);
  options.device = scheduler::ParseDevices(session.devices);
  if (options.device) {
    // Where there is none, the processor has all memory that there is for a plan.
    ops::ComputeDevice* const device = ops::UsableDevice(options.device->device);
    if (device == nullptr) {
      options.device.reset();
      return options;
    }
    options.device->memory_bytes = RoomOnDevice(device->description().memory_bytes);
    options.device->description = device->description();
    if (options.device->rule == scheduler::DeviceOptions::Rule::kByCost)
      AddCosts(*device, session.ranks, &*options.device);
  }
  return options;
}

}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/programs/plan.h"
#include "core/values/value.h"
#include "ops/device/device.h"
#include "scheduler/schedule.h"
#include "tests/support/simulated_device.h"

// Random scripts with a device, planned, and run on the simulated one in the deterministic simulation.
namespace heddle::testing_support {

inline constexpr Device kGpu = {DeviceType::kOpenCl, 0};
constexpr int64_t kColumnsOfCase = 4;

/// nullptr: this machine has no OpenCL device, which runs the kernels.
ops::ComputeDevice* RealDevice();

using Pieces = std::vector<std::map<std::string, Value>>;  ///< By rank: variables.

struct DeviceRun {
  uint64_t seed = 0;
  /// Acts of the device end when their commands are done: its memory is what the plan says.
  bool ends_with_commands = false;
  /// A mutation: this copy, of those that wait for their commands from 0 on, does not.
  int64_t hasty_wait = -1;
  int64_t most_delay_ns = 1000;  ///< Of what the host does.
};
struct DeviceRunReport {
  int64_t waits = 0;     ///< Of copies for their commands.
  int64_t makespan = 0;  ///< In nanoseconds of the simulation.
};

/// The live-outs of a run, each in the memory of the host. kInternal where a task has cells in another memory
/// than its device's, or cells that nothing has read back yet.
Result<Pieces> RunPlan(const Plan& plan, const Pieces& live_in, const DeviceRun& run, SimulatedDevice* device,
                       DeviceRunReport* report = nullptr);

/// A script of operators of which devices run most, and the processor some, over matrices of two widths with
/// `rows` rows; ranks that have rows of them, or all; and their cells.
struct CaseOnDevice {
  Graph graph;
  int32_t ranks = 1;
  std::map<std::string, Distribution> where;
  Pieces live_in;

  explicit CaseOnDevice(uint64_t seed, int64_t rows = 150, int32_t most_ranks = 3);
  Plan PlanOf(std::optional<scheduler::DeviceOptions> device) const { return PlanOf(std::move(device), 0); }
  /// In panels of about so many bytes; 0: not in panels.
  Plan PlanOf(std::optional<scheduler::DeviceOptions> device, int64_t panel_bytes) const;
};

/// Y = exp(abs(X)), of an X with so many rows.
Graph ExpOfPanels(int64_t rows);
/// Bytes of granules of its three values, where X has at most 4,096 rows.
constexpr int64_t kGranuleOfExp = 64 * 3 * 8 * kColumnsOfCase;

/// All that it can run, or a random half of it.
scheduler::DeviceOptions OptionsOfDevice(uint64_t seed);

/// A variable that stays on the device comes out under another name, and is compared under its own.
void ExpectSame(const Pieces& expected, const Pieces& actual);

}  // namespace heddle::testing_support

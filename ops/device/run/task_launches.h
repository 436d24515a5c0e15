// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// Work-groups that do so many tasks of a tile program: others run while one waits for memory.
int64_t WorkGroupsOf(int64_t tasks, const DeviceDescription& device);

/// About the work (Cost::work) of a call that goes through the rows of input `driver`, memory counted as work
/// that takes as long: those rows that it has of all for which the operator states its cost. Of a CSR driver
/// some steps go along the entries, and others write rows out.
double WorkOf(const KernelCall& call, int driver);

/// How the tasks of a pass of a tile program are shared among launches: as few as take about 50 ms each on a
/// device that computes doubles slowly (ProductLimits), and each has work for the whole device.
struct TaskLaunches {
  int64_t tasks = 0;
  int64_t at_once = 0;  ///< Tasks of a launch; the last one has the rest.

  /// `work`: of all tasks (WorkOf).
  static TaskLaunches Of(int64_t tasks, double work, const DeviceDescription& device);
  int64_t count() const { return CeilDivide(tasks, at_once); }
};

}  // namespace heddle::ops

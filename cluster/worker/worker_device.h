// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"

namespace heddle::cluster {

/// A device that executors of a worker may use.
struct WorkerDevice {
  std::string device;   ///< "opencl:0"; "": none.
  std::string name;     ///< As its driver calls it.
  std::string why_not;  ///< Where there is none although one was asked for: a line for people.
};

/// The device of a worker with `--devices DEVICES`: "cpu" is none, "auto" the one with the fastest memory that
/// is not the processor itself, "opencl:N" that one if it computes as the processor does. Another process
/// (`heddle devices`) opens the drivers, so that the worker holds nothing of a device and outlives a driver
/// that does not. kUnavailable where that process cannot be started or says nothing for a minute.
Result<WorkerDevice> FindWorkerDevice(const std::string& devices);

/// The same of what `heddle devices --json` has printed.
Result<WorkerDevice> ChooseWorkerDevice(const std::string& devices, const std::string& listed);

}  // namespace heddle::cluster

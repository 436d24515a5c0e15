// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "cluster/cli/arguments.h"
#include "ops/device/opencl/rates.h"
#include "scheduler/devices/device_options.h"

namespace heddle::cluster::cli {

/// --devices of run, sim and explain.
inline constexpr Option kDevicesOption = {
    "devices", Option::Kind::kValue, "NAME",
    "cpu (default), auto: what is faster on a device than here, opencl:0: all that this device can run "
    "('heddle devices'; same results)"};
inline constexpr Option kDevicesOptions[] = {kDevicesOption};

/// What it says, as SessionOptions::devices has it: "auto" is the fastest device of this machine, and the
/// processor where there is none. kUsage for another word.
inline Result<std::string> ReadDevices(const Arguments& arguments) {
  const std::string name = arguments.Value(kDevicesOption.name).value_or("cpu");
  if (name == "auto") {
    const std::optional<Device> fastest = ops::FastestDevice();
    return fastest ? fmt::format("{}:{}/cost", Name(fastest->type), fastest->index) : "cpu";
  }
  if (name != "cpu" && !scheduler::ParseDevices(name))
    return Usage("--devices takes cpu, auto, or opencl:0 to opencl:127, not '{}'", name)
        .WithNote("'heddle devices' lists the devices of this machine");
  return name;
}

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/cli/arguments.h"
#include "ops/device/device.h"

namespace heddle::cluster::cli {

/// --devices of run, sim and explain.
inline constexpr Option kDevicesOption = {
    "devices", Option::Kind::kValue, "NAME",
    "cpu (default), or opencl:0 for what that device can run ('heddle devices'; same results)"};
inline constexpr Option kDevicesOptions[] = {kDevicesOption};

/// What it says. kUsage for another word.
inline Result<std::string> ReadDevices(const Arguments& arguments) {
  const std::string name = arguments.Value(kDevicesOption.name).value_or("cpu");
  if (name != "cpu" && !ops::ParseDevice(name))
    return Usage("--devices takes cpu, or opencl:0 to opencl:127, not '{}'", name)
        .WithNote("'heddle devices' lists the devices of this machine");
  return name;
}

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/cli/arguments.h"

namespace heddle::cluster::cli {

/// --devices of run, sim, repl and explain: devices of this machine.
inline constexpr Option kDevicesOption = {
    "devices", Option::Kind::kValue, "NAME",
    "cpu (default), auto: what is faster on a device than here, opencl:0: all that this device can run "
    "('heddle devices'; same results)"};
inline constexpr Option kDevicesOptions[] = {kDevicesOption};

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/device/device.h"

namespace heddle::ops {

/// All devices of all OpenCL drivers of the machine, numbered in the order in which these tell of them. They
/// are opened by the first call, for the rest of the process. kUnavailable where there is no OpenCL.
Result<DeviceSet*> OpenClDevices();

}  // namespace heddle::ops

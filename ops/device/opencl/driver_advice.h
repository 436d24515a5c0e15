// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::ops {

/// What to do on a machine whose OpenCL knows no device, in one line without a full stop: from the drivers
/// that are there, the files in the loader's folder (OCL_ICD_VENDORS, or /etc/OpenCL/vendors) that name them,
/// and the device files of the kernel.
std::string AdviceOnDrivers();

}  // namespace heddle::ops

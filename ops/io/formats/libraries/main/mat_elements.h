// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/status.h"
#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops {

/// Whether a file of MATLAB 5 is whole: each element has the bytes that its head says, and what is packed can
/// be unpacked up to its checksum. libmatio gives zeros for what is not there. kDataLoss when something is
/// missing. Source: MAT-File Format (MathWorks), "Version 5 MAT-File Format".
Status CheckMatElements(const ModuleInput& input);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/status.h"
#include "ops/io/formats/libraries/format_module.h"

// Reading: which matrix of a file is meant, what its sizes are, and its cells.
namespace heddle::ops::hdf5 {

/// As Hdf5Module::open.
Result<std::unique_ptr<StoredArray>> OpenHdf5(const ModuleInput& input, const ArrayChoice& choice);

}  // namespace heddle::ops::hdf5

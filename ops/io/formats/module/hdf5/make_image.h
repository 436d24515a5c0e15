// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"
#include "ops/io/formats/libraries/format_module.h"

// Writing: cells never come to the library, which is asked for the bytes around them.
namespace heddle::ops::hdf5 {

/// As Hdf5Module::make_image.
Result<Hdf5Image> MakeImage(int64_t rows, int64_t columns, const std::string& dataset);

}  // namespace heddle::ops::hdf5

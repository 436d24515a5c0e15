// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ops/formats/libraries/format_module.h"

namespace heddle::ops {

/// An array that a process of its own has open. HDF5's library ends with a fault of memory, or goes round
/// for ever, on some damaged files; a process is what can be lost then. `open` runs there, and so do all
/// reads; sizes and cells come back through a socket. The process ends with the result. No other thread may
/// be inside the library meanwhile.
///
/// Fails as `open` does; kDataLoss when its process ends before it answers, kResourceExhausted when there can
/// be no further process. `path` is for messages.
Result<std::unique_ptr<Hdf5Array>> OpenInProcess(
    const std::string& path, const std::function<Result<std::unique_ptr<Hdf5Array>>()>& open);

}  // namespace heddle::ops

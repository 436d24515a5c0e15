// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops {

/// An array that a process of its own has open. The libraries of these formats end with a fault of memory, go
/// round for ever, or take all the memory of the machine on some damaged files; a process is what can be lost
/// then. `open` runs there, and so do all reads; sizes and cells come back through a socket. The process ends
/// with the result. No other thread may be inside the library meanwhile.
///
/// The process holds what MemoryBudget::Process() is charged for it: `bytes_of_open` and some room for the
/// library while it lives, and what a read takes from the first read on, which is refused before it begins
/// where the budget has no room. An allocation beyond that fails, and with it the open or the read:
/// kResourceExhausted with the numbers. Nothing but time bounds it under sanitizers.
///
/// Fails as `open` does; kDataLoss when its process ends before it answers, kResourceExhausted when there can
/// be no further process. `path` and `library` are for messages.
Result<std::unique_ptr<StoredArray>> OpenInProcess(
    const std::string& path, const std::string& library, int64_t bytes_of_open,
    const std::function<Result<std::unique_ptr<StoredArray>>()>& open);

}  // namespace heddle::ops

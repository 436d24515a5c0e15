// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/status.h"

namespace heddle {

/// The status code with this number, as messages between processes carry it; nothing where no code has it: a
/// number from outside is none before it was looked at.
std::optional<StatusCode> FindStatusCode(int64_t number);

}  // namespace heddle

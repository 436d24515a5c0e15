// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace heddle {

/// The note of every refusal for want of memory: what its reader can do.
inline constexpr std::string_view kWaysOutOfMemory =
    "give more memory (--memory SIZE), use more workers, or work on fewer rows at a time";

}  // namespace heddle

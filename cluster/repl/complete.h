// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "engine/interactive/complete_entry.h"

namespace heddle::cluster {

/// Completes `text`, the line up to the cursor: commands of the loop behind a ":" that begins it, else
/// statements.
engine::Completions Complete(std::string_view text, const engine::InteractiveSession& session);

}  // namespace heddle::cluster

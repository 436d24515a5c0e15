// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace heddle::cluster {

/// A text as one frame of zstd. kResourceExhausted when memory is out.
Result<std::string> Pack(std::string_view text);
/// The text of a frame. `what` names it in errors: kDataLoss when it is damaged, kResourceExhausted beyond
/// `most_bytes`.
Result<std::string> Unpack(const std::string& packed, const std::string& what, int64_t most_bytes);

}  // namespace heddle::cluster

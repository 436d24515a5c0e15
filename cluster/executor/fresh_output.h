// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::cluster {

/// The part of what an attempt has printed that no attempt before it has. All attempts of a job print the
/// same bytes: `text` starts at byte `offset` of them, and `have` bytes are there already. Empty where `text`
/// brings nothing new, or where bytes before it are missing.
inline std::string_view FreshOutput(int64_t have, int64_t offset, std::string_view text) {
  const int64_t end = offset + static_cast<int64_t>(text.size());
  if (end <= have || offset > have) return {};
  return text.substr(static_cast<size_t>(have - offset));
}

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace heddle::ops {

/// The spec as JSON that any reader takes: words without quotes, but for true, false, null and numbers, and
/// texts in single quotes get double ones.
std::string QuoteWords(std::string_view text);

}  // namespace heddle::ops

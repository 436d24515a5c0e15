// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace heddle::ops {

/// JSON as DML writes it (specs of transforms, metadata of files) as JSON that any reader takes: words
/// without quotes, but for true, false, null and numbers, and texts in single quotes get double ones; commas
/// before the end of a list or an object go. "", which is no JSON, where more than 100 brackets are open.
std::string StrictJson(std::string_view text);

}  // namespace heddle::ops

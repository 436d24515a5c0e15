// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle::compiler {

/// Bytes of the well-formed UTF-8 character that starts at `offset` (1 to 4), or 0 if there is none. Overlong
/// forms, surrogates and values above U+10FFFF are not well-formed.
size_t Utf8Length(std::string_view text, size_t offset);

}  // namespace heddle::compiler

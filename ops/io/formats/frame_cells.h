// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/values/schema.h"

// The cells of frames in files of text. nullopt: the text is no cell of a column of that type.
namespace heddle::ops {

/// FP64, or FP32, which is rounded.
std::optional<double> DoubleInText(std::string_view text, ColumnType type);
/// INT64 or INT32; a fraction is cut off.
std::optional<int64_t> IntegerInText(std::string_view text, ColumnType type);
/// true, t, 1, false, f, 0 in any case.
std::optional<bool> BooleanInText(std::string_view text);
/// Of a CHARACTER.
bool IsOneCharacter(std::string_view text);

}  // namespace heddle::ops

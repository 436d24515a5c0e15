// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/values/frame.h"

namespace heddle::ops {

/// A column of strings, those without a value missing. kResourceExhausted.
Result<Column> TextColumn(std::span<const std::optional<std::string>> cells);

/// The texts of a column's cells, as scalars have them; without a value where one is missing.
std::optional<std::string> TextOfCell(const Frame& frame, int64_t row, int64_t column);

/// Columns C1 to Cn of strings.
std::shared_ptr<const Schema> SchemaOfTexts(int64_t columns);

}  // namespace heddle::ops

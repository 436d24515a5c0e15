// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

// Values in the JSON of specs. Some scripts put numbers and booleans in quotes.
namespace heddle::ops {

/// The object, whose keys and words need no quotes; `example` shows the user one. kInvalidArgument.
Result<nlohmann::json> ParseSpecJson(std::string_view op, std::string_view text, std::string_view example);

std::string LowerLetters(std::string text);  ///< Of ASCII.
std::string TextOfJson(const nlohmann::json& value);
/// The same for messages, cut.
std::string ShownJson(const nlohmann::json& value);
std::optional<int64_t> WholeNumberOfJson(const nlohmann::json& value);
std::optional<bool> FlagOfJson(const nlohmann::json& value);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::fuzz {

/// The tokens of a script, blanks and comments among them, so that they join to the same text again. Any
/// bytes can be split; what is no DML becomes tokens of one byte.
std::vector<std::string> SplitTokens(std::string_view text);
std::string JoinTokens(const std::vector<std::string>& tokens);

/// The lines of a text, each with its line end.
std::vector<std::string> SplitLines(std::string_view text);

bool IsNameToken(std::string_view token);
bool IsNumberToken(std::string_view token);
bool IsOperatorToken(std::string_view token);

}  // namespace heddle::fuzz

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/value.h"

// Dictionaries of columns while ranks put them together.
namespace heddle::ops {

/// One distinct cell, or word, of a column.
struct Token {
  int64_t dictionary = 0;  ///< Which dictionary it is in: a column may have one of cells and one of words.
  int64_t rank = 0;        ///< The first rank that has it,
  int64_t index = 0;       ///< and its place there among those of the dictionary, in order of appearance.
  int64_t count = 0;       ///< How often it counts for the mode.
  std::string_view text;
};

/// A row each, to travel, and back: texts stand in the frame.
Result<Value> FrameOfTokens(std::span<const Token> tokens);
std::vector<Token> TokensOf(const Frame& frame);

/// The rank that puts together what all ranks know of a token.
int32_t OwnerOf(const Token& token, int32_t ranks);

/// Tokens of all ranks, each once: of one rank after the other, whose texts outlive the result.
std::vector<Token> MergedTokens(std::span<const Value* const> of_ranks);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/map/java_regex.h"

// How tokenize() cuts texts, and what it says of the tokens: a JSON object (language reference 3.15) as plain
// data.
namespace heddle::ops {

enum class TokenOutput : uint8_t { kCount, kPosition, kHash };

struct TokenizeSpec {
  std::optional<JavaRegex> separator;  ///< What stands between tokens; unset: blanks.
  bool ngrams = false;                 ///< Neighbouring tokens, or parts of each, instead of tokens.
  bool ngrams_of_letters = false;      ///< Of the characters of each token.
  int64_t min_gram = 1, max_gram = 2;
  TokenOutput output = TokenOutput::kCount;
  bool sorted = false;                  ///< kCount: tokens in alphabetical order.
  int64_t features = int64_t{1} << 20;  ///< kHash: so many numbers.
  int64_t text_column = 0;              ///< From 0.
  std::vector<int64_t> id_columns;      ///< From 0; stand before the tokens of each row.
  bool wide = false;                    ///< One row for each text.
  bool padded = false;                  ///< As many tokens as there may be, the last ones empty.
};

/// `op` is the function that reports errors: kInvalidArgument.
Result<TokenizeSpec> ParseTokenizeSpec(std::string_view op, std::string_view text);

struct Token {
  std::string text;
  int64_t position = 0;  ///< Of its first character in the text, from 0, in units of UTF-16.
};

/// The tokens of a text, in their order; n-grams by their length first. Once `cancelled` is set not all of
/// them. kFailedPrecondition for a text that is too long for the regular expression.
Result<std::vector<Token>> TokensOf(std::string_view text, const TokenizeSpec& spec,
                                    const std::atomic<bool>* cancelled = nullptr);

/// What a row of the result says: a token and a number, or two numbers.
struct TokenRow {
  std::string text;    ///< kCount, kPosition.
  int64_t number = 0;  ///< kCount: how often; kPosition: where, from 1; kHash: the code of the token, from 1.
  int64_t count = 0;   ///< kHash: how often.
};

/// The rows for one text, at most `most` of them. Tokens that are counted stand in the order in which
/// a HashMap of Java has them, or sorted; codes ascend.
std::vector<TokenRow> TokenRows(std::vector<Token> tokens, const TokenizeSpec& spec, int64_t most);

/// kHash in one row: how often each of the codes 1 to `count` occurs.
std::vector<int64_t> TokenCodes(const std::vector<Token>& tokens, const TokenizeSpec& spec, int64_t count);

}  // namespace heddle::ops

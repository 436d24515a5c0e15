// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/shape.h"

namespace heddle::ops {

/// "ij,jk->ik" taken apart: the letters of each operand, one or two, and of the result, at most two.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
};

/// kInvalidArgument unless it is an equation for so many operands.
Result<EinsumEquation> ParseEinsum(std::string_view text, size_t operands);

/// The size of every letter, kUnknown where no operand tells. An operand of one letter is a column or a row.
/// An error with `code` when two operands tell different sizes.
using LetterSizes = std::map<char, int64_t>;
Result<LetterSizes> SizesOfLetters(const EinsumEquation& equation, std::span<const Shape> shapes,
                                   StatusCode code);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/values/frame.h"

namespace heddle::ops {

/// UtilFunctions.syntacticalPatternDiscovery(threshold, replacement): in each column of strings, cells that
/// are written otherwise than most are replaced. The way a text is written is a pattern, read ever less
/// exactly on six levels; the first level where one pattern is that of more than `threshold` of the cells
/// decides. Of several such patterns the most frequent counts, of equally frequent ones the first in order.
struct SyntacticPatterns {
  double threshold = 0;
  std::string replacement;

  /// The arguments in the brackets of `text`. kInvalidArgument.
  static Result<SyntacticPatterns> Parse(std::string_view text);
  /// kFailedPrecondition for a column that is not of strings; kResourceExhausted.
  Result<Frame> Apply(const Frame& frame) const;
};

constexpr int kPatternLevels = 6;
/// The pattern of a text on a level, from 1: runs of digits (d), small (l) and large letters (u), blanks (s),
/// points (t), minus signs and others (y) with their lengths; from 2 on without lengths (+); from 3 on small
/// and large letters are one kind (a); from 4 on a number is one run with its point; from 5 on words are one
/// run with their blanks; on 6 a minus before a number is part of it.
std::string PatternOf(std::string_view text, int level);

}  // namespace heddle::ops

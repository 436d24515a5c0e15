// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace heddle::engine {

/// What the matrices of a random program are like.
struct RandomShapes {
  int64_t times_rows = 1;   ///< Drawn matrices have so many times their usual 1 to 2001 rows.
  bool may_be_wide = true;  ///< False: no value has as many columns as another one has rows.
  /// Nearly all statements work row by row or reduce rows, and many end their block: values are variables.
  bool by_rows = false;
};

/// A program of matrices whose sizes are known to it or not; every statement is right for every size. It
/// prints sums of all of its variables. Same seed, same program.
std::string RandomMatrixProgram(uint64_t seed, const RandomShapes& sizes = {});
/// The same of frames of three columns, of every type.
std::string RandomFrameProgram(uint64_t seed);

}  // namespace heddle::engine

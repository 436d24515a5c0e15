// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/parse/ast.h"

namespace heddle::compiler {

/// Whether the iterations of a parfor can be seen as independent.
struct ParallelForReport {
  struct Conflict {
    std::string variable;
    SourceRange range;  ///< Of the write.
    std::string why;
  };
  std::vector<Conflict> conflicts;
  /// Variables of before the loop that loops inside count with: each iteration has its own.
  std::vector<std::string> locals;
  std::vector<std::string> merged;  ///< Variables of before the loop of which iterations write cells.
  std::vector<std::string> sums;    ///< Variables of before the loop that are summed up with +=.
};

/// Checks the body of a parfor. `outer` holds the variables of before the loop and their types.
///
/// Accepted writes to them: x += e where x is not used otherwise; loops inside as above; X[...] = e where one
/// dimension of every access to X (the rows or the columns) is an interval whose ends are linear in the loop
/// variable, so that the intervals of two iterations cannot overlap. The coefficients may be other variables
/// that the loop does not change: X[(i-1)*k+1 : i*k, ] is fine.
ParallelForReport CheckParallelFor(const Statement& loop, const std::map<std::string, DataType>& outer);

/// True if a round of the loop may read `name` before it has assigned it: what the round before left there,
/// or what was there before the loop.
bool ReadsOfEarlierRounds(const Statement& loop, const std::string& name);

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
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
  /// What was taken for granted, and has to be looked at before iterations run at once: these variables hold
  /// natural numbers (the loop's own: in all rounds),
  std::set<std::string> natural;
  std::set<std::string> upward;  ///< and loops inside over these variables count up.
};

/// Checks the body of a parfor. `outer` holds the variables of before the loop and their types, `argument`
/// finds arguments of the script. With `trusts_unchecked` parfors inside with check=0 are taken at their
/// word.
///
/// Accepted writes to them: x += e where x is not used otherwise; loops inside as above; X[...] = e where the
/// rows or the columns of any two accesses to X (one a write) are intervals with ends that are linear in the
/// loop variable and those of loops inside, so that those of two iterations cannot overlap: one begins behind
/// the end of the other in the round before, or in every round, or both are single numbers that differ by no
/// multiple of what they grow by. The coefficients may be other variables that the loop does not change:
/// X[(i-1)*k+1 : i*k, ] is fine.
ParallelForReport CheckParallelFor(const Statement& loop, const std::map<std::string, DataType>& outer,
                                   const std::function<std::optional<Scalar>(const std::string&)>& argument,
                                   bool trusts_unchecked);

/// True if a round of the loop may read `name` before it has assigned it: what the round before left there,
/// or what was there before the loop.
bool ReadsOfEarlierRounds(const Statement& loop, const std::string& name);

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/program.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// What a call runs: a function of the program, and for its parameters the caller's variables (nullptr for
/// one without a value), elements of a list, or defaults.
struct ResolvedCall {
  const Function* function = nullptr;
  std::vector<std::pair<std::string_view, const Variable*>>
      arguments;                   ///< By the names that the program has.
  std::vector<Variable> defaults;  ///< Those that `arguments` point to; never more than there is room for.
};

/// The function of a call: the only one, or the candidate for the name and the first argument that the
/// caller's variables hold, which are the same on every rank. Errors, at the place of the call:
/// kFailedPrecondition when there is none, when it takes other arguments or gives no result, or when a list
/// does not hold its arguments; kUnimplemented for one that Heddle does not run.
Result<ResolvedCall> ResolveCall(const Program& program, const Block& call, const VariableTable& caller);

}  // namespace heddle::engine

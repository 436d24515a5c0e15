// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "compiler/parse/ast.h"
#include "compiler/parse/diagnostics.h"

namespace heddle::compiler {

/// What the options of a parfor say that counts here. The others tell SystemDS how to spread the loop over
/// its own kind of cluster; they are looked at, so that a misspelt one is an error, and have no effect.
struct ParallelForOptions {
  bool is_checked = true;    ///< check
  int32_t most_workers = 0;  ///< par; 0: as many as may be.
};

/// Calls report(option, message) for each value that is none, and adds what to do; `argument` finds arguments
/// of the script, by which a value may be given: mode=$m. `is_missing` is called for one that is not found.
ParallelForOptions ReadParallelForOptions(
    const Statement& loop, const std::function<std::optional<Scalar>(const std::string& name)>& argument,
    const std::function<void(const ParallelForOption& option, const std::string& name)>& is_missing,
    const std::function<Diagnostic&(const ParallelForOption& option, std::string message)>& report);

}  // namespace heddle::compiler

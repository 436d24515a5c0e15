// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/programs/plan.h"
#include "core/status.h"

namespace heddle::compiler {

/// What `-explain recompile_hops` tells of each part of a block that is compiled while a script runs: where
/// it stands, for which sizes of its variables, how it runs, and what was other when the part was compiled
/// before.
class Recompilations {
 public:
  /// A line about a plan (its text), or about a graph that runs without one, which is a plan without tasks.
  Result<std::string> Describe(std::string_view plan);

 private:
  struct Compiled {
    int64_t count = 0;
    std::map<std::string, std::string> sizes;  // of the variables, the last time
  };
  std::map<std::string, Compiled> parts_;  // by their places and variables
};

}  // namespace heddle::compiler

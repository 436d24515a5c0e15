// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/program.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// The variables of one call, as far as they are known without running: matrices and frames by their sizes,
/// scalars by their values. What is not known has no entry.
struct ProgramScope {
  VariableTable frame;
  std::map<std::string, int64_t> values;  ///< The number of the value of each; names may share one.

  void Set(const std::string& name, Variable variable, int64_t value);
  void Erase(const std::string& name);
};

/// Leaves in `scope` what it and `other` have in common, two ways from where `before` was: of a variable
/// whose sizes differ, those that agree, under the number `*last_value` + 1 and so on. What only one of them
/// has stays if it was made on that way.
void Join(const ProgramScope& before, const ProgramScope& other, int64_t* last_value, ProgramScope* scope);

/// The same behind a loop, whose body began with what `before` says and has run once: what the body makes
/// stays. True where sizes differ.
bool JoinBehindLoop(const ProgramScope& before, int64_t* last_value, ProgramScope* scope);

/// Takes the scalars out that the blocks give a value.
void ForgetScalars(const std::vector<Block>& blocks, ProgramScope* scope);

/// Whether both tell the same of the same variables.
bool AreAlike(const std::vector<std::pair<std::string, Variable>>& a,
              const std::vector<std::pair<std::string, Variable>>& b);

/// What a matrix or frame takes on one of `ranks` ranks, in bytes; 0 where its size is not known.
int64_t HeldBytes(const Variable& variable, int32_t rank, int32_t ranks);

}  // namespace heddle::engine

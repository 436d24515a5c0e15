// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/gradient/activity.h"
#include "compiler/gradient/gradient.h"

namespace heddle::compiler {

/// What the blocks of a function share while their adjoints are written.
struct AdjointState {
  const Activity* activity = nullptr;
  std::map<std::string, ValueInfo, std::less<>>* types = nullptr;  ///< Of variables of the function.
  /// Variables whose adjoints have a value where the next backward block will be.
  std::set<std::string> present;
  int* next_name = nullptr;

  /// A variable that no other function's code has, of this type.
  std::string NewName(const ValueInfo& type) {
    std::string name = fmt::format("{}{}", kMadeName, ++*next_name);
    (*types)[name] = TypeOnly(type);
    return name;
  }
  const ValueInfo& TypeOf(const std::string& variable) const {
    static const ValueInfo unknown;
    const auto found = types->find(variable);
    return found == types->end() ? unknown : found->second;
  }
};

/// The variable that holds the adjoint of a variable.
std::string AdjointName(const std::string& variable);

/// The graph that computes the adjoints of what a straight-line block reads from those of what it assigns;
/// empty where none of these is present. Values that it needs become variables that `block` assigns, too.
/// Error: an operator without a derivative (kInvalidArgument, with its place).
Result<Graph> AdjointGraph(Block* block, AdjointState* state);

}  // namespace heddle::compiler

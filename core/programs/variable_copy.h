// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/programs/distribution.h"

// A variable may be on the ranks in several distributions at once: as the plan that assigned it left it, and
// as *copies* that later plans made when they moved it, for the plans behind them (docs/distribution.md).
namespace heddle {

/// The name by which a plan finds, or leaves, the copy of `variable` in that distribution
/// (Binding::variable). No variable of a script has such a name.
std::string NameOfCopy(std::string_view variable, const Distribution& distribution);
/// The variable of which a binding with that name is a copy; "" where it is none.
std::string_view VariableOfCopy(std::string_view name);

}  // namespace heddle

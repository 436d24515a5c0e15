// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/help/describe_value.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

using compiler::Describe;
/// The same of a value, with what it holds: "double 3.5", "string \"a\"".
std::string Describe(const Variable& variable);

}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/recursion/structure/structure_program.h"

namespace heddle::ops {

/// The steps of a program as people read them, one a line with its number, before PrepareSteps has put any
/// together: "3: r4 = T[r0, r3]", "6: unless r5 go to 9", "7: call r4", "8: give r6".
std::string ToText(const StructureProgram& program);

}  // namespace heddle::ops

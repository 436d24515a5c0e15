// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/recursion/number_facts.h"
#include "compiler/recursion/recognise.h"

namespace heddle::compiler {

/// Fills in `structure`, `numbers` and `given` of a function that meets the conditions: all predicates,
/// bounds of loops and nodes of calls are structural.
void CompileStructure(const Function& function, const NumberFacts& facts, Recursion* recursion);

}  // namespace heddle::compiler

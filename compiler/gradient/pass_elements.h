// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/programs/program.h"

namespace heddle::compiler {

/// Lets recursions that are to be differentiated take elements of a list instead of the list (a model), so
/// that their derivatives are by matrices and run in batches of nodes (docs/gradient.md): calls net(T, n,
/// model) of a function that reads as.matrix(model["W"]) become calls of a copy of it with a parameter for
/// that matrix. The caller takes the elements out of its list, ahead of the loops that do not change the
/// list; that is where one that is missing is found, at the place of the function that reads it.
///
/// Adds such copies of `function` and of those that it calls to the program and returns the key of its copy,
/// which has the parameters and results of `function`. `function` itself where no recursion takes such a list
/// (ListUses). Keys of copies are added to `copies`. Keeps bits.
std::string PassElements(const std::string& function, Program* program, int32_t* next_block_id,
                         std::set<std::string>* copies);

}  // namespace heddle::compiler

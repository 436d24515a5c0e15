// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

/// A script of every kind of statement: assignments, cells, branches, loops, functions, files, text. About
/// half of those without hostile parts run to their end.
std::string GenerateScript(Chooser& choose);

}  // namespace heddle::fuzz

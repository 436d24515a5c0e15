// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

struct GeneratedScript {
  std::string text;
  std::string library;  ///< What it sources as "library.dml"; empty: nothing.
};

/// A script of every kind of statement: assignments, cells, branches, loops, functions, files, text. About
/// half of those without hostile parts run to their end.
GeneratedScript GenerateScript(Chooser& choose);

/// A few statements that hold about as much as the memory allows: large matrices, text that doubles, sorted
/// and inverted copies, long files.
std::string GenerateLargeScript(Chooser& choose);

}  // namespace heddle::fuzz

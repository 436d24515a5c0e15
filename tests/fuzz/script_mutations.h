// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

/// One to several changes of a script: tokens or lines left out, doubled, swapped, numbers made hostile,
/// names and operators exchanged, pieces of `other` put in, or single bytes changed.
std::string MutateScript(const std::string& script, const std::string& other, Chooser& choose);

}  // namespace heddle::fuzz

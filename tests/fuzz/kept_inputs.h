// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace heddle::fuzz {

/// What is kept for an inlet: the inputs that once did harm (tests/fuzz/inputs/INLET/*), and those by which
/// `deploy/fuzz --keep` reached most code (tests/fuzz/corpus/INLET, a line of base64 each).
std::vector<std::string> KeptInputs(const std::string& inlet);

}  // namespace heddle::fuzz

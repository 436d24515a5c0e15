// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace heddle::fuzz {

/// The inputs of an inlet that once did harm (tests/fuzz/inputs/INLET/*).
std::vector<std::string> HarmfulInputs(const std::string& inlet);

/// Small inputs by which `deploy/fuzz --keep` reached most code (tests/fuzz/corpus/INLET, a line of base64
/// each); none where nothing is kept.
std::vector<std::string> CorpusOf(const std::string& inlet);

}  // namespace heddle::fuzz

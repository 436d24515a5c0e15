// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_case.h"

namespace heddle::fuzz {

/// The fewest pieces, in their order, for which `fails` still holds, as far as leaving out runs of pieces
/// finds them (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002); `fails`
/// holds for all of them. It is asked at most `most_tries` times.
std::vector<std::string> MinimizePieces(std::vector<std::string> pieces,
                                        const std::function<bool(const std::vector<std::string>&)>& fails,
                                        int most_tries);

/// The same for the files of a case: first by lines, then by tokens.
FuzzCase MinimizeCase(const FuzzCase& c, const std::function<bool(const FuzzCase&)>& fails);

}  // namespace heddle::fuzz

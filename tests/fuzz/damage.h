// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

/// One of the inputs, damaged in one to four places: bits, bytes and pieces changed, doubled, moved, cut off
/// or taken from another input; sizes as text or as little-endian integers replaced by huge ones.
std::string Damaged(const std::vector<std::string>& inputs, Chooser& choose);

}  // namespace heddle::fuzz

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle {

/// The text of a message as it is shown. Messages quote what a script or a caller has given (names, paths,
/// texts), whatever its length: of a line of more than 1000 bytes the first 600 and the last 300 stay, "..."
/// between them. So the fixed words on both sides of what is quoted are seen. Characters are not cut.
std::string WithShortLines(std::string text);

}  // namespace heddle

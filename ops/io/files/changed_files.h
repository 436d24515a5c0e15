// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::ops {

/// The environment variable that names a file to which a process appends the path of each file that it has
/// replaced, a line each: so `heddle verify` learns what a script writes, whichever process does it.
inline constexpr const char* kChangedFilesVariable = "HEDDLE_CHANGED_FILES";

/// Appends the path where somebody listens. Thread-safe, and of several processes at once.
void NoteChangedFile(const std::string& path);

}  // namespace heddle::ops

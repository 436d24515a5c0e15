// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/language_server/workspace.h"

namespace heddle::cluster {

/// Serves one editor until it says "exit" or closes the input. Returns the exit code of the process: 0 after
/// "shutdown", else 1.
int ServeEditor(int input, int output, LanguageServerSettings settings);

}  // namespace heddle::cluster

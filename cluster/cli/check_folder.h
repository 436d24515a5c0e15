// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/cli/arguments.h"

namespace heddle::cluster::cli {

/// check --compat FOLDER: which of the scripts below a folder run and, of the others, what is missing; as
/// text or, with --json, as one object. Arguments of scripts are open, and every function of a script counts
/// as called. Returns the exit code: 0 when all run, 3 when one does not, 4 without a folder.
int CheckFolder(const std::string& folder, const Arguments& arguments);

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"

// A backup of a master is one file: its job store as of one moment (a database of SQLite), with the small
// files of its folder (tokens and identities) in a table beside the jobs.
namespace heddle::cluster {

/// The job store of a master's folder.
std::string JobStoreFile(const std::string& folder);

/// Makes a backup of the master on `folder` in the file `backup`, which must not be there. The master may go
/// on meanwhile, in this process or another. kResourceExhausted when it cannot be read or written whole.
Status BackUp(const std::string& folder, const std::string& backup);

/// What stands in a backup.
struct BackupFacts {
  int64_t made_ms = 0;  ///< By the wall clock.
  int64_t jobs = 0;
  int64_t files = 0;
};
/// Makes the folder of a master of a backup. kUsage for a file that is none, kDataLoss for one that is
/// damaged, kFailedPrecondition for one of a newer version and for a folder in which something is already:
/// nothing is changed then.
Result<BackupFacts> Restore(const std::string& backup, const std::string& folder);

}  // namespace heddle::cluster

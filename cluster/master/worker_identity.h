// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cluster/access/master_folder.h"
#include "cluster/placement/membership.h"
#include "core/status.h"

// Who a worker is: a name for people, and a secret that only it knows. The secret's hash is the uuid by which
// the master and administrators know it, so that whoever knows the uuid cannot be that worker.
namespace heddle::cluster {

/// An identity that no other running worker of this user has.
struct WorkerIdentity {
  std::string name;
  std::string folder;  ///< Where it is kept, with the logs of the worker's executors.
  std::string secret;
  bool is_new = false;  ///< It was made just now, so that no master knows it.
  std::string place;    ///< Of the folder: two processes that say the same one cannot run at the same time.
  std::unique_ptr<FolderLock> lock;
};

/// The identity called `name`, below the folder of the user's state; "": the first free one of "<host>-1",
/// "<host>-2", ... Made when missing. kUsage for a name that is none or is taken.
Result<WorkerIdentity> TakeIdentity(const std::string& state_folder, const std::string& name);

/// The name of this machine, in characters that may be shown.
std::string HostName();

/// What a worker says of itself goes into tables, logs and messages of others: kUsage for names that are too
/// long or hold anything but plain characters, and for numbers out of range.
Status CheckDescription(const WorkerDescription& description);

}  // namespace heddle::cluster

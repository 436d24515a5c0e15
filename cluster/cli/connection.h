// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cli/arguments.h"
#include "cluster/client.h"

namespace heddle::cluster::cli {

/// Options of every verb that talks to a master.
std::vector<Option> ConnectionOptions();

/// The folder of `heddle master --dev`, where the other verbs look for it.
std::string DevelopmentFolder();

/// The master that the options name, or else the one of this user's folder. kUnavailable when there is none.
Result<MasterAddress> FindMaster(const Arguments& arguments);

/// A client of that master.
Result<std::unique_ptr<Client>> ConnectToMaster(const Arguments& arguments);

}  // namespace heddle::cluster::cli

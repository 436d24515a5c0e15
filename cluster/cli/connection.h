// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cli/arguments.h"
#include "cluster/client/client.h"
#include "cluster/access/token_store.h"

namespace heddle::cluster::cli {

/// Options of every verb that talks to a master, and those with --json of every verb that asks it something.
std::vector<Option> ConnectionOptions();
std::vector<Option> MasterVerbOptions();

/// The folder of `heddle master --dev`, where the other verbs look for it.
std::string DevelopmentFolder();

/// An address as gRPC takes it: HOST:PORT or unix:/path; a path alone is taken for the latter. kUsage for
/// anything else.
Result<std::string> CheckAddress(std::string_view option, const std::string& address);
/// The same for what is no socket: HOST:PORT.
Result<std::string> CheckPort(std::string_view option, const std::string& address);

/// The master that the options name, or else the one of this user's folder, and the token that they name, or
/// else the one called `token` in this folder; of kWorkerToken "" where there is no such file. kUnavailable
/// when there is no master.
Result<MasterAddress> FindMaster(const Arguments& arguments, std::string_view token);

/// A client or an administrator of that master.
Result<std::unique_ptr<Client>> ConnectToMaster(const Arguments& arguments,
                                                std::string_view token = kClientToken);

}  // namespace heddle::cluster::cli

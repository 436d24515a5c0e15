// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "cluster/access/access_control.h"

namespace heddle::cluster {

/// Serves Tokens: makes, lists, rotates and revokes the tokens of a master. `access` outlives the server.
std::unique_ptr<grpc::Service> MakeTokensService(const AccessControl* access);

}  // namespace heddle::cluster

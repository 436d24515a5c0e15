// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "cluster/network/acceptor.h"

namespace heddle::cluster {

/// A server that listens to what an Acceptor hands on, instead of to an address. The taker may be used once
/// the server has been started, and no more when it is shut down.
Acceptor::Taker TakeConnections(grpc::ServerBuilder* builder,
                                const std::shared_ptr<grpc::ServerCredentials>& credentials);

/// Closes connections that say nothing: those that do not greet, and those without a call.
void BoundSilence(grpc::ServerBuilder* builder);

}  // namespace heddle::cluster

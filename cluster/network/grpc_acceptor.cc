// SPDX-License-Identifier: Apache-2.0
#include "cluster/network/grpc_acceptor.h"

namespace heddle::cluster {
namespace {

constexpr int kGreetingMs = 10'000;
constexpr int kIdleMs = 60'000;  // callers open another connection when they have something to say again

using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;

}  // namespace

Acceptor::Taker TakeConnections(grpc::ServerBuilder* builder,
                                const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> server =
      builder->experimental().AddExternalConnectionAcceptor(External::FROM_FD, credentials);
  return [server](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    server->HandleNewConnection(&connection);
  };
}

void BoundSilence(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kGreetingMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
}

}  // namespace heddle::cluster

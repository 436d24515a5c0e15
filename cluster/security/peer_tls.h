// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "core/status.h"

// How executors of different machines know each other. Each makes a key and a certificate of its own when it
// starts. The key never leaves the process; the certificate reaches the peers with the rank table, over the
// connections of workers and master. A caller accepts this one certificate and nothing else; the one that is
// called asks for the token of the attempt.
namespace heddle::cluster {

struct PeerIdentity {
  std::string certificate;  ///< PEM, signed by its own key (ECDSA, P-256).
  std::string key;          ///< PEM.
};

Result<PeerIdentity> MakePeerIdentity();
std::shared_ptr<grpc::ServerCredentials> PeerServerCredentials(const PeerIdentity& identity);
/// For calls to the one executor that shows `certificate`.
std::shared_ptr<grpc::ChannelCredentials> PeerChannelCredentials(const std::string& certificate,
                                                                 grpc::ChannelArguments* arguments);

}  // namespace heddle::cluster

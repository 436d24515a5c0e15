// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/network/address.h"
#include "cluster/network/tls_files.h"
#include "core/status.h"

// Who may talk to the master, and how both sides know each other (runtime reference 5.12).
namespace heddle::cluster {

/// Messages above this are refused.
constexpr int kMostMessageBytes = 64 << 20;

/// What becomes of a call of this method ("/heddle.Jobs/Submit") with this header "authorization".
using Screen = std::function<grpc::Status(std::string_view path, std::string_view authorization)>;

/// Errors: those of ReadTlsFiles. `screen` is asked as soon as the headers of a call are here, before a byte
/// of its messages is taken in (cluster/access/access_control.h). Without TLS only for a local address
/// (IsLocalAddress).
Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const std::string& address,
                                                                       const TlsFiles& tls, Screen screen);
Result<std::shared_ptr<grpc::Channel>> MakeMasterChannel(const std::string& address, const TlsFiles& tls);

/// Adds token, version and protocol to a call. What the master makes of them:
/// cluster/access/access_control.h.
void AddCaller(const std::string& token, grpc::ClientContext* context);
/// What the answer of a call says of the master's version when it differs from ours: a warning for the user,
/// or "".
std::string VersionWarning(const grpc::ClientContext& context);

/// A Status on its way through gRPC, with its place and notes.
grpc::Status ToGrpc(const Status& status);
/// Of the master at `address`.
Status FromGrpc(const grpc::Status& status, const std::string& address);
/// True when the call did not get through, as far as gRPC can tell: the server has said nothing.
bool IsUnreachable(const grpc::Status& status);
/// The same, and why it cannot be reached (WhyUnreachable), which may take a few seconds.
Status FromGrpc(const grpc::Status& status, const std::string& address, const TlsFiles& tls);

}  // namespace heddle::cluster

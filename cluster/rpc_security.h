// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "cluster/address.h"
#include "cluster/tls_files.h"
#include "core/status.h"

// Who may talk to the master, and how both sides know each other (runtime reference 5.12).
namespace heddle::cluster {

/// Messages above this are refused.
constexpr int kMostMessageBytes = 64 << 20;

/// Errors: those of ReadTlsFiles. Calls without `token` are refused as soon as their headers are here, before
/// a byte of their messages is taken in; AdmitCaller says the rest. Without TLS only for a local address
/// (IsLocalAddress).
Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const std::string& address,
                                                                       const TlsFiles& tls,
                                                                       const std::string& token);
Result<std::shared_ptr<grpc::Channel>> MakeMasterChannel(const std::string& address, const TlsFiles& tls);

/// Adds token, version and protocol to a call.
void AddCaller(const std::string& token, grpc::ClientContext* context);
/// The one place that lets a call in: every method of every service asks first. UNAUTHENTICATED without the
/// token (compared in constant time), FAILED_PRECONDITION when the caller speaks another protocol. Tells the
/// caller our version.
grpc::Status AdmitCaller(const std::string& token, grpc::ServerContextBase* context);
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

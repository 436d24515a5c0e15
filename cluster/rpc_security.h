// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "core/status.h"

// Who may talk to the master, and how both sides know each other (runtime reference 5.12).
namespace heddle::cluster {

/// Files of a server's or client's TLS; empty for plain text.
struct TlsFiles {
  std::string certificate;  ///< Of this side (PEM).
  std::string key;
  std::string authority;  ///< Certificates that the other side's must be signed by.
};

/// Messages above this are refused.
constexpr int kMostMessageBytes = 64 << 20;

/// True for addresses that other machines cannot reach: unix:..., unix-abstract:..., localhost, 127.x.y.z,
/// [::1].
bool IsLocalAddress(const std::string& address);

/// kNotFound for files that cannot be read; kUsage for a certificate without a key.
Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsFiles& tls);
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
Status FromGrpc(const grpc::Status& status, const std::string& address);

}  // namespace heddle::cluster

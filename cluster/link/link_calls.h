// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "cluster/link/grpc_stream.h"
#include "cluster/security/grpc_hello.h"
#include "core/status.h"
#include "proto/executor.pb.h"

// The calls between executors: who may make one, and over which connection.
namespace heddle::cluster {

using ControlReactor = grpc::ServerBidiReactor<ControlFrame, ControlFrame>;
using DataReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

/// Takes the calls of peers that may call. Called on gRPC's threads.
class LinkCalls {
 public:
  virtual ~LinkCalls() = default;
  virtual ControlReactor* AcceptControl(grpc::CallbackServerContext* context, int rank) = 0;
  virtual DataReactor* AcceptData(grpc::CallbackServerContext* context, int rank) = 0;
};

/// A reactor that ends its call at once.
ControlReactor* RefuseControl(const grpc::Status& status);
DataReactor* RefuseData(const grpc::Status& status);

/// The listening side. Refuses callers of another attempt, job or version (grpc_hello.h).
class LinkServer {
 public:
  /// `listen`: host:port (0: any free port) or unix:/path. An address that other machines reach is served by
  /// TLS only, with a certificate made for this server (peer_tls.h). kUnavailable when it cannot be bound.
  /// `calls` outlives it.
  static Result<std::unique_ptr<LinkServer>> Start(const std::string& listen, const Hello& own,
                                                   LinkCalls* calls);
  virtual ~LinkServer() = default;

  virtual const std::string& endpoint() const = 0;
  virtual const std::string& certificate() const = 0;  ///< PEM; "" without TLS.
  /// Lets calls end for `grace_ms`, then breaks them. When it returns gRPC has done with all of them.
  virtual void Shutdown(int64_t grace_ms) = 0;
};

/// Opens calls to one executor, each over a connection of its own (HTTP/2 flow control is shared by the
/// streams of a connection). A call waits for the executor to be reachable. kPermissionDenied for another
/// machine without certificate.
Status CallControl(const std::string& endpoint, const std::string& certificate,
                   ClientStream<ControlFrame>* stream);
Status CallData(const std::string& endpoint, const std::string& certificate,
                ClientStream<grpc::ByteBuffer>* stream);

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>

namespace prometheus {
class Collectable;
class Registry;
}  // namespace prometheus

namespace heddle::cluster {

/// Counts the calls of a gRPC server: how many of each method ended with which code, so that refusals are
/// among them, and how long those took that are no streams. Thread-safe.
class RpcMetrics {
 public:
  RpcMetrics();
  /// What it has counted, for a MetricsServer.
  std::shared_ptr<prometheus::Collectable> collectable() const;
  /// Counts a call of a method that was turned away before the server's counter saw it.
  void CountRefused(const std::string& method, grpc::StatusCode code) const;
  /// Counts the calls of a server that is built with it.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCounter() const;

 private:
  std::shared_ptr<prometheus::Registry> registry_;
};

}  // namespace heddle::cluster

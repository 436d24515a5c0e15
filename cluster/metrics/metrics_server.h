// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/network/tls_files.h"
#include "core/status.h"

namespace prometheus {
class Collectable;
}

namespace heddle::cluster {

/// Answers HTTP on a port of its own: /metrics in the text format of Prometheus, /healthz (200 as long as the
/// process answers) and /readyz (200, or 503 with the reason). Says nothing of jobs' contents.
class MetricsServer {
 public:
  struct Sources {
    std::vector<std::shared_ptr<prometheus::Collectable>> collectables;  ///< Asked at every scrape.
    std::function<Status()> ready;  ///< Not Ok: why the process cannot do its work now.
    /// Whether who shows this value of the header "Authorization" may see the numbers, and why the process is
    /// not ready. UNAUTHENTICATED without a token that is known, PERMISSION_DENIED for one of another role,
    /// UNAVAILABLE when nobody can tell at present, RESOURCE_EXHAUSTED when too many ask. Empty: everybody
    /// may.
    std::function<grpc::Status(std::string_view authorization, const std::string& peer)> admits;
  };
  /// Listens on HOST:PORT (port 0: any) when it returns. kUnavailable when the address cannot be bound.
  /// `tls`: certificate and key of HTTPS, which are read again within seconds of a change; empty for plain
  /// HTTP; errors as of ReadTlsFiles.
  static Result<std::unique_ptr<MetricsServer>> Start(const std::string& address, const TlsFiles& tls,
                                                      Sources sources);
  virtual ~MetricsServer() = default;  ///< Waits for the answers in progress.
  virtual const std::string& address() const = 0;
};

/// What every process tells of itself: memory, processor time, descriptors, start.
std::shared_ptr<prometheus::Collectable> ProcessMetrics();

}  // namespace heddle::cluster

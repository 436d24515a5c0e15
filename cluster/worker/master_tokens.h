// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "cluster/client/client.h"
#include "core/status.h"

namespace heddle::cluster {

/// Asks the master what tokens are for. Thread-safe.
class MasterTokens {
 public:
  /// `find_master` as of WorkerOptions; called on any thread.
  explicit MasterTokens(std::function<Result<MasterAddress>()> find_master)
      : find_master_(std::move(find_master)) {}

  /// Whether a token sees the metrics of the master: UNAUTHENTICATED for one that the master does not know,
  /// PERMISSION_DENIED for one of another role, UNAVAILABLE when no master answers within three seconds.
  grpc::Status MaySeeMetrics(const std::string& token);

 private:
  Result<std::shared_ptr<grpc::Channel>> ChannelTo(const MasterAddress& master);

  const std::function<Result<MasterAddress>()> find_master_;
  std::mutex mutex_;
  std::string address_;  // of the channel
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cluster/client/client.h"
#include "core/status.h"

namespace heddle::cluster {

/// Who may see the metrics of a worker: whoever shows a token of the master's with a role that sees those of
/// the master, as the master says at that moment, or the token that this worker was given. Thread-safe.
class MasterTokens {
 public:
  /// `find_master` as of WorkerOptions; called on any thread. `own_token`: "" for none.
  MasterTokens(std::function<Result<MasterAddress>()> find_master, std::string own_token)
      : find_master_(std::move(find_master)), own_token_(std::move(own_token)) {}

  /// `authorization`: the value of that header. UNAUTHENTICATED for a token that the master does not know,
  /// PERMISSION_DENIED for one of another role, UNAVAILABLE when no master answers within seconds.
  grpc::Status MaySeeMetrics(std::string_view authorization);

 private:
  Result<std::shared_ptr<grpc::Channel>> ChannelTo(const MasterAddress& master);

  const std::function<Result<MasterAddress>()> find_master_;
  const std::string own_token_;
  std::mutex mutex_;
  std::string address_;  // of the channel
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace heddle::cluster

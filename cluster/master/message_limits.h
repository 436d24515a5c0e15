// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/executor/start_limits.h"
#include "core/status.h"
#include "proto/master.pb.h"

// What may stand in a message. Whoever takes a message from another process checks it here first, so that
// nothing behind needs to: kInvalidArgument names the field, its value and its limits.
namespace heddle::cluster {

/// How people and tables call a worker: letters, digits, '-', '_' and '.', not first; 1 to 64 of them.
bool IsWorkerName(std::string_view name);

/// How people call a token, and whose it is: letters, digits, '-', '_', '.' and '@', 1 to 64 of them.
bool IsTokenName(std::string_view name);

/// Of users to the master.
Status CheckMessage(const SubmitRequest& request);
Status CheckMessage(const ProgressRequest& request);
Status CheckMessage(const ListRequest& request);
Status CheckMessage(const JobRequest& request);
Status CheckMessage(const WatchRequest& request);
Status CheckMessage(const RetryRequest& request);
Status CheckMessage(const DrainRequest& request);
Status CheckMessage(const GarbageRequest& request);
Status CheckMessage(const RemoveRequest& request);
Status CheckMessage(const CreateTokenRequest& request);
Status CheckMessage(const TokenRequest& request);
Status CheckMessage(const RotateTokenRequest& request);
/// Of workers to the master. What a worker says of itself: CheckDescription
/// (cluster/master/worker_identity.h).
Status CheckMessage(const WorkerIntroduction& introduction);
Status CheckMessage(const ExecutorReport& report);
Status CheckMessage(const Swept& swept);
/// Of the master to workers.
Status CheckMessage(const Welcome& welcome);
Status CheckMessage(const ExecutorOrder& order);

}  // namespace heddle::cluster

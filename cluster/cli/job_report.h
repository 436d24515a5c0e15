// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/cli/arguments.h"
#include "cluster/client/client.h"
#include "proto/master.pb.h"

namespace heddle::cluster::cli {

/// How long a client waits for a master that has gone away while it follows a job.
constexpr int64_t kMasterPatienceMs = 60'000;

/// One JSON object: id, state, script, reason, attempt, workers, times, and the outcome of a finished job.
std::string ToJson(const JobDescription& job);

/// Warns when the master is of another version.
void WarnOfVersion(const Client& client);

/// Follows a job to its end: output to stdout if `print`, then statistics (-stats) and outcome. Ctrl-C
/// detaches and says how to attach again. Returns the exit code: that of the job, or of what ended the
/// following (8 for Ctrl-C).
int FollowJob(const Arguments& arguments, Client& client, const std::string& job, bool print);

}  // namespace heddle::cluster::cli

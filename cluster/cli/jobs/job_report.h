// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cluster/cli/arguments.h"
#include "cluster/cli/run_files.h"
#include "cluster/client/client.h"
#include "proto/master.pb.h"

namespace heddle::cluster::cli {

/// How long a client waits for a master that has gone away while it follows a job.
constexpr int64_t kMasterPatienceMs = 60'000;

/// A name or reason may hold the end of a line; a row of a table does not.
std::string FirstLine(const std::string& text);

/// One JSON object: id, state, script, reason, attempt, workers, times, and the outcome of a finished job.
std::string ToJson(const JobDescription& job);

/// Warns when the master is of another version.
void WarnOfVersion(const Client& client);

/// What FollowJob shows of a job.
struct Following {
  bool print = true;                ///< Its output, on stdout.
  std::optional<int> log_rank;      ///< Instead of the output: what the executor of this rank says;
  int log_attempt = 0;              ///< in this attempt, 0: in the last one.
  const RunFiles* files = nullptr;  ///< Written at its end; nullptr: none.
};
/// Follows a job to its end, with a line of progress on stderr; then statistics (-stats) and outcome. Ctrl-C
/// detaches and says how to attach again. Returns the exit code: that of the job, or of what ended the
/// following (8 for Ctrl-C).
int FollowJob(const Arguments& arguments, Client& client, const std::string& job, const Following& following);

}  // namespace heddle::cluster::cli

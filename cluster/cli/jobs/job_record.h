// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/cli/run_files.h"
#include "cluster/client/client.h"

namespace heddle::cluster::cli {

/// How many events of each thread are kept of a job that is recorded.
constexpr int64_t kRecordedEventsOfJob = 8'192;

/// Writes the report and the trace of a finished job. Errors: those of Client::Record and of the files.
Status WriteFilesOfJob(Client& client, const std::string& job, const RunFiles& files);

}  // namespace heddle::cluster::cli

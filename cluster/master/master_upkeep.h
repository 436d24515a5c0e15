// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cluster/master/master_hub.h"
#include "cluster/master/master_server.h"
#include "core/status.h"
#include "proto/master.pb.h"

// What administrators ask of a master that runs.
namespace heddle::cluster {

/// The master itself: clock, version, disk, certificate.
void ServeAbout(const MasterOptions& options, int64_t started_ms, AboutReply* reply);
/// The options that are in force.
void ServeConfig(const MasterOptions& options, ConfigReply* reply);
/// A backup of the master's folder (cluster/store/store_backup.h), part by part. `write` is false when nobody
/// reads it any more.
Status ServeBackup(const MasterOptions& options, const std::function<bool(const BackupPart&)>& write);
/// Forgets finished jobs by age and by size, and removes what an earlier master has left in its folder, and
/// executors on the workers that are here. `given_up` says whether nobody waits for the reply.
Status ServeGarbage(MasterHub* hub, const MasterOptions& options, const GarbageRequest& request,
                    const std::function<bool()>& given_up, GarbageReply* reply);

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/master/master_hub.h"
#include "core/status.h"
#include "proto/master.pb.h"

// What the master tells of jobs that it knows.
namespace heddle::cluster {

/// The jobs that fit, newest first, each in a line's worth of text.
void ServeList(MasterHub* hub, const ListRequest& request, ListReply* reply);
/// All that is known of one job. kNotFound for one that is not known.
Status ServeGet(MasterHub* hub, const std::string& job, JobDescription* reply);
/// What a report of a job is made of. kFailedPrecondition for one that is not finished or was not recorded.
Status ServeRecord(MasterHub* hub, const std::string& job, JobRecord* reply);

}  // namespace heddle::cluster

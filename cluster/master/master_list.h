// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/access/token_store.h"
#include "cluster/master/master_hub.h"
#include "core/status.h"
#include "proto/master.pb.h"

// What the master tells of jobs that it knows, each caller of those that own_jobs.h lets him see.
namespace heddle::cluster {

/// The jobs that fit, newest first, each in a line's worth of text.
void ServeList(MasterHub* hub, const Caller& caller, const ListRequest& request, ListReply* reply);
/// All that is known of one job. kNotFound for one that is not known, or that the caller may not see.
Status ServeGet(MasterHub* hub, const Caller& caller, const std::string& job, JobDescription* reply);
/// What a report of a job is made of. kNotFound for one that the caller may not use, kFailedPrecondition for
/// one that is not finished or was not recorded.
Status ServeRecord(MasterHub* hub, const Caller& caller, const std::string& job, JobRecord* reply);

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/access/token_store.h"
#include "cluster/master/job.h"
#include "cluster/master/master_core.h"
#include "core/status.h"
#include "proto/master.pb.h"

// Whose jobs a caller may see, and cancel: own ones, or everybody's.
namespace heddle::cluster {

/// See its output and cancel it: the owner, operators, admins.
bool MayUse(const Caller& caller, const Job& job);
/// See how it stands: these, and viewers.
bool SeesStateOf(const Caller& caller, const Job& job);

/// kNotFound for a job that there is not, and in the same words for one that the caller may not use, or see.
Result<const Job*> FindToUse(const MasterCore& core, const Caller& caller, const std::string& job);
Result<const Job*> FindToSee(const MasterCore& core, const Caller& caller, const std::string& job);

/// Takes away what a script may have put into the reasons of a failure: values.
void HideWhy(JobDescription* job);

}  // namespace heddle::cluster

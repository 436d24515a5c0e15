// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/own_jobs.h"

#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

constexpr const char* kHidden = "its owner and operators see why";

Result<const Job*> FindIf(const MasterCore& core, const Caller& caller, const std::string& id,
                          bool (*may)(const Caller& caller, const Job& job)) {
  HEDDLE_ASSIGN_OR_RETURN(const Job* job, core.Find(id));
  if (may(caller, *job)) return job;
  return core.NoJob(id);
}

}  // namespace

bool MayUse(const Caller& caller, const Job& job) {
  return caller.roles.HasAnyOf({Role::kOperator, Role::kAdmin}) ||
         (caller.roles.Has(Role::kSubmitter) && caller.owner == job.specification.owner);
}

bool SeesStateOf(const Caller& caller, const Job& job) {
  return caller.roles.Has(Role::kViewer) || MayUse(caller, job);
}

Result<const Job*> FindToUse(const MasterCore& core, const Caller& caller, const std::string& job) {
  return FindIf(core, caller, job, MayUse);
}
Result<const Job*> FindToSee(const MasterCore& core, const Caller& caller, const std::string& job) {
  return FindIf(core, caller, job, SeesStateOf);
}

void HideWhy(JobDescription* job) {
  job->clear_statistics();
  const auto hide = [](const std::string& state, std::string* reason) {
    if (state == Name(JobState::kFailed) || state == Name(JobState::kRecovering)) *reason = kHidden;
  };
  hide(job->state(), job->mutable_reason());
  for (Transition& transition : *job->mutable_transitions())
    hide(transition.state(), transition.mutable_reason());
  Status outcome;
  if (job->status().empty() || !engine::DecodeStatus(job->status(), &outcome).ok() || outcome.ok()) return;
  job->set_status(engine::EncodeStatus(Status(outcome.code(), kHidden)));
}

}  // namespace heddle::cluster

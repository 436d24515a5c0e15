// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_list.h"

#include <algorithm>
#include <string_view>

#include "cluster/master/master_wire.h"
#include "cluster/master/own_jobs.h"
#include "core/text/utf8.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// `sees_why`: the caller may search for what the job failed of; others would learn it, guess by guess.
bool Fits(const Job& job, bool sees_why, const ListRequest& request) {
  const auto is_state = [&](const std::string& state) { return state == Name(job.state); };
  if (request.states_size() > 0 && !std::ranges::any_of(request.states(), is_state)) return false;
  if (request.since_ms() != 0 && job.submitted_ms < request.since_ms()) return false;
  if (request.until_ms() != 0 && job.submitted_ms >= request.until_ms()) return false;
  if (!request.after().empty() && NumberOfJob(job.id) >= NumberOfJob(request.after())) return false;
  if (!Has(job.specification.script, request.name())) return false;
  const std::string& text = request.text();
  return text.empty() || Has(job.id, text) || Has(job.specification.script, text) ||
         (sees_why && (Has(job.reason, text) || Has(job.outcome.message(), text)));
}

// A list has many jobs, and a script may say anything when it stops: all of it is told of one job only.
void MakeLineOf(const Job& job, JobDescription* description) {
  constexpr size_t kMostTextBytes = 1000;
  description->clear_statistics();
  description->set_reason(std::string(CutAtCharacter(description->reason(), kMostTextBytes)));
  if (description->status().size() <= kMostTextBytes) return;
  const Status& outcome = job.outcome;
  description->set_status(engine::EncodeStatus(
      Status(outcome.code(), std::string(CutAtCharacter(outcome.message(), kMostTextBytes)))
          .At(outcome.position())));
}

// Of a rank; those of its workers where the job did not say. 0: they are not here any more.
int ThreadsOf(const MasterCore& core, const Job& job) {
  int threads = job.specification.options.threads;
  if (threads > 0) return threads;
  for (const std::string& uuid : job.workers) {
    const auto worker = core.membership().workers().find(uuid);
    if (worker != core.membership().workers().end())
      threads = std::max(threads, worker->second.description.threads);
  }
  return threads;
}

}  // namespace

void ServeList(MasterHub* hub, const Caller& caller, const ListRequest& request, ListReply* reply) {
  hub->Call([&](MasterCore& core) {
    const std::vector<const Job*> jobs = core.Jobs();
    MasterCore::MissingWorkers missing;
    for (size_t i = jobs.size(); i > 0; --i) {
      const Job& job = *jobs[i - 1];
      const bool may_use = MayUse(caller, job);
      if (!SeesStateOf(caller, job) || !Fits(job, may_use, request)) continue;
      if (request.most() > 0 && reply->jobs_size() >= request.most()) {
        reply->set_more(true);
        break;
      }
      JobDescription* description = reply->add_jobs();
      ToProto(job, description);
      description->set_reason(EscapeInvalidUtf8(core.ReasonOf(job, &missing)));
      MakeLineOf(job, description);
      if (!may_use) HideWhy(description);
      description->set_progress(core.ProgressOf(job.id));
    }
    return true;
  });
}

Status ServeGet(MasterHub* hub, const Caller& caller, const std::string& id, JobDescription* reply) {
  return hub->Call([&](MasterCore& core) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const Job* job, FindToSee(core, caller, id));
    ToProto(*job, reply);
    MasterCore::MissingWorkers missing;
    reply->set_reason(EscapeInvalidUtf8(core.ReasonOf(*job, &missing)));
    if (const int64_t before = core.Before(*job); before > 0)
      reply->set_reason(
          fmt::format("{}; {} job{} before it", reply->reason(), before, before == 1 ? " comes" : "s come"));
    reply->set_progress(core.ProgressOf(id));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<JobTransition> transitions, hub->store().Transitions(id));
    for (const JobTransition& transition : transitions) ToProto(transition, reply->add_transitions());
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<JobFiles::Size> logs, core.Logs(id));
    for (const JobFiles::Size& log : logs) {
      LogDescription* description = reply->add_logs();
      description->set_attempt(log.attempt);
      description->set_rank(log.rank);
      description->set_first(log.first);
      description->set_end(log.first + log.bytes);
    }
    if (!MayUse(caller, *job)) HideWhy(reply);
    return OkStatus();
  });
}

Status ServeRecord(MasterHub* hub, const Caller& caller, const std::string& id, JobRecord* reply) {
  HEDDLE_RETURN_IF_ERROR(ServeGet(hub, caller, id, reply->mutable_job()));
  return hub->Call([&](MasterCore& core) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const Job* job, FindToUse(core, caller, id));
    if (!IsFinal(job->state))
      return FailedPrecondition("job {} has no report yet: it is {}", id, Name(job->state))
          .WithNote(fmt::format("wait for it with 'heddle job wait {}'", id));
    const engine::SessionOptions& options = job->specification.options;
    if (options.recorded_events == 0)
      return FailedPrecondition("job {} was not recorded", id)
          .WithNote("submit it with --record, --report FILE.html or --trace FILE.json");
    JobFiles& files = hub->store().files();
    HEDDLE_ASSIGN_OR_RETURN(std::vector<JobFile> records, files.Read(id, JobFileKind::kRecord));
    if (records.empty())
      return FailedPrecondition("nothing is left of what job {} has recorded", id)
          .WithNote(
              "an executor that is killed leaves no record; those of the oldest jobs go when they take too much room");
    for (JobFile& record : records) reply->add_records(std::move(record.bytes));
    HEDDLE_ASSIGN_OR_RETURN(std::vector<JobFile> sources, files.Read(id, JobFileKind::kSources));
    if (!sources.empty()) reply->set_sources(std::move(sources.front().bytes));
    reply->set_threads(ThreadsOf(core, *job));
    reply->set_fusion(options.fusion);
    return OkStatus();
  });
}

}  // namespace heddle::cluster

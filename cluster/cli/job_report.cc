// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/job_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cluster/cli/report.h"
#include "cluster/cli/run_script.h"
#include "cluster/master/job.h"
#include "cluster/process/interrupt.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {

std::string ToJson(const JobDescription& job) {
  nlohmann::ordered_json json;
  json["job"] = job.job();
  json["state"] = job.state();
  json["owner"] = job.owner();
  json["script"] = job.script();
  json["reason"] = job.reason();
  json["attempt"] = job.attempt();
  json["workers_wanted"] = job.workers_wanted();
  json["workers"] = std::vector<std::string>(job.workers().begin(), job.workers().end());
  json["submitted_ms"] = job.submitted_ms();
  json["output_bytes"] = job.output_bytes();
  const std::optional<JobState> state = ParseJobState(job.state());
  if (state && IsFinal(*state)) {
    json["finished_ms"] = job.finished_ms();
    json["outcome"] =
        nlohmann::ordered_json::parse(OutcomeJson(OutcomeOf(job)), nullptr, /*allow_exceptions=*/false);
  }
  if (job.transitions_size() > 0) {
    json["transitions"] = nlohmann::ordered_json::array();
    for (const Transition& transition : job.transitions())
      json["transitions"].push_back({{"state", transition.state()},
                                     {"attempt", transition.attempt()},
                                     {"reason", transition.reason()},
                                     {"time_ms", transition.time_ms()}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void WarnOfVersion(const Client& client) {
  if (const std::string warning = client.version_warning(); !warning.empty()) Warn(warning);
}

int FollowJob(const Arguments& arguments, Client& client, const std::string& job, bool print) {
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  Client::WatchEvents events;
  events.output = [&cancellation, print](std::string_view text) {
    if (print && !PrintOutput(text)) cancellation.Request(OutputStatus());
  };
  std::string told;
  events.state = [&](const JobDescription& description) {
    // Why nothing happens yet, or again.
    const bool waits =
        description.state() == Name(JobState::kQueued) || description.state() == Name(JobState::kRecovering);
    if (!waits || description.reason().empty() || description.reason() == told || arguments.Has("json"))
      return;
    told = description.reason();
    std::fputs(EscapeForTerminal(fmt::format("heddle: job {}: {}\n", job, told)).c_str(), stderr);
  };
  JobDescription last;
  const Status watched = client.Watch(job, /*follow=*/true, events, &cancellation, &last, kMasterPatienceMs);
  const std::string again = fmt::format("job {} goes on; to attach again: heddle job logs -f {}", job, job);
  if (Status output = OutputStatus(); !output.ok()) return ReportOutcome(arguments, output.WithNote(again));
  if (!cancellation.why().ok()) {
    std::fputs(
        fmt::format("heddle: detached from job {}, which goes on; to attach again: heddle job logs -f {}\n",
                    job, job)
            .c_str(),
        stderr);
    return ExitCode(cancellation.why());  // not success: nobody knows how the job ends
  }
  if (watched.code() == StatusCode::kUnavailable) return ReportOutcome(arguments, watched.WithNote(again));
  if (!watched.ok()) return ReportOutcome(arguments, watched);
  std::vector<engine::SessionStatistics> statistics;
  for (const std::string& text : last.statistics())
    if (Result<engine::SessionStatistics> one = engine::ParseStatistics(text); one.ok())
      statistics.push_back(*std::move(one));
  PrintStatistics(arguments, statistics);
  return ReportOutcome(arguments, OutcomeOf(last));
}

}  // namespace heddle::cluster::cli

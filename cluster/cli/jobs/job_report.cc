// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/jobs/job_report.h"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cluster/cli/jobs/job_record.h"
#include "cluster/cli/report.h"
#include "cluster/cli/run_script.h"
#include "cluster/master/job.h"
#include "cluster/process/interrupt.h"
#include "cluster/process/repeated_work.h"
#include "cluster/progress/shown_progress.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

// When a job that waits is spoken of: a short wait is none.
constexpr auto kFirstReminder = std::chrono::milliseconds(2'000);
constexpr auto kNextReminders = std::chrono::milliseconds(30'000);

}  // namespace

std::string ToJson(const JobDescription& job) {
  nlohmann::ordered_json json;
  json["job"] = job.job();
  json["state"] = job.state();
  json["owner"] = job.owner();
  json["script"] = job.script();
  json["reason"] = job.reason();
  if (!job.note().empty()) json["note"] = job.note();
  json["attempt"] = job.attempt();
  json["workers_wanted"] = job.workers_wanted();
  json["workers"] = std::vector<std::string>(job.workers().begin(), job.workers().end());
  json["priority"] = job.priority();
  if (job.threads_size() > 0) {
    json["threads"] = std::vector<int>(job.threads().begin(), job.threads().end());
    json["memory_bytes"] = job.memory_bytes();
  }
  json["submitted_ms"] = job.submitted_ms();
  if (job.deadline_ms() > 0) json["deadline_ms"] = job.deadline_ms();
  json["output_bytes"] = job.output_bytes();
  json["checkpoint_ms"] = job.checkpoint_ms();
  json["resumed"] = job.resumed();
  if (!job.progress().empty())
    json["progress"] = nlohmann::ordered_json::parse(job.progress(), nullptr, /*allow_exceptions=*/false);
  for (const LogDescription& log : job.logs())
    json["logs"].push_back(
        {{"attempt", log.attempt()}, {"rank", log.rank()}, {"first", log.first()}, {"end", log.end()}});
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

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

int FollowJob(const Arguments& arguments, Client& client, const std::string& job,
              const Following& following) {
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  ShownProgress progress(/*is_quiet=*/arguments.Has("quiet") || arguments.Has("json"));
  progress.Begin();
  Client::WatchEvents events;
  events.log_rank = following.log_rank;
  events.log_attempt = following.log_attempt;
  events.output = [&](std::string_view text) {
    if (following.print && !progress.Aside([&] { return PrintOutput(text); }))
      cancellation.Request(OutputStatus());
  };
  events.progress = [&](const std::string& json) { progress.Tell(json); };
  const auto tell = [&](const std::string& why) {
    progress.Aside([&] {
      return std::fputs(EscapeForTerminal(fmt::format("heddle: job {}: {}\n", job, why)).c_str(), stderr);
    });
  };
  std::string told, note;
  events.state = [&](const JobDescription& description) {
    if (description.note() != std::exchange(note, description.note()) && !note.empty() &&
        !arguments.Has("json") && !arguments.Has("no-warnings"))
      tell(note);
    if (description.state() != Name(JobState::kRunning)) progress.Tell("{}");  // nothing runs
    // What was told of a job that begins may be over at once: the reminder tells the rest.
    if (!description.waits() || description.state() == Name(JobState::kQueued) ||
        description.reason() == told || arguments.Has("json"))
      return;
    told = description.reason();
    tell(told);
  };
  JobDescription last;
  engine::Cancellation over;
  std::optional<RepeatedWork> reminder;
  if (!arguments.Has("json"))
    reminder.emplace(kFirstReminder, kNextReminders, [&] {
      JobDescription now;
      if (client.Get(job, &now, &over).ok() && now.waits()) tell(now.reason());
    });
  const Status watched = client.Watch(job, /*follow=*/true, events, &cancellation, &last, kMasterPatienceMs);
  over.Request(Cancelled(""));
  reminder.reset();
  progress.End();
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
  Status outcome = OutcomeOf(last);
  if (following.files != nullptr && following.files->IsAskedFor()) {
    const Status written = WriteFilesOfJob(client, job, *following.files);
    // A job that went well has not, without what was asked for. Of one that failed its own error comes last.
    if (outcome.ok())
      outcome = written;
    else if (!written.ok())
      Warn(written.message());
  }
  return ReportOutcome(arguments, outcome);
}

}  // namespace heddle::cluster::cli

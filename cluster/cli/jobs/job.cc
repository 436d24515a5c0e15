// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/job.h"

#include <fmt/format.h>

#include <cstdio>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/verb.h"
#include "cluster/executor/start_limits.h"
#include "cluster/security/token.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kLogsOptions[] = {
    {"follow", Kind::kFlag, "", "until the job ends, with its exit code", "f"},
    {"rank", Kind::kValue, "N",
     "the last that the executor of worker N (from 0) said on standard error, instead of the output"},
    {"attempt", Kind::kValue, "N", "with --rank: in this attempt (default: the last one)"}};
constexpr Option kWaitOptions[] = {kStatsOption};
constexpr Option kRetryOptions[] = {
    {"request-id", Kind::kValue, "ID", "the same id again is the same job (default: a new one)"},
    {"detach", Kind::kFlag, "", "print the new job's id and do not wait for it"}};

// Runs `act` with a client and the one job that the words name.
int WithJob(const Arguments& arguments,
            int (*act)(const Arguments& arguments, Client& client, const std::string& job)) {
  if (arguments.positional().size() != 1)
    return ReportOutcome(arguments,
                         Usage("give the id of one job").WithNote("'heddle job list' lists the jobs"));
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  const int code = act(arguments, **client, arguments.positional()[0]);
  WarnOfVersion(**client);
  return code;
}

// What each of its executors has of its worker.
std::string ShareOf(const JobDescription& job) {
  const auto [least, most] = std::minmax_element(job.threads().begin(), job.threads().end());
  std::string text = *least == *most ? fmt::format("{}", *least) : fmt::format("{} to {}", *least, *most);
  text = fmt::format("each     {} thread{}", text, *most == 1 ? "" : "s");
  if (job.memory_bytes() > 0) text += fmt::format(", {} bytes of memory", job.memory_bytes());
  return text + "\n";
}

std::string ToText(const JobDescription& job) {
  std::string text = fmt::format("job      {}\nowner    {}\nscript   {}\nstate    {}\n", job.job(),
                                 job.owner(), job.script(), job.state());
  if (!job.reason().empty()) text += fmt::format("reason   {}\n", job.reason());
  if (!job.note().empty()) text += fmt::format("note     {}\n", job.note());
  text += fmt::format("attempt  {}\n", job.attempt());
  if (job.priority() != 0) text += fmt::format("priority {}\n", job.priority());
  if (job.workers_size() > 0) text += fmt::format("workers  {}\n", fmt::join(job.workers(), ", "));
  if (job.threads_size() > 0) text += ShareOf(job);
  if (job.deadline_ms() > 0)
    text += fmt::format("deadline {:.3f} s after it was submitted\n",
                        static_cast<double>(job.deadline_ms() - job.submitted_ms()) / 1e3);
  text += fmt::format("output   {} bytes\n", job.output_bytes());
  if (job.checkpoint_ms() > 0)
    text += fmt::format("goes on  from a checkpoint {:.3f} s after it was submitted\n",
                        static_cast<double>(job.checkpoint_ms() - job.submitted_ms()) / 1e3);
  if (job.resumed() > 0)
    text += fmt::format("resumed  {} from a checkpoint\n",
                        job.resumed() == 1 ? "once" : fmt::format("{} times", job.resumed()));
  for (const LogDescription& log : job.logs())
    text +=
        fmt::format("log      {} bytes of rank {} in attempt {}: heddle job logs --rank {} --attempt {} {}\n",
                    log.end() - log.first(), log.rank(), log.attempt(), log.rank(), log.attempt(), job.job());
  for (int i = 0; i < job.transitions_size(); ++i) {
    const Transition& transition = job.transitions(i);
    text +=
        fmt::format("{} {:>9.3f} s  {}", i == 0 ? "history " : "        ",
                    static_cast<double>(transition.time_ms() - job.submitted_ms()) / 1e3, transition.state());
    if (!transition.reason().empty())
      text += fmt::format("{:>{}}{}", "", 12 - transition.state().size(), FirstLine(transition.reason()));
    text += '\n';
  }
  return text;
}

int ShowStatus(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    JobDescription job;
    if (Status status = client.Get(id, &job); !status.ok()) return ReportOutcome(words, status);
    PrintOutput(words.Has("json") ? ToJson(job) + "\n" : EscapeForTerminal(ToText(job)));
    return 0;
  });
}

Result<Following> ReadLogs(const Arguments& arguments) {
  Following following;
  if (!arguments.Has("rank")) {
    if (arguments.Has("attempt"))
      return Usage("--attempt goes with --rank: the output is that of all attempts together");
    return following;
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rank, arguments.Integer("rank", 0, 0, kMostWorkers - 1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t attempt, arguments.Integer("attempt", 0, 1, kMostAttempts));
  following.log_rank = static_cast<int>(rank);
  following.log_attempt = static_cast<int>(attempt);
  return following;
}

int Logs(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    const Result<Following> following = ReadLogs(words);
    if (!following.ok()) return ReportOutcome(words, following.status());
    if (words.Has("follow")) return FollowJob(words, client, id, *following);
    JobDescription last;
    Client::WatchEvents events;
    events.output = [](std::string_view text) { PrintOutput(text); };
    events.log_rank = following->log_rank;
    events.log_attempt = following->log_attempt;
    return ReportOutcome(words,
                         client.Watch(id, /*follow=*/false, events, nullptr, &last, /*patience_ms=*/0));
  });
}

int Wait(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    return FollowJob(words, client, id, {.print = false});
  });
}

int Retry(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    const Result<SubmittedJob> job = client.Retry(id, words.Value("request-id").value_or(MakeToken()));
    if (!job.ok()) return ReportOutcome(words, job.status());
    if (!words.Has("detach")) return FollowJob(words, client, job->id, {});
    PrintOutput(words.Has("json") ? fmt::format("{{\"job\":\"{}\"}}\n", job->id) : job->id + "\n");
    return 0;
  });
}

// As many as are named, each for itself: the first that cannot be deleted ends it.
int Delete(const Arguments& arguments) {
  if (arguments.positional().empty())
    return ReportOutcome(arguments,
                         Usage("give the ids of finished jobs").WithNote("'heddle job list' lists the jobs"));
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  for (const std::string& id : arguments.positional()) {
    JobDescription job;
    if (Status status = (*client)->Delete(id, &job); !status.ok()) return ReportOutcome(arguments, status);
    PrintOutput(arguments.Has("json") ? ToJson(job) + "\n" : fmt::format("{} deleted\n", job.job()));
  }
  WarnOfVersion(**client);
  return 0;
}

int Cancel(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    JobDescription job;
    if (Status status = client.Cancel(id, &job); !status.ok()) return ReportOutcome(words, status);
    PrintOutput(words.Has("json") ? ToJson(job) + "\n" : fmt::format("{} {}\n", job.job(), job.state()));
    return 0;
  });
}

}  // namespace

const Verb kJobStatusVerb = {"job status",
                             "tell how a job stands and how it came there",
                             "job status [OPTIONS] JOB",
                             MasterVerbOptions(),
                             "heddle job status j17",
                             ShowStatus,
                             /*takes_words=*/true};
const Verb kJobLogsVerb = {"job logs",
                           "print what a job's script printed, or what one of its executors said",
                           "job logs [-f] [--rank N] [OPTIONS] JOB",
                           JoinOptions({kLogsOptions, kQuietOptions, MasterVerbOptions()}),
                           "heddle job logs -f j17",
                           Logs,
                           /*takes_words=*/true};
const Verb kJobWaitVerb = {"job wait",
                           "wait for a job and end with its exit code",
                           "job wait [OPTIONS] JOB",
                           JoinOptions({kWaitOptions, kQuietOptions, MasterVerbOptions()}),
                           "heddle job wait j17",
                           Wait,
                           /*takes_words=*/true};
const Verb kJobCancelVerb = {"job cancel",
                             "stop a job",
                             "job cancel [OPTIONS] JOB",
                             MasterVerbOptions(),
                             "heddle job cancel j17",
                             Cancel,
                             /*takes_words=*/true};

const Verb kJobRetryVerb = {"job retry",
                            "run a finished job once more, as a new job",
                            "job retry [OPTIONS] JOB",
                            JoinOptions({kRetryOptions, kQuietOptions, MasterVerbOptions()}),
                            "heddle job retry j17",
                            Retry,
                            /*takes_words=*/true};
const Verb kJobDeleteVerb = {"job delete",
                             "forget finished jobs, with their output, logs and reports",
                             "job delete [OPTIONS] JOB...",
                             MasterVerbOptions(),
                             "heddle job delete j17",
                             Delete,
                             /*takes_words=*/true};

}  // namespace heddle::cluster::cli

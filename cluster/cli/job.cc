// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/job.h"

#include <fmt/format.h>

#include <cstdio>

#include "cluster/cli/connection.h"
#include "cluster/cli/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kListOptions[] = {{"most", Kind::kValue, "N", "newest jobs only (default 50; 0: all)"}};
constexpr Option kLogsOptions[] = {
    {"follow", Kind::kFlag, "", "until the job ends, with its exit code", "f"}};
constexpr Option kWaitOptions[] = {kStatsOption};

// A name or reason may hold the end of a line; a row of a table does not.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

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

int List(const Arguments& arguments) {
  const Result<int64_t> most = arguments.Integer("most", 50, 0, INT32_MAX);
  if (!most.ok()) return ReportOutcome(arguments, most.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  std::vector<JobDescription> jobs;
  if (Status status = (*client)->List(static_cast<int>(*most), &jobs); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json"))
    text = fmt::format("{:<7} {:<11} {:<8} {:<23} {}\n", "JOB", "STATE", "ATTEMPT", "SCRIPT", "REASON");
  for (const JobDescription& job : jobs) {
    text += arguments.Has("json")
                ? ToJson(job) + "\n"
                : fmt::format("{:<7} {:<11} {:<8} {:<23} {}\n", job.job(), job.state(), job.attempt(),
                              FirstLine(job.script()), FirstLine(job.reason()));
  }
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  return 0;
}

std::string ToText(const JobDescription& job) {
  std::string text = fmt::format("job      {}\nowner    {}\nscript   {}\nstate    {}\n", job.job(),
                                 job.owner(), job.script(), job.state());
  if (!job.reason().empty()) text += fmt::format("reason   {}\n", job.reason());
  text += fmt::format("attempt  {}\n", job.attempt());
  if (job.workers_size() > 0) text += fmt::format("workers  {}\n", fmt::join(job.workers(), ", "));
  text += fmt::format("output   {} bytes\n", job.output_bytes());
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

int Logs(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    if (words.Has("follow")) return FollowJob(words, client, id, /*print=*/true);
    JobDescription last;
    Client::WatchEvents events;
    events.output = [](std::string_view text) { PrintOutput(text); };
    return ReportOutcome(words,
                         client.Watch(id, /*follow=*/false, events, nullptr, &last, /*patience_ms=*/0));
  });
}

int Wait(const Arguments& arguments) {
  return WithJob(arguments, [](const Arguments& words, Client& client, const std::string& id) {
    return FollowJob(words, client, id, /*print=*/false);
  });
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

const Verb kJobListVerb = {"job list",
                           "list jobs, newest first",
                           "job list [OPTIONS]",
                           JoinOptions({kListOptions, MasterVerbOptions()}),
                           "heddle job list --most 5",
                           List};
const Verb kJobStatusVerb = {"job status",
                             "tell how a job stands and how it came there",
                             "job status [OPTIONS] JOB",
                             MasterVerbOptions(),
                             "heddle job status j17",
                             ShowStatus,
                             /*takes_words=*/true};
const Verb kJobLogsVerb = {"job logs",
                           "print what a job's script printed",
                           "job logs [-f] [OPTIONS] JOB",
                           JoinOptions({kLogsOptions, MasterVerbOptions()}),
                           "heddle job logs -f j17",
                           Logs,
                           /*takes_words=*/true};
const Verb kJobWaitVerb = {"job wait",
                           "wait for a job and end with its exit code",
                           "job wait [OPTIONS] JOB",
                           JoinOptions({kWaitOptions, MasterVerbOptions()}),
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

}  // namespace heddle::cluster::cli

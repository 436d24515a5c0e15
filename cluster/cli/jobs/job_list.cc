// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ctime>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/master/job.h"
#include "cluster/store/job_files.h"
#include "core/environment/clock.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr int64_t kLongestAgeMs = int64_t{100} * 366 * 24 * 3'600'000;

constexpr Option kListOptions[] = {
    {"limit", Kind::kValue, "N", "newest jobs only (default 50; 0: all)", "most"},
    {"after", Kind::kValue, "JOB", "those that were submitted before this one: the next page"},
    {"state", Kind::kValue, "STATE", "in this state, or waiting, active, finished; may be given again"},
    {"name", Kind::kValue, "TEXT", "with TEXT in the name of the script"},
    {"text", Kind::kValue, "TEXT", "with TEXT in the id, the name, the reason or the outcome"},
    {"since", Kind::kValue, "TIME",
     "submitted then or later: 90s, 2h, 7d ago, or 2026-11-29, 2026-11-29T18:30"},
    {"until", Kind::kValue, "TIME", "submitted before"},
};

// States by the words of --state, one group a word.
std::vector<JobState> StatesOf(const std::string& word) {
  if (word == "waiting") return {JobState::kQueued, JobState::kRecovering};
  if (word == "active")
    return {JobState::kAdmitted, JobState::kStarting, JobState::kRunning, JobState::kCancelling};
  if (word == "finished") return {JobState::kSucceeded, JobState::kFailed, JobState::kCancelled};
  std::string name = word;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::optional<JobState> state = ParseJobState(name);
  return state ? std::vector<JobState>{*state} : std::vector<JobState>{};
}

// In milliseconds of the wall clock; 0 when the option was not given.
Result<int64_t> Moment(const Arguments& arguments, const char* option) {
  const std::optional<std::string> text = arguments.Value(option);
  if (!text) return 0;
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm time{};
    const char* const end = strptime(text->c_str(), form, &time);
    if (end == nullptr || *end != '\0') continue;
    time.tm_isdst = -1;  // local time, as the user's clock shows it
    return int64_t{std::mktime(&time)} * 1000;
  }
  const Result<int64_t> ago = arguments.Milliseconds(option, 0, kLongestAgeMs);
  if (ago.ok()) return std::max<int64_t>(SystemClock().WallMs() - *ago, 1);
  return Usage(
      "--{} takes a time ago such as 90s, 2h or 7d, or a date such as 2026-11-29 or 2026-11-29T18:30, not '{}'",
      option, *text);
}

Result<ListRequest> ReadRequest(const Arguments& arguments) {
  ListRequest request;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most, arguments.Integer("limit", 50, 0, INT32_MAX));
  request.set_most(static_cast<int32_t>(most));
  for (const std::string& word : arguments.rest("state")) {
    const std::vector<JobState> states = StatesOf(word);
    if (states.empty())
      return Usage("--state: '{}' is no state of a job", word)
          .WithNote(
              "they are waiting, active, finished, and QUEUED, ADMITTED, STARTING, RUNNING, RECOVERING, CANCELLING, "
              "SUCCEEDED, FAILED, CANCELLED");
    for (const JobState state : states) request.add_states(std::string(Name(state)));
  }
  request.set_name(arguments.Value("name").value_or(""));
  request.set_text(arguments.Value("text").value_or(""));
  const std::string after = arguments.Value("after").value_or("");
  if (arguments.Has("after") && NumberOfJob(after) < 0)
    return Usage("--after takes the id of a job such as j17, not '{}'", after);
  request.set_after(after);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t since_ms, Moment(arguments, "since"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t until_ms, Moment(arguments, "until"));
  request.set_since_ms(since_ms);
  request.set_until_ms(until_ms);
  return request;
}

int List(const Arguments& arguments) {
  const Result<ListRequest> request = ReadRequest(arguments);
  if (!request.ok()) return ReportOutcome(arguments, request.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  ListReply reply;
  if (Status status = (*client)->List(*request, &reply); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json"))
    text = fmt::format("{:<7} {:<11} {:<8} {:<23} {}\n", "JOB", "STATE", "ATTEMPT", "SCRIPT", "REASON");
  for (const JobDescription& job : reply.jobs()) {
    text += arguments.Has("json")
                ? ToJson(job) + "\n"
                : fmt::format("{:<7} {:<11} {:<8} {:<23} {}\n", job.job(), job.state(), job.attempt(),
                              FirstLine(job.script()), FirstLine(job.reason()));
  }
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  if (reply.more() && !arguments.Has("json"))
    std::fputs(fmt::format("heddle: there are older ones: --after {}, or --limit 0 for all\n",
                           reply.jobs(reply.jobs_size() - 1).job())
                   .c_str(),
               stderr);
  return 0;
}

}  // namespace

const Verb kJobListVerb = {"job list",
                           "list jobs, newest first",
                           "job list [OPTIONS]",
                           JoinOptions({kListOptions, MasterVerbOptions()}),
                           "heddle job list --state waiting --since 2h",
                           List};

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cluster/cli/connection.h"
#include "cluster/cli/data_roots.h"
#include "cluster/cli/jobs/job_record.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/run_files.h"
#include "cluster/cli/run_script.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "cluster/executor/executor_process.h"
#include "cluster/executor/start_limits.h"
#include "cluster/master/job.h"
#include "cluster/process/interrupt.h"
#include "cluster/security/token.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kOptions[] = {
    {"workers", Kind::kValue, "N", "number of workers (default: all that are alive)"},
    {"retry-for", Kind::kValue, "TIME",
     "start again for so long after machines are lost (default 24h; 0: not)"},
    {"checkpoint", Kind::kValue, "TIME",
     "from one checkpoint to the next, or 'off' (default: auto, by what they cost)"},
    {"priority", Kind::kValue, "N",
     "-100 to 100: a higher one starts first; above 0 for operators (default 0)"},
    {"deadline", Kind::kValue, "TIME",
     "fail the job when it is not finished so long after now (default: none)"},
    {"devices", Kind::kValue, "NAME",
     "cpu (default), auto: what is faster on devices that workers offer, opencl:0: all that this device of "
     "theirs can run (same results)"},
    {"detach", Kind::kFlag, "", "print the job's id and do not wait for it"},
    {"record", Kind::kFlag, "", "note what takes the time, for 'heddle job report'"},
    {"data-root", Kind::kValue, "DIR",
     "folder that the script may use beside this one and its arguments; may be given again"},
    {"request-id", Kind::kValue, "ID", "the same id again is the same job (default: a new one)"},
};

Result<int64_t> CheckpointTime(const Arguments& arguments) {
  const std::string text = arguments.Value("checkpoint").value_or("auto");
  if (text == "auto") return 0;
  if (text == "off") return ExecutorCheckpoints::kNever;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t ms, arguments.Milliseconds("checkpoint", 0, kLongestRetryForMs));
  if (ms == 0) return Usage("--checkpoint takes a time such as 30s, 'auto' or 'off', not '{}'", text);
  return ms;
}

Result<JobSubmission> ReadSubmission(const Arguments& arguments, RunFiles* files) {
  JobSubmission submission;
  HEDDLE_RETURN_IF_ERROR(RunFiles::CheckNames(arguments));
  HEDDLE_ASSIGN_OR_RETURN(engine::Script script, ReadScript(arguments));
  HEDDLE_ASSIGN_OR_RETURN(*files, RunFiles::Read(arguments, script));
  if (files->IsAskedFor() && arguments.Has("detach"))
    return Usage("--report and --trace are written when the job is over, which --detach does not wait for")
        .WithNote("submit it with --record, and write them later: heddle job report JOB FILE.html");
  HEDDLE_ASSIGN_OR_RETURN(engine::EngineOptions options, ReadEngineOptions(arguments));
  submission.options = options.session;
  submission.options.recorded_events =
      files->IsAskedFor() || arguments.Has("record") ? kRecordedEventsOfJob : 0;
  if (!arguments.Has("threads")) submission.options.threads = 0;  // what each worker has
  HEDDLE_ASSIGN_OR_RETURN(const int64_t workers, arguments.Integer("workers", 0, 1, kMostWorkers));
  submission.workers = static_cast<int>(workers);
  HEDDLE_ASSIGN_OR_RETURN(submission.retry_for_ms,
                          arguments.Milliseconds("retry-for", kDefaultRetryForMs, kLongestRetryForMs));
  HEDDLE_ASSIGN_OR_RETURN(submission.checkpoint_ms, CheckpointTime(arguments));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t priority,
                          arguments.Integer("priority", 0, -kHighestPriority, kHighestPriority));
  submission.priority = static_cast<int>(priority);
  HEDDLE_ASSIGN_OR_RETURN(submission.deadline_ms, arguments.Milliseconds("deadline", 0, kLongestDeadlineMs));
  if (arguments.Has("deadline") && submission.deadline_ms == 0)
    return Usage("--deadline 0: no job is finished at once").WithNote("give a time such as 90s, 10m or 2h");
  submission.explain = arguments.Has("explain");
  submission.request_id = arguments.Value("request-id").value_or(MakeToken());
  submission.directory = WorkingDirectory();
  if (submission.directory.empty())
    return NotFound("the working folder was deleted, so that a job cannot begin there")
        .WithNote("go to a folder that is there");
  submission.data_roots = NamedRoots(arguments, submission.directory);
  submission.named_paths = NamedPaths(script, submission.directory);
  submission.libraries = std::move(options.libraries);
  submission.files = CollectSources(script.name, script.text, script.parameters, submission.directory,
                                    submission.libraries, ClosedPaths(arguments, {"token-file", "tls-key"}));
  if (!arguments.Has("json") && !arguments.Has("no-warnings"))
    submission.tell = [](const std::string& line) {
      std::fputs(fmt::format("heddle: {}\n", line).c_str(), stderr);
    };
  submission.script_name = std::move(script.name);
  submission.script_text = std::move(script.text);
  submission.parameters = std::move(script.parameters);
  return submission;
}

// Ctrl-C while the master compiles gives up waiting for its answer.
Result<SubmittedJob> Submit(Client& client, const JobSubmission& submission) {
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  Result<SubmittedJob> job = client.Submit(submission, &cancellation);
  if (job.ok() || cancellation.why().ok()) return job;
  return cancellation.why().WithNote(
      "the master may have taken the job all the same: 'heddle job list' tells");
}

int Run(const Arguments& arguments) {
  RunFiles files;
  const Result<JobSubmission> submission = ReadSubmission(arguments, &files);
  if (!submission.ok()) return ReportOutcome(arguments, submission.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  const Result<SubmittedJob> job = Submit(**client, *submission);
  WarnOfVersion(**client);
  if (!job.ok()) return ReportOutcome(arguments, job.status());
  if (!arguments.Has("json") && !arguments.Has("no-warnings"))
    std::fputs(EscapeForTerminal(job->warnings).c_str(), stderr);
  std::fputs(EscapeForTerminal(job->explanation).c_str(), stderr);
  if (arguments.Has("detach")) {
    PrintOutput(arguments.Has("json") ? fmt::format("{{\"job\":\"{}\"}}\n", job->id) : job->id + "\n");
    return 0;
  }
  return FollowJob(arguments, **client, job->id, {.files = &files});
}

}  // namespace

const Verb kJobSubmitVerb = {
    "job submit",
    "run a script on the workers of a master",
    "job submit [OPTIONS] SCRIPT.dml|-e CODE|- [-args V... | -nvargs K=V...]",
    JoinOptions({kOptions, RunFiles::Options(), kQuietOptions, RunOptions(), ConnectionOptions()}),
    "heddle job submit --workers 2 train.dml -nvargs X=data.csv model=w.csv",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli

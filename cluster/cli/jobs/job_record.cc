// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/jobs/job_record.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/master/job.h"
#include "cluster/store/packed_text.h"
#include "engine/report/rank_record_json.h"

namespace heddle::cluster::cli {
namespace {

// Of one job, unpacked.
constexpr int64_t kMostBytes = int64_t{256} << 20;

// The attempts before the last one, and why each ended.
std::vector<engine::RunRecord::Restart> RestartsOf(const JobDescription& job) {
  std::vector<engine::RunRecord::Restart> restarts;
  for (const Transition& transition : job.transitions())
    if (transition.state() == Name(JobState::kRecovering))
      restarts.push_back(
          {transition.attempt(), transition.time_ms() - job.submitted_ms(), transition.reason()});
  return restarts;
}

Result<engine::RunRecord> RecordOf(const JobRecord& reply) {
  const JobDescription& job = reply.job();
  JobSources sources;
  if (!reply.sources().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, Unpack(reply.sources(), "the sources", kMostBytes));
    if (!sources.ParseFromString(text)) return DataLoss("the sources of job {} cannot be read", job.job());
  }
  std::map<std::string, std::string> files;
  for (const SourceFile& file : sources.files()) files[file.path()] = file.text();
  std::vector<engine::RankRecord> records;
  for (const std::string& packed : reply.records()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, Unpack(packed, "a record", kMostBytes));
    HEDDLE_ASSIGN_OR_RETURN(engine::RankRecord record, engine::ParseRankRecord(text));
    records.push_back(std::move(record));
  }
  std::vector<engine::SessionStatistics> statistics;
  for (const std::string& text : job.statistics())
    if (Result<engine::SessionStatistics> one = engine::ParseStatistics(text); one.ok())
      statistics.push_back(*std::move(one));
  engine::SessionOptions options;
  options.ranks = job.workers_size();
  options.threads = reply.threads();
  options.fusion = reply.fusion();
  const auto load = [&](const std::string& file) -> std::optional<std::string> {
    const auto found = files.find(file);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
  engine::RunRecord record =
      engine::MakeRunRecord(sources.name().empty() ? job.script() : sources.name(), sources.text(), options,
                            OutcomeOf(job), std::move(statistics), std::move(records), load);
  record.restarts = RestartsOf(job);
  return record;
}

Result<RunFiles> FilesOf(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.positional();
  if (words.empty() || words.size() > 2)
    return Usage("give the id of one job and the name of a file")
        .WithNote("for example: heddle job report j17 j17.html");
  const std::optional<std::string> page = words.size() > 1 ? std::optional(words[1]) : std::nullopt;
  if (!page && !arguments.Has("trace"))
    return Usage("give the name of a file for the report of job {}", words[0])
        .WithNote(fmt::format("for example: heddle job report {0} {0}.html, or --trace {0}.json", words[0]));
  return RunFiles::Of("the report", page, arguments.Value("trace"), /*script=*/"");
}

int Run(const Arguments& arguments) {
  const Result<RunFiles> files = FilesOf(arguments);
  if (!files.ok()) return ReportOutcome(arguments, files.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  const Status written = WriteFilesOfJob(**client, arguments.positional()[0], *files);
  WarnOfVersion(**client);
  return ReportOutcome(arguments, written);
}

constexpr Option kOptions[] = {
    {"trace", Option::Kind::kValue, "FILE.json", "write every operator on every worker there, for Perfetto"}};

}  // namespace

Status WriteFilesOfJob(Client& client, const std::string& job, const RunFiles& files) {
  JobRecord reply;
  HEDDLE_RETURN_IF_ERROR(client.Record(job, &reply));
  HEDDLE_ASSIGN_OR_RETURN(const engine::RunRecord record, RecordOf(reply));
  return files.Write(record);
}

const Verb kJobReportVerb = {"job report",
                             "write what took the time of a finished job, as a page for a browser",
                             "job report [OPTIONS] JOB [FILE.html]",
                             JoinOptions({kOptions, MasterVerbOptions()}),
                             "heddle job report j17 j17.html",
                             Run,
                             /*takes_words=*/true};

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/message_limits.h"

#include <algorithm>
#include <cctype>

#include "cluster/master/master_wire.h"
#include "cluster/security/role.h"
#include "cluster/store/job_files.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kMostRequestIdBytes = 200;
constexpr int64_t kMostNameBytes = 256;
constexpr int64_t kMostEntries = 10'000;
constexpr int64_t kMostRoots = 1000;
constexpr int64_t kMostCheckpoints = 16;
constexpr int64_t kMostScriptBytes = 16 << 20;  // with all that it sources
constexpr int64_t kMostProgressBytes = 64 << 10;
constexpr int64_t kMostStates = 100;
constexpr int64_t kMostSwept = 1'000'000;
constexpr int64_t kMostCertificateBytes = 64 << 10;
constexpr int64_t kLongestTokenMs = int64_t{3660} * 24 * 3'600'000;

}  // namespace

bool IsWorkerName(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name[0] != '.' && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsTokenName(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '@';
         });
}

Status CheckMessage(const SubmitRequest& request) {
  HEDDLE_RETURN_IF_ERROR(CheckSize("SubmitRequest.request_id", request.request_id(), 1, kMostRequestIdBytes));
  HEDDLE_RETURN_IF_ERROR(CheckSize("SubmitRequest.script_name", request.script_name(), 0, kMostPathBytes));
  size_t script_bytes = request.script_text().size();
  for (const SourceFile& file : request.files()) script_bytes += file.text().size();
  if (script_bytes > size_t{kMostScriptBytes})
    return InvalidArgument("the script has {} bytes with what it sources; it has {} at most", script_bytes,
                           kMostScriptBytes);
  HEDDLE_RETURN_IF_ERROR(CheckFolder("SubmitRequest.directory", request.directory()));
  HEDDLE_RETURN_IF_ERROR(CheckCount("SubmitRequest.data_roots", request.data_roots_size(), kMostRoots));
  for (const std::string& root : request.data_roots())
    HEDDLE_RETURN_IF_ERROR(CheckFolder("SubmitRequest.data_roots", root));
  HEDDLE_RETURN_IF_ERROR(CheckCount("SubmitRequest.named_paths", request.named_paths_size(), kMostEntries));
  for (const std::string& path : request.named_paths())
    HEDDLE_RETURN_IF_ERROR(CheckFolder("SubmitRequest.named_paths", path));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("SubmitRequest.workers", request.workers(), 0, kMostWorkers));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("SubmitRequest.retry_for_ms", request.retry_for_ms(), 0, kLongestRetryForMs));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("SubmitRequest.checkpoint_ms", request.checkpoint_ms(),
                                     ExecutorCheckpoints::kNever, kLongestRetryForMs));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("SubmitRequest.priority", request.priority(), -kHighestPriority, kHighestPriority));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("SubmitRequest.deadline_ms", request.deadline_ms(), 0, kLongestDeadlineMs));
  HEDDLE_RETURN_IF_ERROR(CheckCount("SubmitRequest.files", request.files_size(), kMostEntries));
  HEDDLE_RETURN_IF_ERROR(CheckCount("SubmitRequest.libraries", request.libraries_size(), kMostEntries));
  HEDDLE_RETURN_IF_ERROR(CheckCount("SubmitRequest.arguments", request.arguments_size(), kMostEntries));
  return CheckOptions("SubmitOptions", FromProto(request.options()));
}

Status CheckMessage(const ProgressRequest& request) {
  return CheckSize("ProgressRequest.request_id", request.request_id(), 1, kMostRequestIdBytes);
}

Status CheckMessage(const ListRequest& request) {
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ListRequest.most", request.most(), 0, INT32_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckCount("ListRequest.states", request.states_size(), kMostStates));
  for (const std::string& state : request.states())
    if (!ParseJobState(state))
      return InvalidArgument("ListRequest.states: '{}' is no state of a job",
                             CutAtCharacter(state, kMostIdBytes));
  HEDDLE_RETURN_IF_ERROR(CheckSize("ListRequest.name", request.name(), 0, kMostPathBytes));
  HEDDLE_RETURN_IF_ERROR(CheckSize("ListRequest.text", request.text(), 0, kMostPathBytes));
  return CheckSize("ListRequest.after", request.after(), 0, kMostIdBytes);
}

Status CheckMessage(const RetryRequest& request) {
  HEDDLE_RETURN_IF_ERROR(CheckSize("RetryRequest.job", request.job(), 1, kMostIdBytes));
  return CheckSize("RetryRequest.request_id", request.request_id(), 1, kMostRequestIdBytes);
}

Status CheckMessage(const GarbageRequest& request) {
  HEDDLE_RETURN_IF_ERROR(CheckNumber("GarbageRequest.older_than_ms", request.older_than_ms(), 0, INT64_MAX));
  return CheckNumber("GarbageRequest.keep_bytes", request.keep_bytes(), 0, INT64_MAX);
}

Status CheckMessage(const JobRequest& request) {
  return CheckSize("JobRequest.job", request.job(), 1, kMostIdBytes);
}

Status CheckMessage(const WatchRequest& request) {
  HEDDLE_RETURN_IF_ERROR(CheckSize("WatchRequest.job", request.job(), 1, kMostIdBytes));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("WatchRequest.output_offset", request.output_offset(), 0, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("WatchRequest.log_attempt", request.log_attempt(), 0, kMostAttempts));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("WatchRequest.shown_attempt", request.shown_attempt(), 0, kMostAttempts));
  return CheckNumber("WatchRequest.log_rank", request.log_rank(), 0, kMostWorkers - 1);
}

Status CheckMessage(const DrainRequest& request) {
  return CheckSize("DrainRequest.node", request.node(), 1, kMostNameBytes);
}

Status CheckMessage(const RemoveRequest& request) {
  return CheckSize("RemoveRequest.node", request.node(), 1, kMostNameBytes);
}

Status CheckMessage(const CreateTokenRequest& request) {
  if (!IsTokenName(request.name()) || !(request.owner().empty() || IsTokenName(request.owner())))
    return Usage("a token and its owner have names of up to 64 letters, digits, '-', '_', '.' and '@'");
  HEDDLE_RETURN_IF_ERROR(CheckNumber("CreateTokenRequest.lives_ms", request.lives_ms(), 0, kLongestTokenMs));
  HEDDLE_RETURN_IF_ERROR(CheckCount("CreateTokenRequest.roles", request.roles_size(), kRoleNames.size()));
  Roles roles;
  for (const std::string& name : request.roles()) {
    const std::optional<Role> role = ParseRole(name);
    if (!role || *role == Role::kExecutor)
      return Usage("'{}' is no role of a token: viewer, submitter, operator, admin or worker",
                   CutAtCharacter(name, kMostNameBytes));
    roles.Add(*role);
  }
  if (roles.empty()) return Usage("a token has a role: viewer, submitter, operator, admin or worker");
  const bool joins = roles.Has(Role::kWorker);
  if (joins && roles.HasAnyOf({Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin}))
    return Usage("a token by which workers join has no other role");
  if (request.reusable() && !joins)
    return Usage("only a token of the role worker is reusable: others are used again anyway");
  return OkStatus();
}

Status CheckMessage(const TokenRequest& request) {
  return CheckSize("TokenRequest.name", request.name(), 1, kMostNameBytes);
}

Status CheckMessage(const RotateTokenRequest& request) {
  HEDDLE_RETURN_IF_ERROR(CheckSize("RotateTokenRequest.name", request.name(), 1, kMostNameBytes));
  return CheckNumber("RotateTokenRequest.overlap_ms", request.overlap_ms(), 0, kLongestTokenMs);
}

Status CheckMessage(const WorkerIntroduction& introduction) {
  HEDDLE_RETURN_IF_ERROR(
      CheckCount("WorkerIntroduction.executors", introduction.executors_size(), kMostEntries));
  for (const ExecutorReport& report : introduction.executors()) HEDDLE_RETURN_IF_ERROR(CheckMessage(report));
  return OkStatus();
}

Status CheckMessage(const ExecutorReport& report) {
  HEDDLE_RETURN_IF_ERROR(CheckSize("ExecutorReport.job", report.job(), 1, kMostIdBytes));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorReport.attempt", report.attempt(), 0, kMostAttempts));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorReport.rank", report.rank(), 0, kMostWorkers - 1));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorReport.pid", report.pid(), 0, INT32_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckSize("ExecutorReport.endpoint", report.endpoint(), 0, kMostPathBytes));
  HEDDLE_RETURN_IF_ERROR(
      CheckSize("ExecutorReport.certificate", report.certificate(), 0, kMostCertificateBytes));
  HEDDLE_RETURN_IF_ERROR(CheckSize("ExecutorReport.log", report.log(), 0, LogTail::kMostBytes));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorReport.log_offset", report.log_offset(), 0,
                                     INT64_MAX - int64_t{LogTail::kMostBytes}));
  HEDDLE_RETURN_IF_ERROR(CheckSize("ExecutorReport.progress", report.progress(), 0, kMostProgressBytes));
  HEDDLE_RETURN_IF_ERROR(CheckSize("ExecutorReport.record", report.record(), 0, JobFiles::kMostBytesOfJob));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorReport.output_offset", report.output_offset(), 0,
                                     INT64_MAX - static_cast<int64_t>(report.output().size())));
  HEDDLE_RETURN_IF_ERROR(
      CheckCount("ExecutorReport.checkpoints", report.checkpoints_size(), kMostCheckpoints));
  for (const WrittenCheckpoint& written : report.checkpoints()) {
    HEDDLE_RETURN_IF_ERROR(CheckNumber("WrittenCheckpoint.number", written.number(), 1, INT64_MAX));
    HEDDLE_RETURN_IF_ERROR(CheckNumber("WrittenCheckpoint.printed", written.printed(), 0, INT64_MAX));
  }
  return CheckNumber("Exit.silent_ms", report.exit().silent_ms(), 0, INT64_MAX);
}

Status CheckMessage(const Swept& swept) {
  HEDDLE_RETURN_IF_ERROR(CheckCount("Swept.items", swept.items_size(), kMostSwept));
  HEDDLE_RETURN_IF_ERROR(CheckSize("Swept.failure", swept.failure(), 0, kMostPathBytes));
  for (const GarbageItem& item : swept.items()) {
    HEDDLE_RETURN_IF_ERROR(CheckSize("GarbageItem.kind", item.kind(), 1, kMostNameBytes));
    HEDDLE_RETURN_IF_ERROR(CheckSize("GarbageItem.name", item.name(), 1, 2 * kMostPathBytes));
    HEDDLE_RETURN_IF_ERROR(CheckNumber("GarbageItem.bytes", item.bytes(), 0, INT64_MAX));
  }
  return OkStatus();
}

Status CheckMessage(const Welcome& welcome) {
  return CheckNumber("Welcome.ttl_ms", welcome.ttl_ms(), 1, kLongestSilenceMs);
}

Status CheckMessage(const ExecutorOrder& order) {
  HEDDLE_RETURN_IF_ERROR(CheckSize("ExecutorOrder.job", order.job(), 1, kMostIdBytes));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorOrder.attempt", order.attempt(), 0, kMostAttempts));
  return CheckNumber("ExecutorOrder.output_until", order.output_until(), 0, INT64_MAX);
}

}  // namespace heddle::cluster

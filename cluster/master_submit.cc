// SPDX-License-Identifier: Apache-2.0
#include "cluster/master_submit.h"

#include "cluster/files_ahead.h"
#include "cluster/master_wire.h"
#include "cluster/precompile.h"
#include "cluster/value_wire.h"
#include "compiler/compile.h"
#include "compiler/explain.h"
#include "core/random.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostRequestIdBytes = 200;
constexpr int kMostWorkers = 4096;

Status CheckRequest(const SubmitRequest& request) {
  if (request.request_id().empty() || request.request_id().size() > kMostRequestIdBytes)
    return Usage("a request id has 1 to {} characters", kMostRequestIdBytes);
  if (!request.directory().starts_with("/"))
    return Usage("the folder '{}' of a job is not absolute", request.directory());
  if (request.workers() < 0 || request.workers() > kMostWorkers)
    return Usage("a job takes 1 to {} workers, not {}", kMostWorkers, request.workers());
  return OkStatus();
}

Result<Program> Compile(const SubmitRequest& request, const SessionOptions& session, std::string* warnings) {
  compiler::MemorySourceLoader loader({request.files().begin(), request.files().end()});
  compiler::CompileOptions options;
  options.script = request.script_name();
  options.arguments = {request.arguments().begin(), request.arguments().end()};
  options.loader = &loader;
  options.disabled_passes.insert(session.disabled_passes.begin(), session.disabled_passes.end());
  compiler::Diagnostics diagnostics;
  Result<Program> program = compiler::CompileScript(request.script_text(), options, &diagnostics);
  *warnings = diagnostics.RenderAll(compiler::Severity::kWarning);
  return program;
}

Status Submit(MasterHub* hub, const SubmitRequest& request, SubmitReply* reply) {
  HEDDLE_RETURN_IF_ERROR(CheckRequest(request));
  JobSpecification specification;
  specification.request_id = request.request_id();
  specification.script = request.script_name();
  specification.directory = request.directory();
  specification.workers_wanted = request.workers();
  specification.options = FromProto(request.options());
  // Drawn once, so that a later attempt prints and writes the same bytes.
  if (specification.options.seed == -1)
    specification.options.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
  HEDDLE_ASSIGN_OR_RETURN(const Program program,
                          Compile(request, specification.options, reply->mutable_warnings()));
  specification.program = program.ToText();
  // Made here, where nobody waits but this client. Should the job get other workers, its executors make their
  // own.
  if (request.explain()) *reply->mutable_explanation() = compiler::ExplainProgram(program);
  const SessionOptions expected =
      hub->Call([&](MasterCore& core) { return core.ExpectedOptions(specification); });
  specification.options.ranks = expected.ranks;
  // For plans made here and for those of rank 0 alike.
  specification.options.constants = expected.constants;
  const std::unique_ptr<ops::Files> files = MakeFilesAhead(specification.directory);
  specification.options.plans = Precompile(program, expected, files.get());
  if (request.explain())
    for (const std::string& plan : specification.options.plans) *reply->mutable_explanation() += plan + "\n";
  return hub->Call([&](MasterCore& core) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const Job* job, core.Submit(specification));
    ToProto(*job, reply->mutable_job());
    return OkStatus();
  });
}

}  // namespace

void ServeSubmit(MasterHub* hub, const SubmitRequest& request, SubmitReply* reply) {
  const Status status = Submit(hub, request, reply);
  if (!status.ok()) reply->set_status(EncodeStatus(status));
}

}  // namespace heddle::cluster

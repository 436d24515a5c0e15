// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_submit.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/evp.h>

#include <algorithm>
#include <map>

#include "cluster/executor/executor_messages.h"
#include "cluster/master/master_wire.h"
#include "core/environment/clock.h"
#include "core/environment/random.h"
#include "engine/wire/value_wire.h"
#include "ops/io/files/folders.h"

namespace heddle::cluster {
namespace {

// Equal for requests that ask for the same: what the client measured, and whether it wants an explanation,
// are no part of that.
Result<std::string> DigestOf(const SubmitRequest& request) {
  SubmitRequest same = request;
  same.clear_request_id();
  same.clear_explain();
  same.mutable_options()->clear_constants();
  same.clear_files();
  std::map<std::string, std::string> sources;
  for (const SourceFile& file : request.files()) sources[file.path()] = file.text();
  for (const auto& [path, text] : sources) {
    SourceFile* file = same.add_files();
    file->set_path(path);
    file->set_text(text);
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in order
    same.SerializeToCodedStream(&coded);
  }
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 EVP_sha256(), nullptr) != 1)
    return Internal("SHA-256 is not available");
  digest.resize(size);
  return digest;
}

// Compiles and plans, in a process of its own: what a job needs before it can be queued.
Status Prepare(const SubmitRequest& request, const engine::SessionOptions& expected,
               const ops::FileRoots& roots, const CompileLimits& limits,
               const std::function<bool()>& given_up, JobSpecification* specification, SubmitReply* reply) {
  LauncherMessage message;
  ExecutorStart& start = message.start.emplace();
  start.directory = specification->directory;
  start.roots = roots;
  start.options = expected;
  CompileRequest compile;
  *compile.mutable_submit() = request;
  compile.set_start(ToLine(message));
  HEDDLE_ASSIGN_OR_RETURN(CompileReply made, CompileInProcess(std::move(compile), limits, given_up));
  reply->set_warnings(std::move(*made.mutable_warnings()));
  reply->set_explanation(std::move(*made.mutable_explanation()));
  if (!made.status().empty()) {
    Status refused;
    HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(made.status(), &refused));
    if (refused.code() == StatusCode::kResourceExhausted)
      refused =
          refused.WithNote(fmt::format("the master compiles each script within {} bytes; 'heddle master "
                                       "--compile-memory SIZE' allows more",
                                       limits.memory_bytes));
    return refused;
  }
  specification->program = std::move(*made.mutable_program());
  specification->options.ranks = expected.ranks;
  // For plans made here and for those of rank 0 alike.
  specification->options.constants = expected.constants;
  specification->options.plans = {made.plans().begin(), made.plans().end()};
  return OkStatus();
}

// What a job names by --data-root, where the master says what jobs may use: told before it is queued.
Status CheckDataRoots(const std::vector<std::string>& named, const std::vector<std::string>& allowed) {
  for (const std::string& root : named) {
    if (allowed.empty() || std::any_of(allowed.begin(), allowed.end(), [&](const std::string& folder) {
          return ops::IsWithin(ops::FollowLinks(root), ops::FollowLinks(folder));
        }))
      continue;
    return Usage("--data-root: '{}' is in none of the folders that the master lets jobs use", root)
        .WithNote(fmt::format("these are '{}'", fmt::join(allowed, "', '")));
  }
  return OkStatus();
}

// Of what is compiled: ids of two owners are two.
std::string IdOf(const Caller& caller, const std::string& request_id) {
  return caller.owner + '\n' + request_id;
}

Status Submit(MasterHub* hub, ScriptCompiler* compiler, const Caller& caller, const SubmitRequest& request,
              const std::function<bool()>& given_up, SubmitReply* reply) {
  JobSpecification specification;
  specification.request_id = request.request_id();
  specification.owner = caller.owner;
  HEDDLE_ASSIGN_OR_RETURN(specification.digest, DigestOf(request));
  specification.script = request.script_name();
  specification.directory = request.directory();
  specification.data_roots = {request.data_roots().begin(), request.data_roots().end()};
  specification.named_paths = {request.named_paths().begin(), request.named_paths().end()};
  specification.workers_wanted = request.workers();
  if (request.has_retry_for_ms()) specification.retry_for_ms = request.retry_for_ms();
  specification.options = FromProto(request.options());
  // Drawn once, so that a later attempt prints and writes the same bytes.
  if (specification.options.seed == -1)
    specification.options.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
  const engine::SessionOptions expected =
      hub->Call([&](MasterCore& core) { return core.ExpectedOptions(specification); });
  const ops::FileRoots roots = hub->Call([&](MasterCore& core) { return core.RootsOf(specification); });
  HEDDLE_RETURN_IF_ERROR(CheckDataRoots(specification.data_roots, roots.of_master));
  Status prepared;
  HEDDLE_RETURN_IF_ERROR(compiler->queue.Run(
      IdOf(caller, request.request_id()),
      [&] {
        prepared = Prepare(request, expected, roots, compiler->limits, given_up, &specification, reply);
      },
      given_up));
  HEDDLE_RETURN_IF_ERROR(prepared);
  return hub->Call([&](MasterCore& core) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const Job* job, core.Submit(specification));
    ToProto(*job, reply->mutable_job());
    return OkStatus();
  });
}

}  // namespace

void ServeSubmit(MasterHub* hub, ScriptCompiler* compiler, const Caller& caller, const SubmitRequest& request,
                 const std::function<bool()>& given_up, SubmitReply* reply) {
  const Status status = Submit(hub, compiler, caller, request, given_up, reply);
  if (!status.ok()) reply->set_status(engine::EncodeStatus(status));
}

void ServeProgress(const ScriptCompiler& compiler, const Caller& caller, const ProgressRequest& request,
                   ProgressReply* reply) {
  const std::optional<CompileQueue::Place> place = compiler.queue.Find(IdOf(caller, request.request_id()));
  reply->set_known(place.has_value());
  if (!place) return;
  reply->set_waits(place->waits);
  reply->set_compiled_now(place->running);
  reply->set_ahead(place->ahead);
  reply->set_since_ms((SystemClock().MonotonicNs() - place->since_ns) / 1'000'000);
}

}  // namespace heddle::cluster

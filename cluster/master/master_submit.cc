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
#include "cluster/store/packed_text.h"
#include "core/environment/clock.h"
#include "core/environment/random.h"
#include "engine/wire/value_wire.h"
#include "ops/io/files/folders.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kMostSourcesBytes = 1 << 20;

// Equal for requests that ask for the same: what the client measured, and whether it wants an explanation or
// a report, are no part of that.
Result<std::string> DigestOf(const SubmitRequest& request) {
  SubmitRequest same = request;
  same.clear_request_id();
  same.clear_explain();
  same.mutable_options()->clear_constants();
  same.mutable_options()->clear_recorded_events();
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

// What the script is compiled from, and for: the request, and the executors that are expected.
std::string KeyOf(const SubmitRequest& request, const std::string& digest, const std::string& start) {
  return fmt::format("{} {} {}", digest, request.explain() ? 1 : 0, start);
}

// How the queue of scripts to compile knows the request: ids of two owners are two.
std::string IdOf(const Caller& caller, const std::string& request_id) {
  return caller.owner + '\n' + request_id;
}

// Compiles and plans, in a process of its own when its turn comes, or takes what that came to a moment ago:
// what a job needs before it can be queued.
Status Prepare(const SubmitRequest& request, const std::string& id, const engine::SessionOptions& expected,
               const ops::FileRoots& roots, ScriptCompiler* compiler, const std::function<bool()>& given_up,
               JobSpecification* specification, SubmitReply* reply) {
  LauncherMessage message;
  ExecutorStart& start = message.start.emplace();
  start.directory = specification->directory;
  start.roots = roots;
  start.options = expected;
  start.options.seed = 0;  // No plan depends on it (engine/variables/random_seeds.h).
  const std::string line = ToLine(message);
  const auto make = [&] {
    Result<CompileReply> made = Cancelled("");
    const Status turn = compiler->queue.Run(
        id,
        [&] {
          CompileRequest compile;
          *compile.mutable_submit() = request;
          compile.set_start(line);
          made = CompileInProcess(std::move(compile), compiler->limits, given_up);
        },
        given_up);
    return turn.ok() ? std::move(made) : Result<CompileReply>(turn);
  };
  HEDDLE_ASSIGN_OR_RETURN(const CompiledScripts::Reply made,
                          compiler->scripts.Get(KeyOf(request, specification->digest, line), make, given_up));
  reply->set_warnings(made->warnings());
  reply->set_explanation(made->explanation());
  if (!made->status().empty()) {
    Status refused;
    HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(made->status(), &refused));
    if (refused.code() == StatusCode::kResourceExhausted)
      refused =
          refused.WithNote(fmt::format("the master compiles each script within {} bytes; 'heddle master "
                                       "--compile-memory SIZE' allows more",
                                       compiler->limits.memory_bytes));
    return refused;
  }
  specification->program = made->program();
  specification->options.ranks = expected.ranks;
  // For plans made here and for those of rank 0 alike.
  specification->options.constants = expected.constants;
  specification->options.plans = {made->plans().begin(), made->plans().end()};
  specification->planned_bytes = expected.memory_bytes;
  // More than a share is no default: then the plans are to fit into that.
  const bool has_ranks = specification->workers_wanted > 0;  // Else it may get fewer than were planned for.
  // Nobody knows what the driver of a device takes of the memory of an executor: it has a whole share.
  const bool has_default = specification->options.memory_bytes == 0 && expected.devices == "cpu";
  if (has_ranks && has_default && made->memory_bytes() < expected.memory_bytes) {
    specification->plan_bytes = made->memory_bytes();
    if (specification->plan_bytes > 0) specification->planned_bytes = specification->plan_bytes;
  }
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

// What the report of a job shows; "" where it is too much.
std::string SourcesOf(const SubmitRequest& request) {
  JobSources sources;
  sources.set_name(request.script_name());
  sources.set_text(request.script_text());
  *sources.mutable_files() = request.files();
  Result<std::string> packed = Pack(sources.SerializeAsString());
  if (!packed.ok() || static_cast<int64_t>(packed->size()) > kMostSourcesBytes) return "";
  return *std::move(packed);
}

Status Submit(MasterHub* hub, ScriptCompiler* compiler, const Caller& caller, const SubmitRequest& request,
              const std::function<bool()>& given_up, SubmitReply* reply) {
  HEDDLE_RETURN_IF_ERROR(CheckPriority(request.priority(), caller));
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
  specification.checkpoint_ms = request.checkpoint_ms();
  specification.priority = request.priority();
  specification.deadline_ms = request.deadline_ms();
  specification.options = FromProto(request.options());
  // Drawn once, so that a later attempt prints and writes the same bytes.
  if (specification.options.seed == -1)
    specification.options.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
  engine::SessionOptions expected;
  ops::FileRoots roots;
  HEDDLE_RETURN_IF_ERROR(hub->Call([&](MasterCore& core) {
    expected = core.ExpectedOptions(specification);
    roots = core.RootsOf(specification);
    return core.MayQueue(specification);  // before it is compiled for nothing
  }));
  HEDDLE_RETURN_IF_ERROR(CheckDataRoots(specification.data_roots, roots.of_master));
  const std::string id = IdOf(caller, request.request_id());
  HEDDLE_RETURN_IF_ERROR(Prepare(request, id, expected, roots, compiler, given_up, &specification, reply));
  const std::string sources = SourcesOf(request);
  return hub->Call([&](MasterCore& core) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const Job* job, core.Submit(specification, sources));
    ToProto(*job, reply->mutable_job());
    return OkStatus();
  });
}

}  // namespace

Status CheckPriority(int priority, const Caller& caller) {
  if (priority <= 0 || caller.roles.HasAnyOf({Role::kOperator, Role::kAdmin})) return OkStatus();
  return PermissionDenied("--priority {}: a priority above 0 is for operators", priority)
      .WithNote("submit it without, or with one from -100 to 0");
}

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

// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compile_script.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <string>

#include "cluster/executor/executor_messages.h"
#include "cluster/executor/isolation.h"
#include "cluster/process/process_end.h"
#include "cluster/process/process_limits.h"
#include "compiler/compile.h"
#include "compiler/explain/explain.h"
#include "core/environment/socket_bytes.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "engine/blocks/planning_files.h"
#include "engine/blocks/precompile.h"
#include "engine/blocks/program_memory.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

constexpr int kNiceness = 5;  // the master answers others meanwhile
constexpr int kOutOfMemoryScore =
    500;  // of 1000: without memory the kernel ends this process, not the master
constexpr int64_t kLibraryBytes = int64_t{256} << 20;  // tables and arenas of libraries, which no ledger has
constexpr double kHeapOverhead = 1.15;                 // what a heap holds beyond what is in use
constexpr int64_t kPatienceSeconds = 60;               // beyond the master's own, which should have ended us

Result<Program> Compile(const SubmitRequest& request, const engine::SessionOptions& session,
                        std::string* warnings) {
  std::map<std::string, std::string> sources;
  for (const SourceFile& file : request.files()) sources[file.path()] = file.text();
  compiler::MemorySourceLoader loader(std::move(sources));
  compiler::CompileOptions options;
  options.script = request.script_name();
  options.arguments = {request.arguments().begin(), request.arguments().end()};
  options.loader = &loader;
  options.libraries = {request.libraries().begin(), request.libraries().end()};
  options.library_fingerprint = request.library_fingerprint();
  options.disabled_passes.insert(session.disabled_passes.begin(), session.disabled_passes.end());
  compiler::Diagnostics diagnostics;
  Result<Program> program = compiler::CompileScript(request.script_text(), options, &diagnostics);
  *warnings = diagnostics.RenderAll(compiler::Severity::kWarning);
  return program;
}

// What a job asks for that needs so much: a quarter more, for what plans do not count, and in coarse steps,
// so that jobs of a kind ask for the same.
int64_t WithMargin(int64_t bytes) {
  constexpr int64_t kLeast = int64_t{64} << 20;
  constexpr int kStepsOfOctave = 8;
  const int64_t wanted = kLeast + bytes + bytes / 4;
  const int64_t step = std::max<int64_t>(1, std::bit_floor(static_cast<uint64_t>(wanted)) / kStepsOfOctave);
  return (wanted + step - 1) / step * step;
}

Status Prepare(const SubmitRequest& request, const ExecutorStart& start, CompileReply* reply) {
  HEDDLE_ASSIGN_OR_RETURN(const Program program, Compile(request, start.options, reply->mutable_warnings()));
  reply->set_program(program.ToText());
  // Should the job get other workers than expected, its executors make plans of their own.
  if (request.explain()) *reply->mutable_explanation() = compiler::ExplainProgram(program);
  const std::unique_ptr<ops::Files> files = engine::MakePlanningFiles(start.directory, start.roots);
  engine::SessionOptions options = start.options;
  if (options.devices == "cpu") {
    for (std::string& plan : engine::Precompile(program, options, files.get())) {
      if (request.explain()) *reply->mutable_explanation() += plan + "\n";
      reply->add_plans(std::move(plan));
    }
  } else {
    // What a device does in a second is known where it is, and this process opens no driver. In the memory of
    // the host a rank needs no more with it than without.
    options.devices = "cpu";
    if (request.explain())
      *reply->mutable_explanation() += "the plans are made where the devices are\n";
  }
  if (const auto memory = engine::MemoryOfProgram(program, options, files.get()))
    reply->set_memory_bytes(WithMargin(*memory));
  return OkStatus();
}

bool ReadAll(int fd, std::string* bytes) {
  char block[1 << 16];
  for (;;) {
    const ssize_t got = recv(fd, block, sizeof(block), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    bytes->append(block, static_cast<size_t>(got));
  }
}

void Bound(int resource, int64_t most) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(most));
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

// The ledger refuses with numbers; the kernel holds what the ledger does not see.
void TakeLimits(const CompileRequest& request) {
  if (!request.core_dumps()) ForbidCoreDumps();
  std::ofstream("/proc/self/oom_score_adj") << kOutOfMemoryScore;
  if (request.memory_bytes() > 0) {
    MemoryBudget::Process().SetLimit(request.memory_bytes());
    // A sanitizer maps far more than it uses.
    const double most = kHeapOverhead * static_cast<double>(request.memory_bytes());
    if (HeapIsCounted()) Bound(RLIMIT_DATA, static_cast<int64_t>(most) + kLibraryBytes);
  }
  if (request.most_seconds() > 0) Bound(RLIMIT_CPU, request.most_seconds() + kPatienceSeconds);
}

}  // namespace

CompileReply CompileForMaster(const CompileRequest& request) {
  CompileReply reply;
  const Result<LauncherMessage> message = ParseLauncherMessage(request.start());
  Status status = message.status();
  if (status.ok() && message->start && request.is_isolated()) status = IsolateCompiler(*message->start);
  if (status.ok())
    status = message->start ? Prepare(request.submit(), *message->start, &reply)
                            : Internal("the master said nothing of the executors");
  if (!status.ok()) reply.set_status(engine::EncodeStatus(status));
  return reply;
}

int RunCompiler(int control_fd) {
  // Ctrl-C reaches the whole group of processes; the master alone decides what it means.
  signal(SIGINT, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)setpriority(PRIO_PROCESS, 0, kNiceness);
  std::string bytes;
  CompileRequest request;
  if (!ReadAll(control_fd, &bytes) || !request.ParseFromString(bytes)) return kBugExitCode;
  bytes = std::string();
  TakeLimits(request);
  return SendAll(control_fd, CompileForMaster(request).SerializeAsString()) ? 0 : kBugExitCode;
}

}  // namespace heddle::cluster

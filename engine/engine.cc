// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "compiler/explain/explain.h"
#include "compiler/optimize/pass.h"
#include "core/memory/memory_bounds.h"
#include "core/memory/memory_budget.h"
#include "engine/blocks/compiled_block.h"
#include "engine/blocks/distribution_text.h"
#include "engine/blocks/program_memory.h"
#include "engine/devices/placement_text.h"
#include "engine/machine/machine_constants.h"
#include "engine/session/limit_of_run.h"
#include "engine/session/planning.h"
#include "ops/base/cpu.h"
#include "ops/device/opencl/rates.h"
#include "ops/device/opencl/usable_devices.h"
#include "ops/io/files/files.h"
#include "ops/panels/spill_files.h"
#include "scheduler/devices/device_options.h"

namespace heddle::engine {
namespace {

Status CheckPasses(const std::vector<std::string>& disabled) {
  const std::vector<std::string> names = compiler::NamesToDisable();
  for (const std::string& name : disabled) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = compiler::SuggestName(name, names);
    return Usage("disable-pass: '{}' is no pass or rule{}", name,
                 nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest))
        .WithNote(fmt::format("there are {}", fmt::join(names, ", ")));
  }
  return OkStatus();
}

Status CheckFusion(const std::string& fusion) {
  constexpr std::string_view kModes[] = {"off", "all", "no-redundancy", "cost"};
  if (std::find(std::begin(kModes), std::end(kModes), fusion) != std::end(kModes)) return OkStatus();
  if (fusion.starts_with("random:")) return OkStatus();
  return Usage("fusion takes off, all, no-redundancy or cost, not '{}'", fusion);
}

Status CheckCpu(const std::string& names) {
  if (names.empty()) return OkStatus();
  for (int i = 0; i <= std::count(names.begin(), names.end(), ','); ++i) {
    const std::string_view name = ops::CpuOfRank(names, i);
    if (name != "auto" && name != "avx2" && name != "avx512")
      return Usage("cpu takes auto, avx2 or avx512, not '{}'", name);
  }
  return OkStatus();
}

// Found before a script begins, and absolute from then on. Messages have it as it was given.
Status FindSpillFolder(const std::string& directory, std::string* folder) {
  if (folder->empty()) return OkStatus();
  const std::string given = std::exchange(*folder, (std::filesystem::path(directory) / *folder).string());
  const Status found = ops::CheckSpillFolder(*folder);
  if (found.ok()) return found;
  std::string text = found.message();
  if (const size_t at = text.find(*folder); at != std::string::npos) text.replace(at, folder->size(), given);
  Status named(found.code(), "spill-folder: " + text);
  for (const std::string& note : found.notes()) named = named.WithNote(note);
  return named;
}

Result<std::vector<std::string>> LibraryFolders(std::vector<std::string> libraries,
                                                const std::string& directory) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(directory);
  for (const std::string& library : libraries)
    if (!files->IsDirectory(library)) return NotFound("library: there is no folder '{}'", library);
  // The path in the environment may name folders that this machine lacks.
  const char* const path = std::getenv("HEDDLE_LIBRARY_PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty()) libraries.push_back(folder);
  return libraries;
}

// The kernels of the first rank are those of this process; all that are named must be there.
Status UseCpu(const SessionOptions& options) {
  for (int rank = options.ranks; rank-- > 0 && !options.cpu.empty();)
    if (Status status = ops::ForceCpu(ops::CpuOfRank(options.cpu, rank)); !status.ok())
      return Usage("cpu: {}", status.message());
  return OkStatus();
}

void WarnOfMemory(const SessionOptions& options, const std::function<void(std::string_view text)>& warn) {
  if (options.memory_bytes <= 0) return;
  const MemoryBounds bounds = ReadMemoryBounds();
  const int64_t available = bounds.Smallest() / options.ranks;
  if (options.memory_bytes > available && warn)
    warn(fmt::format("memory {} is more than there is: {} gives each of {} process{} {} bytes",
                     options.memory_bytes, bounds.NameOfSmallest(), options.ranks,
                     options.ranks > 1 ? "es" : "", available));
}

// The processor takes the place of a device that is not there. One that is busy may be used later: every run
// asks again.
void UseDevice(SessionOptions* session, const std::function<void(std::string_view text)>& warn) {
  const std::optional<scheduler::DeviceOptions> devices = scheduler::ParseDevices(session->devices);
  if (!devices) return;
  const Status found = ops::DevicesWith(devices->device).status();
  if (found.ok() || found.code() == StatusCode::kResourceExhausted) return;
  // Compilers say more than a line.
  const std::string why = found.message().substr(0, found.message().find('\n'));
  if (warn)
    warn(fmt::format("devices {}: {}; the processor computes ('heddle devices' tells more)", session->devices,
                     why));
  session->devices = "cpu";
}

// The continuation of a whole script that begins with these variables.
compiler::Continuation ContinuationOf(const VariableTable& variables) {
  compiler::Continuation continuation;
  continuation.is_whole_script = true;
  for (const auto& [name, variable] : variables.variables())
    continuation.given.push_back(GivenOf(name, variable));
  return continuation;
}

Result<VariableTable> VariablesOf(const HostValues& values, ElementType element_type) {
  VariableTable variables;
  for (const auto& [name, value] : values) {
    HEDDLE_ASSIGN_OR_RETURN(Variable variable, ToVariable(name, value, element_type));
    variables.Set(name, std::move(variable));
  }
  return variables;
}

std::function<void(std::string_view text)> OrNothing(std::function<void(std::string_view text)> callback) {
  return callback ? std::move(callback) : [](std::string_view) {};
}

}  // namespace

Result<EngineOptions> CompleteOptions(EngineOptions options) {
  if (options.directory.empty()) {
    std::error_code error;  // of a folder that was deleted: scripts may do without
    options.directory = std::filesystem::current_path(error).string();
  }
  SessionOptions& session = options.session;
  if (session.threads <= 0)
    session.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  HEDDLE_RETURN_IF_ERROR(CheckPasses(session.disabled_passes));
  HEDDLE_RETURN_IF_ERROR(CheckCpu(session.cpu));
  HEDDLE_RETURN_IF_ERROR(CheckFusion(session.fusion));
  HEDDLE_RETURN_IF_ERROR(FindSpillFolder(options.directory, &session.spill_folder));
  if (!ops::ArePlausible(session.constants)) {
    const ops::LinkRates links = session.constants.links;
    session.constants = ConstantsCache().Find(MachineKey(session.threads)).value_or(session.constants);
    session.constants.links = links;
  }
  HEDDLE_ASSIGN_OR_RETURN(options.libraries, LibraryFolders(std::move(options.libraries), options.directory));
  return options;
}

Status SetCompression(std::string_view mode, SessionOptions* session) {
  if (mode != "auto" && mode != "off") return Usage("compress takes auto or off, not '{}'", mode);
  if (mode == "auto") session->disabled_passes.emplace_back(compiler::kPlainStorage);
  return OkStatus();
}

Status CheckDevices(std::string_view devices) {
  if (devices == "cpu" || devices == "auto" || scheduler::ParseDevices(devices)) return OkStatus();
  return Usage("devices takes cpu, auto, or opencl:0 to opencl:127, not '{}'", devices)
      .WithNote("'heddle devices' lists the devices of this machine");
}

Status SetDevices(std::string_view devices, SessionOptions* session) {
  HEDDLE_RETURN_IF_ERROR(CheckDevices(devices));
  session->devices = devices;
  if (devices != "auto") return OkStatus();
  const std::optional<Device> fastest = ops::FastestDevice();
  session->devices = fastest ? fmt::format("{}:{}/cost", Name(fastest->type), fastest->index) : "cpu";
  return OkStatus();
}

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  HEDDLE_ASSIGN_OR_RETURN(options, CompleteOptions(std::move(options)));
  WarnOfMemory(options.session, options.warn);
  UseDevice(&options.session, options.warn);
  HEDDLE_RETURN_IF_ERROR(UseCpu(options.session));
  return std::unique_ptr<Engine>(new Engine(std::move(options)));
}

std::unique_ptr<compiler::SourceLoader> Engine::NewLoader() const {
  return std::make_unique<compiler::FileSourceLoader>(options_.directory, RootsOfRun());
}

compiler::CompileOptions Engine::CompileOptionsOf(const Script& script,
                                                  compiler::SourceLoader* loader) const {
  compiler::CompileOptions options;
  options.script = script.name;
  options.arguments = script.parameters;
  options.argument_hint = options_.argument_hint;
  options.loader = loader;
  options.libraries = options_.libraries;
  for (const std::string& pass : options_.session.disabled_passes) options.disabled_passes.insert(pass);
  return options;
}

Result<Program> Engine::Compile(const Script& script, compiler::Diagnostics* diagnostics) const {
  const LimitOfRun limit(options_.session.memory_bytes);
  const std::unique_ptr<compiler::SourceLoader> loader = NewLoader();
  return compiler::CompileScript(script.text, CompileOptionsOf(script, loader.get()), diagnostics);
}

Result<RunResults> Engine::Run(const Script& script, const HostValues& inputs,
                               const std::vector<std::string>& outputs, const RunCallbacks& callbacks) const {
  const LimitOfRun limit(options_.session.memory_bytes);
  SessionVariables variables;
  HEDDLE_ASSIGN_OR_RETURN(variables.frame, VariablesOf(inputs, options_.session.element_type));
  const std::unique_ptr<compiler::SourceLoader> loader = NewLoader();
  compiler::CompileOptions options = CompileOptionsOf(script, loader.get());
  options.continuation = ContinuationOf(variables.frame);
  options.continuation->outputs = outputs;
  compiler::Diagnostics diagnostics;
  HEDDLE_ASSIGN_OR_RETURN(const Program program, compiler::CompileScript(script.text, options, &diagnostics));
  if (callbacks.warn && diagnostics.warnings() > 0)
    callbacks.warn(diagnostics.RenderAll(compiler::Severity::kWarning));

  RunSurroundings surroundings;
  surroundings.directory = options_.directory;
  surroundings.print = OrNothing(callbacks.print);
  surroundings.cancellation = callbacks.cancellation;
  surroundings.show_plan = callbacks.observe;
  surroundings.variables = &variables;
  RunOutcome outcome = RunLocally(program, options_.session, surroundings);
  HEDDLE_RETURN_IF_ERROR(outcome.status);
  RunResults results;
  if (!outcome.records.empty()) results.record = std::make_shared<const RunRecord>(RecordOf(script, outcome));
  results.statistics = std::move(outcome.statistics[0]);
  for (const std::string& output : outputs) {
    const Variable* const variable = variables.frame.Find(output);
    if (variable == nullptr)
      return FailedPrecondition("the output '{}' has no value at the end of the script", output)
          .WithNote("no statement that ran has assigned it");
    HEDDLE_ASSIGN_OR_RETURN(results.outputs[output], ToHostValue(*variable));
  }
  return results;
}

RunRecord Engine::RecordOf(const Script& script, const RunOutcome& outcome) const {
  const std::unique_ptr<compiler::SourceLoader> loader = NewLoader();
  const auto load = [&](const std::string& file) -> std::optional<std::string> {
    Result<std::string> text = loader->Load(file);
    if (!text.ok()) return std::nullopt;
    return *std::move(text);
  };
  return MakeRunRecord(script.name, script.text, options_.session, outcome.status, outcome.statistics,
                       outcome.records, load);
}

compiler::Diagnostics Engine::Check(const Script& script, const HostValues& inputs) const {
  const LimitOfRun limit(options_.session.memory_bytes);
  compiler::Diagnostics diagnostics;
  const Result<VariableTable> variables = VariablesOf(inputs, options_.session.element_type);
  if (!variables.ok()) {
    diagnostics.AddStatus(variables.status());
    return diagnostics;
  }
  const std::unique_ptr<compiler::SourceLoader> loader = NewLoader();
  compiler::CompileOptions options = CompileOptionsOf(script, loader.get());
  options.continuation = ContinuationOf(*variables);
  const Status status = compiler::CompileScript(script.text, options, &diagnostics).status();
  if (!status.ok() && !diagnostics.HasErrors()) diagnostics.AddStatus(status);
  return diagnostics;
}

Result<std::string> Engine::Explain(const Script& script, std::string_view level) const {
  const LimitOfRun limit(options_.session.memory_bytes);
  const std::unique_ptr<compiler::SourceLoader> loader = NewLoader();
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(options_.directory, nullptr, RootsOfRun());
  HEDDLE_ASSIGN_OR_RETURN(compiler::FuseOptions fuse, FuseOptionsOf(options_.session));
  compiler::Diagnostics diagnostics;
  DistributionText distribution(options_.session);
  PlacementText placement(options_.session);
  SessionOptions planned = options_.session;
  if (planned.memory_bytes == 0)
    planned.available_bytes =
        planned.ranks == 1 ? MemoryBudget::Process().limit() : ReadMemoryBounds().DefaultLimit(planned.ranks);
  return compiler::Explain(
      script.text, CompileOptionsOf(script, loader.get()), level, &diagnostics,
      {.fuse = std::move(fuse),
       .element_type = options_.session.element_type,
       .files = files.get(),
       .runs_directly =
           [this](const Graph& block) { return RunsDirectly(options_.session) && IsSmall(block); },
       .distribution_of = [&](const Graph& fused) { return distribution.Of(fused); },
       .placement_of = [&](const Graph& fused) { return placement.Of(fused); },
       .memory_of = [&](const Program& program) { return ExplainMemory(program, planned, files.get()); }});
}

std::unique_ptr<InteractiveSession> Engine::NewSession(
    const RunCallbacks& callbacks, const std::map<std::string, std::string>& parameters) const {
  InteractiveSession::Options options;
  options.loader = NewLoader();
  options.compile =
      CompileOptionsOf({.name = InteractiveSession::kScript, .parameters = parameters}, nullptr);
  options.session = options_.session;
  options.directory = options_.directory;
  options.print = OrNothing(callbacks.print);
  options.warn = OrNothing(callbacks.warn);
  return std::make_unique<InteractiveSession>(std::move(options));
}

}  // namespace heddle::engine

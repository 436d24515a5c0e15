// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>

#include "cluster/access/token_file.h"
#include "cluster/cli/connection.h"
#include "cluster/cli/data_roots.h"
#include "cluster/cli/metrics_options.h"
#include "cluster/cli/report.h"
#include "cluster/cli/shared_memory_option.h"
#include "cluster/cli/spill_folder_option.h"
#include "cluster/cli/verb.h"
#include "cluster/process/interrupt.h"
#include "cluster/process/process_limits.h"
#include "cluster/process/systemd_notifier.h"
#include "cluster/worker/worker_daemon.h"
#include "core/environment/log.h"
#include "core/memory/memory_bounds.h"
#include "core/text/utf8.h"
#include "ops/device/device.h"
#include "ops/io/files/own_folders.h"
#include "ops/panels/spill_files.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kOptions[] = {
    {"threads", Kind::kValue, "N", "threads that it offers to jobs (default: all cores)"},
    {"memory", Kind::kValue, "SIZE",
     "memory that it offers to jobs, e.g. 4G (default: what the machine has)"},
    {"slots", Kind::kValue, "N", "divide both by N for jobs that do not say what they need (default 1)"},
    {"name", Kind::kValue, "NAME", "as others see it (default: HOST-1, HOST-2, ...)"},
    {"peer-host", Kind::kValue, "ADDRESS", "of this machine, for executors elsewhere (default: none)"},
    {"patience-ms", Kind::kValue, "N", "how long to go on computing without a master (default 600000)"},
    kMetricsOptions[0],
    kMetricsOptions[1],
    kMetricsOptions[2],
    {"metrics-token-file", Kind::kValue, "FILE",
     "a token that is as good for metrics, also while no master is there to tell what others are"},
    kDataRootOption,
    kSpillFolderOption,
    {"devices", Kind::kValue, "NAME",
     "device that jobs may use here: cpu: none (default); auto, the fastest of this machine, or opencl:0"},
    {"run-as-owner", Kind::kFlag, "", "as root: run each job as the user who is called as its owner"},
    {"no-isolation", Kind::kFlag, "",
     "do not keep executors in by Landlock and seccomp (default: keep them in)"},
    kCoreDumpsOption,
    kNoSharedMemoryOption,
    {"verbose", Kind::kFlag, "", "tell on stderr what happens"},
};

// Absolute: executors stand in the folders of their jobs.
Result<std::string> FindSpillFolder(const Arguments& arguments) {
  HEDDLE_ASSIGN_OR_RETURN(std::string folder, ReadSpillFolder(arguments));
  if (folder.empty()) return folder;
  std::error_code error;
  folder = std::filesystem::absolute(folder, error).string();
  const Status found = ops::CheckSpillFolder(folder);
  if (found.ok()) return folder;
  Status named(found.code(), "--spill-folder: " + found.message());
  for (const std::string& note : found.notes()) named = named.WithNote(note);
  return named;
}

// Without the device the worker works on: its jobs compute on the processor, with the same bytes.
Result<WorkerDevice> ReadDevice(const Arguments& arguments) {
  const std::string devices = arguments.Value("devices").value_or("cpu");
  const bool is_device = ops::ParseDevice(devices).has_value();
  if (devices != "cpu" && devices != "auto" && !is_device)
    return Usage("--devices takes cpu, auto, or opencl:0 to opencl:127, not '{}'", devices)
        .WithNote("'heddle devices' lists the devices of this machine");
  Result<WorkerDevice> found = FindWorkerDevice(devices);
  WorkerDevice device;
  if (found.ok())
    device = *std::move(found);
  else
    device.why_not = found.status().message();
  if (!device.why_not.empty())
    Warn(fmt::format("--devices {}: {}; jobs compute on the processor ('heddle devices' tells more)", devices,
                     EscapeForTerminal(device.why_not)));
  return device;
}

Result<WorkerOptions> ReadOptions(const Arguments& arguments) {
  WorkerOptions options;
  HEDDLE_ASSIGN_OR_RETURN(options.threads, ReadThreads(arguments));
  HEDDLE_ASSIGN_OR_RETURN(options.memory_bytes, arguments.Bytes("memory", DefaultMemoryLimit()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t slots, arguments.Integer("slots", 1, 1, options.threads));
  options.slots = static_cast<int>(slots);
  HEDDLE_ASSIGN_OR_RETURN(options.patience_ms,
                          arguments.Integer("patience-ms", options.patience_ms, 0, INT32_MAX));
  if (const auto listen = arguments.Value("metrics-listen")) {
    HEDDLE_ASSIGN_OR_RETURN(options.metrics_listen, CheckPort("metrics-listen", *listen));
    HEDDLE_ASSIGN_OR_RETURN(options.metrics_tls, ReadMetricsTls(arguments));
    if (const auto file = arguments.Value("metrics-token-file")) {
      HEDDLE_ASSIGN_OR_RETURN(options.metrics_token, ReadToken(*file));
    }
    options.metrics_listening = [tls = options.metrics_tls](const std::string& address) {
      PrintOutput(fmt::format("heddle worker shows metrics on {}\n", MetricsUrl(address, tls)));
    };
  }
  options.name = arguments.Value("name").value_or("");
  options.peer_host = arguments.Value("peer-host").value_or("");
  options.core_dumps = arguments.Has("core-dumps");
  options.isolates = !arguments.Has("no-isolation");
  options.runs_as_owner = arguments.Has("run-as-owner");
  if (options.runs_as_owner && geteuid() != 0)
    return Usage("--run-as-owner: only a worker of root can run jobs as other users");
  HEDDLE_ASSIGN_OR_RETURN(options.device, ReadDevice(arguments));
  options.shares_memory = !arguments.Has(kNoSharedMemoryOption.name);
  HEDDLE_ASSIGN_OR_RETURN(options.data_roots, ReadDataRoots(arguments));
  HEDDLE_ASSIGN_OR_RETURN(options.spill_folder, FindSpillFolder(arguments));
  options.closed_paths =
      ClosedPaths(arguments, {"token-file", "metrics-token-file", "tls-key", "metrics-tls-key"});
  options.folder = ops::UserStateFolder();
  options.find_master = [&arguments] { return FindMaster(arguments, kWorkerToken); };
  return options;
}

int Run(const Arguments& arguments) {
  Result<WorkerOptions> options = ReadOptions(arguments);
  if (!options.ok()) return Report(options.status());
  if (arguments.Has("verbose")) SetLogLevel(LogLevel::kInfo);
  RaiseDescriptorLimit();
  if (!options->core_dumps) ForbidCoreDumps();
  SystemdNotifier notifier = SystemdNotifier::FromEnvironment();
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  options->ping = [&](const std::string& state) {
    if (cancellation.why().ok())
      notifier.Ping(state);
    else
      notifier.Stopping();
  };
  const auto ready = [&](const std::string& name, const std::string& address) {
    PrintOutput(fmt::format("heddle worker {} works for the master at {}\n", name, address));
    notifier.Ready(fmt::format("{} works for {}", name, address));
  };
  const Status ended = RunWorker(*options, &cancellation, ready);
  notifier.Stopping();  // Also where no ping came between the request and the end.
  return Report(ended);
}

}  // namespace

const Verb kWorkerVerb = {"worker",
                          "work on this machine for a master",
                          "worker [OPTIONS]",
                          JoinOptions({kOptions, ConnectionOptions()}),
                          "heddle worker --threads 8",
                          Run};

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "cluster/cli/connection.h"
#include "cluster/cli/data_roots.h"
#include "cluster/cli/metrics_options.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/compiling/compile_queue.h"
#include "cluster/master/master_server.h"
#include "cluster/master/message_limits.h"
#include "cluster/process/interrupt.h"
#include "cluster/process/process_limits.h"
#include "cluster/process/repeated_work.h"
#include "cluster/process/systemd_notifier.h"
#include "core/environment/log.h"
#include "core/memory/memory_budget.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr size_t kLongestSocketPath = 100;
constexpr int64_t kMostQueued = 10'000'000;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

constexpr Option kOptions[] = {
    {"dev", Kind::kFlag, "", "for this user and machine; other verbs find it by themselves"},
    {"listen", Kind::kValue, "ADDRESS", "HOST:PORT or unix:/path; what other machines reach needs TLS"},
    {"state", Kind::kValue, "DIR", "folder of the job store (--dev: in the user's state folder)"},
    {"token-file", Kind::kValue, "FILE",
     "token of role admin, by which workers join as well (default: the master makes tokens, in DIR/NAME.token)"},
    {"worker-token-file", Kind::kValue, "FILE",
     "token by which workers join, instead of that of --token-file"},
    {"audit-size", Kind::kValue, "SIZE", "of the audit log, before it is rotated; 8 are kept (default 64M)"},
    {"tls-certificate", Kind::kValue, "FILE", "certificate of the master"},
    {"tls-key", Kind::kValue, "FILE", "its key"},
    {"tls-ca", Kind::kValue, "FILE", "clients and workers need a certificate signed by one of these"},
    {"keep-jobs", Kind::kValue, "N", "finished jobs to remember (default 1000)"},
    {"most-output", Kind::kValue, "SIZE", "of standard output of a job (default 256M)"},
    {"lease-ms", Kind::kValue, "N",
     "a worker that is silent for so long is lost; one whose connection broke, after a quarter of it, or 2 s "
     "(default 10000)"},
    {"most-workers", Kind::kValue, "N", "of a job; one that wants more is refused (default 4096)"},
    {"most-queued", Kind::kValue, "N", "jobs that may wait; further ones are refused (default 100000)"},
    {"most-queued-of-user", Kind::kValue, "N", "the same of one user (default: as many as of all)"},
    {"memory", Kind::kValue, "SIZE", "most memory of the master (default: what the machine has)"},
    {"checkpoints", Kind::kValue, "PLACE",
     "where jobs leave checkpoints: s3://BUCKET/PREFIX, a folder that all workers see, or off (default: off; "
     "--dev: in the state folder)"},
    {"compile-memory", Kind::kValue, "SIZE",
     "of a process that compiles a script (default 2G, or a share of --memory)"},
    {"compile-seconds", Kind::kValue, "N", "a script that takes longer to compile is refused (default 60)"},
    kMetricsOptions[0],
    kMetricsOptions[1],
    kMetricsOptions[2],
    kDataRootOption,
    {"no-isolation", Kind::kFlag, "",
     "do not keep processes that compile in by Landlock and seccomp (default: keep them in)"},
    kCoreDumpsOption,
    {"verbose", Kind::kFlag, "", "tell on stderr what happens"},
};

// What `heddle admin config` shows: each option, as it was given or as it is without.
std::vector<MasterOptions::Setting> SettingsOf(const Arguments& arguments, const MasterOptions& options) {
  const std::map<std::string_view, std::string> in_force = {
      {"listen", options.listen},
      {"state", options.folder},
      {"keep-jobs", std::to_string(options.store.most_finished_jobs)},
      {"most-output", std::to_string(options.store.most_output_bytes)},
      {"lease-ms", std::to_string(options.core.ttl_ns / kNsPerMs)},
      {"most-workers", std::to_string(options.core.most_workers)},
      {"most-queued", std::to_string(options.core.most_queued)},
      {"most-queued-of-user", std::to_string(options.core.most_queued_of_user)},
      {"checkpoints", options.core.checkpoints.empty() ? "off" : options.core.checkpoints},
      {"memory", std::to_string(MemoryBudget::Process().limit())},
      {"compile-memory", std::to_string(options.compile.memory_bytes)},
      {"compile-seconds", std::to_string(options.compile.most_ns / kNsPerSecond)},
      {"data-root", fmt::format("{}", fmt::join(options.core.data_roots, " "))}};
  std::vector<MasterOptions::Setting> settings;
  for (const Option& option : kOptions) {
    const std::string name(option.name);
    const auto known = in_force.find(option.name);
    std::string value = known != in_force.end()      ? known->second
                        : option.kind == Kind::kFlag ? (arguments.Has(name) ? "on" : "off")
                                                     : arguments.Value(name).value_or("");
    settings.push_back({name, std::move(value), arguments.Has(name), std::string(option.help)});
  }
  return settings;
}

// The absolute name of a folder; of a working directory that was deleted, its name as it is.
std::string WholeName(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(folder, error);
  return error ? folder : whole.lexically_normal().string();
}

Result<MasterOptions> ReadOptions(const Arguments& arguments) {
  MasterOptions options;
  const bool development = arguments.Has("dev");
  if (!development && (!arguments.Has("listen") || !arguments.Has("state")))
    return Usage("a master needs --listen ADDRESS and --state DIR")
        .WithNote("'heddle master --dev' starts one for this user and machine only");
  options.folder = arguments.Value("state").value_or(DevelopmentFolder());
  if (options.folder.empty()) return Usage("--state takes the name of a folder");
  const std::string folder = WholeName(options.folder);
  const std::string socket = folder + "/master.sock";
  options.listen = arguments.Value("listen").value_or(socket.size() < kLongestSocketPath ? "unix:" + socket
                                                                                         : "127.0.0.1:0");
  HEDDLE_ASSIGN_OR_RETURN(options.listen, CheckAddress("listen", options.listen));
  options.tokens = {arguments.Value("token-file").value_or(""),
                    arguments.Value("worker-token-file").value_or("")};
  if (options.tokens.admin_file.empty() && !options.tokens.worker_file.empty())
    return Usage("--worker-token-file goes with --token-file, which holds the token of who administrates");
  options.certificate = arguments.Value("tls-certificate").value_or("");
  options.key = arguments.Value("tls-key").value_or("");
  options.client_authority = arguments.Value("tls-ca").value_or("");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t keep_jobs,
                          arguments.Integer("keep-jobs", options.store.most_finished_jobs, 0, 1'000'000));
  options.store.most_finished_jobs = static_cast<int>(keep_jobs);
  HEDDLE_ASSIGN_OR_RETURN(options.store.most_output_bytes,
                          arguments.Bytes("most-output", options.store.most_output_bytes));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t lease_ms,
                          arguments.Integer("lease-ms", options.core.ttl_ns / kNsPerMs, 100, 3'600'000));
  options.core.ttl_ns = lease_ms * kNsPerMs;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most_workers,
                          arguments.Integer("most-workers", options.core.most_workers, 1, kMostWorkers));
  options.core.most_workers = static_cast<int>(most_workers);
  // All workers of a user and machine see the state folder.
  const std::string place =
      arguments.Value("checkpoints").value_or(development ? folder + "/checkpoints" : "off");
  if (place != "off") {
    HEDDLE_RETURN_IF_ERROR(CheckCheckpointLocation(place));
    options.core.checkpoints = place;
  }
  HEDDLE_ASSIGN_OR_RETURN(options.core.most_queued,
                          arguments.Integer("most-queued", options.core.most_queued, 1, kMostQueued));
  HEDDLE_ASSIGN_OR_RETURN(
      options.core.most_queued_of_user,
      arguments.Integer("most-queued-of-user", options.core.most_queued, 1, options.core.most_queued));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t memory, arguments.Bytes("memory", 0));
  if (memory > 0) MemoryBudget::Process().SetLimit(memory);
  const CompileShares shares =
      SharesOf(MemoryBudget::Process().limit(), static_cast<int>(std::thread::hardware_concurrency()));
  options.compile.at_a_time = shares.at_a_time;
  HEDDLE_ASSIGN_OR_RETURN(
      options.compile.memory_bytes,
      arguments.Bytes("compile-memory", std::min(options.compile.memory_bytes, shares.bytes)));
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t seconds,
      arguments.Integer("compile-seconds", options.compile.most_ns / kNsPerSecond, 1, 86'400));
  options.compile.most_ns = seconds * kNsPerSecond;
  HEDDLE_ASSIGN_OR_RETURN(options.audit.most_bytes, arguments.Bytes("audit-size", options.audit.most_bytes));
  options.compile.core_dumps = arguments.Has("core-dumps");
  options.compile.isolates = !arguments.Has("no-isolation");
  HEDDLE_ASSIGN_OR_RETURN(options.core.data_roots, ReadDataRoots(arguments));
  if (const auto listen = arguments.Value("metrics-listen")) {
    HEDDLE_ASSIGN_OR_RETURN(options.metrics_listen, CheckPort("metrics-listen", *listen));
    HEDDLE_ASSIGN_OR_RETURN(options.metrics_tls, ReadMetricsTls(arguments));
  }
  options.core.closed_paths = ClosedPaths(
      arguments, {"token-file", "worker-token-file", "tls-key", "metrics-tls-key"}, options.listen);
  if (options.core.checkpoints.starts_with("/"))
    options.core.closed_paths.push_back(options.core.checkpoints);
  options.settings = SettingsOf(arguments, options);
  return options;
}

int Run(const Arguments& arguments) {
  const Result<MasterOptions> options = ReadOptions(arguments);
  if (!options.ok()) return Report(options.status());
  if (arguments.Has("verbose")) SetLogLevel(LogLevel::kInfo);
  RaiseDescriptorLimit();
  if (!arguments.Has("core-dumps")) ForbidCoreDumps();

  SystemdNotifier notifier = SystemdNotifier::FromEnvironment();
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  const Result<std::unique_ptr<MasterServer>> server = MasterServer::Start(*options);
  if (!server.ok()) return Report(server.status());
  if (const std::string metrics = (*server)->metrics_address(); !metrics.empty())
    PrintOutput(
        fmt::format("heddle master shows metrics on {}\n", MetricsUrl(metrics, options->metrics_tls)));
  PrintOutput(fmt::format("heddle master listens on {}\n", (*server)->address()));
  const auto look = [&](const auto& tell) {
    const Result<std::string> state = (*server)->Look();
    if (state.ok()) (notifier.*tell)(*state);
  };
  look(&SystemdNotifier::Ready);
  cancellation.Listen([&](const Status&) {
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  });
  {
    std::optional<RepeatedWork> pings;
    if (notifier.is_there())
      pings.emplace(notifier.pause(), notifier.pause(), [&] { look(&SystemdNotifier::Ping); });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended; });
    notifier.Stopping();
  }
  cancellation.Listen(nullptr);
  return 0;
}

}  // namespace

const Verb kMasterVerb = {"master",
                          "queue jobs and give them to workers",
                          "master --dev | master --listen ADDRESS --state DIR [OPTIONS]",
                          JoinOptions({kOptions}),
                          "heddle master --dev",
                          Run};

}  // namespace heddle::cluster::cli

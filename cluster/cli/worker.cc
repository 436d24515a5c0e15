// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "cluster/cli/connection.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/interrupt.h"
#include "cluster/master_folder.h"
#include "cluster/worker_daemon.h"
#include "core/log.h"

namespace heddle::cluster::cli {
namespace {

const std::vector<Option>& Options() {
  using Kind = Option::Kind;
  static const std::vector<Option> options = [] {
    std::vector<Option> all = {
        {"threads", Kind::kValue, "N", "threads of its kernels (default: all cores)"},
        {"memory", Kind::kValue, "SIZE", "most matrix memory, e.g. 4G (default: unlimited)"},
        {"name", Kind::kValue, "NAME", "as others see it (default: HOST-1, HOST-2, ...)"},
        {"peer-host", Kind::kValue, "ADDRESS", "of this machine, for the executors of others (default: this machine only)"},
        {"plaintext-peers", Kind::kFlag, "", "executors of different machines talk without TLS: only on a network of your own"},
        {"patience-ms", Kind::kValue, "N", "how long to go on without a master (default 600000)"},
        {"verbose", Kind::kFlag, "", "tell on stderr what happens"},
    };
    for (const Option& option : ConnectionOptions()) all.push_back(option);
    return all;
  }();
  return options;
}

Result<WorkerOptions> ReadOptions(const Arguments& arguments) {
  WorkerOptions options;
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", cores, 1, 4096));
  options.threads = static_cast<int>(threads);
  HEDDLE_ASSIGN_OR_RETURN(options.memory_bytes, arguments.Bytes("memory", 0));
  HEDDLE_ASSIGN_OR_RETURN(options.patience_ms, arguments.Integer("patience-ms", options.patience_ms, 0, INT32_MAX));
  options.name = arguments.Value("name").value_or("");
  options.peer_host = arguments.Value("peer-host").value_or("");
  options.plaintext_peers = arguments.Has("plaintext-peers");
  options.folder = UserStateFolder();
  options.find_master = [&arguments] { return FindMaster(arguments); };
  return options;
}

int Run(const Arguments& arguments) {
  if (!arguments.positional().empty()) return Report(Usage("'{}': heddle worker takes options only", arguments.positional()[0]));
  const Result<WorkerOptions> options = ReadOptions(arguments);
  if (!options.ok()) return Report(options.status());
  if (arguments.Has("verbose")) SetLogLevel(LogLevel::kInfo);
  Cancellation cancellation;
  InterruptGuard guard(cancellation);
  return Report(RunWorker(*options, &cancellation, [](const std::string& name, const std::string& address) {
    PrintOutput(fmt::format("heddle worker {} works for the master at {}\n", name, address));
  }));
}

}  // namespace

const Verb kWorkerVerb = {"worker", "work on this machine for a master", "worker [OPTIONS]", Options(), "heddle worker --threads 8", Run};

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cluster/cli/connection.h"
#include "cluster/cli/installation/findings.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/executor/isolation.h"
#include "cluster/protocol_version.h"
#include "core/environment/modules.h"
#include "core/memory/memory_bounds.h"
#include "core/version.h"
#include "ops/base/cpu.h"
#include "ops/io/files/own_folders.h"
#include "proto/master.pb.h"

namespace heddle::cluster::cli {
namespace {

constexpr int64_t kFewFiles = 1024;
constexpr int64_t kLittleMemory = int64_t{1} << 30;
constexpr int64_t kLittleDisk = int64_t{1} << 30;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Finding Processor() {
  if (!ops::IsSupported(ops::Cpu::kAvx2))
    return FaultFinding("processor", "it lacks AVX2 or FMA",
                        "Heddle needs x86-64-v3: Intel since Haswell, AMD since Zen");
  return GoodFinding("processor",
                     fmt::format("{} threads, kernels for {}", std::thread::hardware_concurrency(),
                                 ops::Name(ops::SelectedCpu())));
}

Finding HugePages() {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const std::string modes = FirstLine(path);
  if (modes.empty())
    return NoteFinding("huge pages", "the kernel has none", "a kernel with transparent huge pages is faster");
  if (modes.find("[never]") != std::string::npos)
    return NoteFinding("huge pages", "off: large matrices are slower to read",
                       "as root: echo madvise > " + path);
  return GoodFinding("huge pages", modes);
}

Finding Memory() {
  const MemoryBounds bounds = ReadMemoryBounds();
  const int64_t limit = bounds.DefaultLimit();
  std::string text = fmt::format("{} for matrices, set by {}", Size(limit), bounds.NameOfSmallest());
  if (limit < kLittleMemory)
    return NoteFinding("memory", std::move(text), "raise that limit, or run smaller data");
  return GoodFinding("memory", std::move(text));
}

Finding OpenFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return GoodFinding("open files", "no limit");
  const auto files = static_cast<int64_t>(limit.rlim_cur);
  if (files < kFewFiles)
    return NoteFinding("open files", fmt::format("at most {}", files),
                       "ulimit -n 65536, for masters and folders of many parts");
  return GoodFinding("open files", fmt::format("at most {}", files));
}

Finding Module(std::string_view file, std::string_view what, std::string_view without) {
  const Result<std::string> path = FindInstalled(file);
  if (path.ok()) return GoodFinding(std::string(what), *path);
  return NoteFinding(std::string(what), fmt::format("{} is not there: {}", file, without),
                     "install Heddle's package whole, or build with the library");
}

// Whether this user may make files below a folder, which may not be there yet. `variable` moves it elsewhere.
Finding Writable(std::string_view about, const std::string& folder, std::string_view variable,
                 std::string_view without) {
  if (folder.empty())
    return NoteFinding(std::string(about), fmt::format("there is none: {}", without),
                       "set HOME to a folder of this user");
  std::filesystem::path place(folder);
  std::error_code error;
  while (!place.empty() && !std::filesystem::exists(place, error) && place.has_relative_path())
    place = place.parent_path();
  if (access(place.c_str(), W_OK | X_OK) != 0) {
    struct stat facts {};
    const bool is_own = stat(place.c_str(), &facts) == 0 && facts.st_uid == geteuid();
    return NoteFinding(
        std::string(about),
        fmt::format("{} cannot be {}: {}", folder, place == folder ? "written" : "made", without),
        is_own ? fmt::format("chmod u+rwx {}", place.string())
               : fmt::format("set HOME or {} to a folder of this user", variable));
  }
  struct statvfs disk {};
  if (statvfs(place.c_str(), &disk) == 0) {
    const auto room = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
    if (room < kLittleDisk)
      return NoteFinding(std::string(about), fmt::format("{} has {} left", place.string(), Size(room)),
                         "make room on that disk");
  }
  return GoodFinding(std::string(about), folder);
}

// Of executors of jobs, where a worker runs on this machine.
Finding Isolation() {
  std::string text = DescribeIsolation();
  if (text.find("no landlock") != std::string::npos)
    return NoteFinding(
        "isolation", std::move(text),
        "with Landlock (Linux 5.13, lsm=landlock,...) the kernel keeps jobs in their folders as well");
  return GoodFinding("isolation", std::move(text));
}

// The master that the options name; without any, one of this user, which need not run.
Finding Cluster(const Arguments& arguments) {
  const bool is_named = arguments.Has("master");
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  NodesReply nodes;
  const Status status = client.ok() ? (*client)->Nodes(&nodes) : client.status();
  if (!status.ok()) {
    if (!is_named && status.code() == StatusCode::kUnavailable)
      return GoodFinding("cluster", "no master of this user runs, and --master names none");
    return FaultFinding("cluster", status.message(), Joined(status.notes()));
  }
  size_t alive = 0;
  for (const NodeDescription& node : nodes.nodes())
    if (node.state() == "ALIVE") ++alive;
  if (alive == 0) return NoteFinding("cluster", "the master has no worker", "heddle worker, on each machine");
  return GoodFinding(
      "cluster", fmt::format("the master answers, {} of {} workers are alive", alive, nodes.nodes_size()));
}

int Run(const Arguments& arguments) {
  const std::vector<Finding> findings = {
      GoodFinding("version", fmt::format("heddle {}, protocol {}", kVersion, kProtocolVersion)),
      Processor(),
      Memory(),
      HugePages(),
      OpenFiles(),
      Isolation(),
      Module("libheddle_codegen.so", "machine code", "fused operators are interpreted, which is slow"),
      Module("heddle-array-process", "HDF5 and MATLAB", "files of these formats are errors"),
      Module("libheddle_arrow.so", "Parquet and Arrow", "files of these formats are errors"),
      Writable("cache", ops::UserCacheFolder(), "XDG_CACHE_HOME",
               "machine code is compiled anew in each process"),
      Writable("state", ops::UserStateFolder(), "XDG_STATE_HOME", "heddle master --dev does not work"),
      Cluster(arguments),
  };
  return ReportFindings(arguments, findings);
}

}  // namespace

const Verb kDoctorVerb = {
    "doctor",
    "look at this machine, this installation and the cluster: what is wrong and how to mend it",
    "doctor [OPTIONS]",
    MasterVerbOptions(),
    "heddle doctor --master host:7070 --token-file admin.token",
    Run};

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/limited_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench/base/probe.h"
#include "core/environment/descriptor.h"

namespace heddle::bench {
namespace {

constexpr const char* kFirstVersionRoot = "/sys/fs/cgroup/memory";
constexpr const char* kSecondVersionRoot = "/sys/fs/cgroup";
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool WriteText(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.ok() && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The number behind a word that begins a line; 0 without such a line.
int64_t NumberBehind(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(word)) return std::atoll(line.c_str() + word.size());
  return 0;
}

// The group of this process: below `word` of a line of /proc/self/cgroup; "" for the root.
std::string OwnGroup(const std::string& word) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (const size_t at = line.find(word); at != std::string::npos) {
      const std::string path = line.substr(at + word.size());
      return path == "/" ? "" : path;
    }
  return "";
}

// What a process has taken so far, from files that are there until it has been waited for.
void AddDiskBytes(pid_t pid, LimitedRun* run) {
  const std::string text = TextOf(fmt::format("/proc/{}/io", pid));
  run->disk_read_bytes = NumberBehind(text, "read_bytes:");
  run->disk_written_bytes = NumberBehind(text, "write_bytes:");
}

int64_t AnonymousBytesOf(pid_t pid) {
  return 1024 * NumberBehind(TextOf(fmt::format("/proc/{}/status", pid)), "RssAnon:");
}

// In the child: into the group, and on as another program.
[[noreturn]] void Become(const std::vector<char*>& arguments, int output, int processes) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  // "0" is whoever writes it.
  if (processes < 0 || write(processes, "0", 1) == 1) execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

ControlGroup::ControlGroup(std::string folder, bool is_first_version, int64_t limit_bytes,
                           std::string why_not)
    : folder_(std::move(folder)),
      is_first_version_(is_first_version),
      limit_bytes_(limit_bytes),
      why_not_(std::move(why_not)) {}

std::unique_ptr<ControlGroup> ControlGroup::Make(int64_t limit_bytes) {
  std::string why_not = "no file system of control groups with memory is mounted";
  const auto make = [&](const std::string& parent, bool is_first_version) -> std::unique_ptr<ControlGroup> {
    const std::string folder = fmt::format("{}/heddle-bench-{}", parent, getpid());
    const std::string limit_file = folder + (is_first_version ? "/memory.limit_in_bytes" : "/memory.max");
    if (mkdir(folder.c_str(), 0755) != 0) {
      why_not = fmt::format("{}: {}", folder, std::strerror(errno));
      return nullptr;
    }
    std::unique_ptr<ControlGroup> group(new ControlGroup(folder, is_first_version, limit_bytes, ""));
    if (WriteText(limit_file, std::to_string(limit_bytes))) return group;
    why_not = fmt::format("{}: {}", limit_file, std::strerror(errno));
    return nullptr;
  };
  for (const std::string& own : {OwnGroup(":memory:"), std::string()})
    if (access((kFirstVersionRoot + own + "/memory.limit_in_bytes").c_str(), F_OK) == 0)
      if (auto group = make(kFirstVersionRoot + own, true)) return group;
  // A group that has processes hands no controllers on: the ones around it are tried as well.
  std::string own = OwnGroup("0::");
  for (bool goes_on = true; goes_on;) {
    const std::string parent = kSecondVersionRoot + own;
    if (TextOf(parent + "/cgroup.controllers").find("memory") != std::string::npos) {
      WriteText(parent + "/cgroup.subtree_control", "+memory");
      if (auto group = make(parent, false)) return group;
    }
    goes_on = !own.empty();
    own.resize(own.empty() ? 0 : own.rfind('/'));
  }
  return std::unique_ptr<ControlGroup>(new ControlGroup("", false, limit_bytes, why_not));
}

ControlGroup::~ControlGroup() {
  if (is_enforced()) rmdir(folder_.c_str());
}

std::string ControlGroup::ProcessesFile() const { return is_enforced() ? folder_ + "/cgroup.procs" : ""; }

int64_t ControlGroup::UncachedBytes() const {
  if (!is_enforced()) return 0;
  const std::string text = TextOf(folder_ + "/memory.stat");
  return is_first_version_ ? NumberBehind(text, "total_rss ") + NumberBehind(text, "total_shmem ")
                           : NumberBehind(text, "anon ") + NumberBehind(text, "shmem ");
}

Result<LimitedRun> RunLimited(const std::vector<std::string>& words, const ControlGroup& group,
                              double most_seconds) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string folder = MakeTemporaryFolder();
  const std::string output_file = folder + "/output";
  const Descriptor output(open(output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const Descriptor processes(group.is_enforced() ? open(group.ProcessesFile().c_str(), O_WRONLY | O_CLOEXEC)
                                                 : -1);
  if (!output.ok() || (group.is_enforced() && !processes.ok()))
    return Unavailable("{} cannot be started: {}", words[0], std::strerror(errno));
  LimitedRun run;
  siginfo_t end{};
  bool has_ended = false;
  run.seconds =
      1e-3 * Time([&] {
        const auto begin = std::chrono::steady_clock::now();
        const pid_t pid = fork();
        if (pid == 0) Become(arguments, output.get(), processes.get());
        if (pid < 0) return;
        for (;;) {
          end = {};
          // The process stays until what it took has been read.
          if (waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | WNOWAIT) != 0) return;
          if (end.si_pid == pid) break;
          run.peak_uncached_bytes = std::max(
              run.peak_uncached_bytes, group.is_enforced() ? group.UncachedBytes() : AnonymousBytesOf(pid));
          if (std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(most_seconds)) {
            run.was_stopped = true;
            kill(pid, SIGKILL);
          }
          std::this_thread::sleep_for(kBetweenLooks);
        }
        AddDiskBytes(pid, &run);
        has_ended = waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED) == 0;
      });
  if (!has_ended) return Unavailable("{} cannot be started: {}", words[0], std::strerror(errno));
  run.exit_code = end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
  run.output = TextOf(output_file);
  unlink(output_file.c_str());
  rmdir(folder.c_str());
  if (run.exit_code == 127) return Unavailable("{} cannot be started: {}", words[0], run.output);
  return run;
}

void DropFromPageCache(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return;
  fdatasync(file.get());
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace heddle::bench

// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/watched_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

using testing_support::ReadText;
using Seconds = std::chrono::duration<double>;

void SetLimit(int resource, int64_t most) {
  const rlimit limit{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

[[noreturn]] void BecomeProgram(const std::vector<std::string>& words, const std::string& folder,
                                const std::string& output, const std::string& errors, const Limits& limits) {
  setpgid(0, 0);
  if (chdir(folder.c_str()) != 0) _exit(126);
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (in < 0 || out < 0 || err < 0) _exit(126);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  SetLimit(RLIMIT_CORE, 0);
  SetLimit(RLIMIT_FSIZE, limits.most_output);
  // A file that may not grow is a failed write, not a signal.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGINT, SIG_DFL);  // Whoever started the fuzzer in the background had it ignored.
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

struct Usage {
  double cpu_s = 0;
  int64_t resident_bytes = 0;  ///< Of the largest process.
};

// What a process and its descendants use now.
Usage UsageOf(pid_t process) {
  static const auto kTicks = static_cast<double>(sysconf(_SC_CLK_TCK));
  Usage usage;
  const std::string folder = "/proc/" + std::to_string(process);
  const std::string stat = ReadText(folder + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return usage;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  // The state is field 3; 14 to 17 are the ticks of the process and of the children it has waited for.
  for (int i = 3; i <= 17 && fields >> field; ++i)
    if (i >= 14) usage.cpu_s += std::stod(field) / kTicks;
  std::istringstream sizes(ReadText(folder + "/statm"));
  int64_t pages = 0;
  sizes >> pages >> pages;
  usage.resident_bytes = pages * sysconf(_SC_PAGESIZE);
  std::error_code gone;
  // A process may end while it is looked at.
  for (auto task = std::filesystem::directory_iterator(folder + "/task", gone);
       !gone && task != std::filesystem::directory_iterator(); task.increment(gone)) {
    std::istringstream children(ReadText(task->path() / "children"));
    for (pid_t child = 0; children >> child;) {
      const Usage of_child = UsageOf(child);
      usage.cpu_s += of_child.cpu_s;
      usage.resident_bytes = std::max(usage.resident_bytes, of_child.resident_bytes);
    }
  }
  return usage;
}

// Looks at a running process and says what must happen to it.
class Watcher {
 public:
  Watcher(pid_t process, const Limits& limits) : process_(process), limits_(limits) {}

  Watched::End end() const { return end_; }

  void Look() {
    const Usage usage = UsageOf(process_);
    const double now = Seconds(std::chrono::steady_clock::now() - start_).count();
    if (usage.cpu_s > cpu_s_) {
      cpu_s_ = usage.cpu_s;
      moved_s_ = now;
    }
    if (usage.resident_bytes > limits_.most_bytes) return Kill(Watched::End::kTooLarge);
    if (end_ == Watched::End::kInterrupted) {
      if (now > interrupted_s_ + limits_.grace_s) Kill(Watched::End::kKilled);
    } else if (end_ == Watched::End::kItself) {
      if (now > moved_s_ + limits_.still_s) return Kill(Watched::End::kStoodStill);
      if (cpu_s_ < limits_.cpu_s && now < limits_.wall_s) return;
      end_ = Watched::End::kInterrupted;
      interrupted_s_ = now;
      kill(process_, SIGINT);
    }
  }

 private:
  void Kill(Watched::End why) {
    end_ = why;
    kill(-process_, SIGKILL);
  }

  const pid_t process_;
  const Limits& limits_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Watched::End end_ = Watched::End::kItself;
  double cpu_s_ = 0, moved_s_ = 0, interrupted_s_ = 0;
};

}  // namespace

Watched Watch(const std::vector<std::string>& words, const std::string& folder, const Limits& limits) {
  const testing_support::TemporaryFolder printed;
  const std::string output = printed.path() + "/output", errors = printed.path() + "/errors";
  Watched watched;
  const pid_t process = fork();
  if (process == 0) BecomeProgram(words, folder, output, errors, limits);
  setpgid(process, process);  // Here too, so that it holds before the first kill.
  Watcher watcher(process, limits);
  int status = 0;
  rusage usage{};
  // Most processes end within milliseconds, so the first looks are close together.
  constexpr useconds_t kShortest_us = 1000, kLongest_us = 20000;
  for (useconds_t pause_us = kShortest_us; wait4(process, &status, WNOHANG, &usage) == 0;
       pause_us = std::min(kLongest_us, pause_us + kShortest_us)) {
    watcher.Look();
    usleep(pause_us);
  }
  kill(-process, SIGKILL);
  watched.end = watcher.end();
  watched.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  watched.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  watched.peak_bytes = int64_t{1024} * usage.ru_maxrss;
  watched.output = ReadText(output);
  watched.errors = ReadText(errors);
  return watched;
}

}  // namespace heddle::fuzz

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace heddle::testing_support {

/// What a process with a limit of memory may take, as the kernel counts it (docs/memory.md): the limit, 15 %
/// of it, and 64 MiB for code, stacks and what libraries hold.
inline int64_t MostOfProcess(int64_t limit_bytes) {
  return limit_bytes + limit_bytes * 15 / 100 + (int64_t{64} << 20);
}

struct MeasuredEnd {
  int code = -1;           ///< Exit code; 128 + signal when killed.
  std::string text;        ///< The last 4 KiB of its output and of its errors.
  int64_t peak_bytes = 0;  ///< Of the process, or of the largest that it started.
};

struct Surroundings {
  int64_t address_space = 0;  ///< RLIMIT_AS; 0: none.
  std::string group;          ///< Folder of a control group; "": none.
};

/// Runs a program in `folder` for at most two minutes (times kPatience). Its output and errors go to the
/// files "output" and "errors" there, so that this process holds none of them.
inline MeasuredEnd RunMeasured(const std::vector<std::string>& words, const std::string& folder,
                               const Surroundings& around = {}) {
  const std::string files[] = {folder + "/output", folder + "/errors"};
  const pid_t child = fork();
  if (child == 0) {
    if (!around.group.empty()) std::ofstream(around.group + "/cgroup.procs") << getpid() << std::flush;
    for (int i = 0; i < 2; ++i)
      if (dup2(open(files[i].c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600), i + 1) < 0) _exit(126);
    if (chdir(folder.c_str()) != 0) _exit(126);
    const rlimit limit = {static_cast<rlim_t>(around.address_space),
                          static_cast<rlim_t>(around.address_space)};
    if (around.address_space > 0 && setrlimit(RLIMIT_AS, &limit) != 0) _exit(126);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    alarm(static_cast<unsigned>(120 * kPatience));
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  MeasuredEnd ended;
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.peak_bytes = usage.ru_maxrss * int64_t{1024};
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary | std::ios::ate);
    const auto size = static_cast<int64_t>(file.tellg());
    std::string last(static_cast<size_t>(std::min<int64_t>(size, 4096)), '\0');
    file.seekg(size - static_cast<int64_t>(last.size()));
    file.read(last.data(), static_cast<std::streamsize>(last.size()));
    ended.text += last;
  }
  return ended;
}

}  // namespace heddle::testing_support

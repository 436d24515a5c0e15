// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>

namespace heddle::testing_support {

/// A control group with a limit of memory below this process's own, where the machine lets us make one.
class ControlGroup {
 public:
  explicit ControlGroup(int64_t bytes) {
    const std::string name = "/heddle-test-" + std::to_string(getpid());
    for (const auto& [mount, file] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                      std::pair{"/sys/fs/cgroup", "memory.max"}}) {
      path_ = mount + name;
      if (mkdir(path_.c_str(), 0700) != 0) continue;
      std::ofstream limit(path_ + "/" + file);
      limit << bytes << std::flush;
      if (limit.good()) return;
      rmdir(path_.c_str());
    }
    path_.clear();
  }
  ~ControlGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  ControlGroup(const ControlGroup&) = delete;

  /// "" where there is none.
  const std::string& path() const { return path_; }
  /// Moves a process here; those that it starts from now on are here as well.
  void Add(pid_t pid) const { std::ofstream(path_ + "/cgroup.procs") << pid << std::flush; }

 private:
  std::string path_;
};

}  // namespace heddle::testing_support

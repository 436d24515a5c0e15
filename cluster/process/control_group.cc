// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/control_group.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

namespace heddle::cluster {
namespace {

constexpr char kOwnLeaf[] = "/worker";
constexpr int kWeightOfThread = 100;
constexpr int kLargestWeight = 10'000;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The kernel takes a value in one write, and tells by it whether it does.
bool WriteFile(const std::string& path, const std::string& value) {
  std::ofstream file(path);
  file << value << std::flush;
  return file.good();
}

bool HasWord(const std::string& text, const std::string& word) {
  std::istringstream words(text);
  for (std::string one; words >> one;)
    if (one == word) return true;
  return false;
}

// "/path" of the line "0::/path" of /proc/self/cgroup; "" without one.
std::string OwnPath(const std::string& root) {
  std::istringstream lines(ReadFile(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return "";
}

// The number behind a word that begins a line; 0 without one.
int64_t NumberBehind(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  std::string name;
  for (int64_t number = 0; lines >> name >> number;)
    if (name == word) return number;
  return 0;
}

}  // namespace

std::unique_ptr<ControlGroups> ControlGroups::Prepare(std::string* why_not, const std::string& root) {
  const std::string path = OwnPath(root);
  const std::string folder = root + "/sys/fs/cgroup" + (path == "/" ? "" : path);
  const std::string controllers = ReadFile(folder + "/cgroup.controllers");
  if (path.empty() || !HasWord(controllers, "memory") || !HasWord(controllers, "cpu")) {
    *why_not = "no control group of version 2 with memory and cpu";
    return nullptr;
  }
  const std::string leaf = folder + kOwnLeaf;
  if (mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) {
    *why_not = std::string("the control group of the worker is not its own: ") + strerror(errno);
    return nullptr;
  }
  const bool moved = EnterGroup(leaf, getpid());
  if (!moved || !WriteFile(folder + "/cgroup.subtree_control", "+memory +cpu")) {
    *why_not = "the control group of the worker holds processes of others, or is not its own";
    if (moved) EnterGroup(folder, getpid());
    rmdir(leaf.c_str());
    return nullptr;
  }
  return std::unique_ptr<ControlGroups>(new ControlGroups(folder));
}

Result<std::string> ControlGroups::Make(const std::string& name, const Limits& limits) const {
  const std::string folder = folder_ + "/" + name;
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return Unavailable("cannot make the control group '{}': {}", folder, strerror(errno));
  const int weight = std::min(kLargestWeight, kWeightOfThread * std::max(1, limits.threads));
  const bool limited =
      WriteFile(folder + "/memory.max",
                limits.memory_bytes > 0 ? fmt::format("{}", limits.memory_bytes) : std::string("max")) &&
      WriteFile(folder + "/cpu.weight", fmt::format("{}", weight));
  // All processes of an executor end together. Older kernels lack the file.
  WriteFile(folder + "/memory.oom.group", "1");
  if (limited) return folder;
  RemoveGroup(folder);
  return Unavailable("cannot limit the control group '{}'", folder);
}

bool EnterGroup(const std::string& folder, pid_t pid) {
  return WriteFile(folder + "/cgroup.procs", fmt::format("{}", pid));
}

int64_t KillsInGroup(const std::string& folder) {
  return NumberBehind(ReadFile(folder + "/memory.events"), "oom_kill");
}

int64_t MemoryLimitOfGroup(const std::string& folder) {
  std::istringstream text(ReadFile(folder + "/memory.max"));
  int64_t limit = 0;
  return text >> limit ? limit : 0;
}

void RemoveGroup(const std::string& folder) { rmdir(folder.c_str()); }

}  // namespace heddle::cluster

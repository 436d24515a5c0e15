// SPDX-License-Identifier: Apache-2.0
#include "core/memory/memory_bounds.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace heddle {
namespace {

constexpr int64_t kNoBound = MemoryBounds::kNoBound;

// For code, stacks, and the memory of gRPC, oneTBB and LLVM; a part of the rest for pages of tables and what
// a heap holds between its blocks.
constexpr int64_t kReserveBytes = int64_t{64} << 20;
constexpr double kShareOfRest = 1 / 1.15;
// Stacks and the arenas of the heap take much more address space than memory.
constexpr int64_t kAddressReserveBytes = int64_t{256} << 20;
// Where a bound is not even the reserve.
constexpr int64_t kLeastShare = 4;

// A small file of the kernel, at most 64 KiB of it; empty when it cannot be read.
std::string ReadSmallFile(const std::string& path) {
  constexpr size_t kPiece = 4096, kMost = 65536;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  while (text.size() < kMost) {
    const size_t had = text.size();
    text.resize(had + kPiece);
    const ssize_t got = read(file, text.data() + had, kPiece);
    text.resize(had + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got <= 0) break;
  }
  close(file);
  return text;
}

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number > 0 ? number : kNoBound;
}

// A group is bound by its own limits and by those of all groups around it. "max" and an absent file are no
// limit.
int64_t SmallestLimitUpwards(const std::string& mount, std::string path, const char* file) {
  int64_t limit = NumberIn(ReadSmallFile(mount + "/" + file));
  while (path.size() > 1) {
    limit = std::min(limit, NumberIn(ReadSmallFile(mount + path + "/" + file)));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return limit;
}

// The groups of this process by lines of /proc/self/cgroup: "0::/path" (version 2, no controllers),
// "9:memory:/path" (version 1). Those that have to do with memory.
struct ControlGroup {
  bool first_version = false;
  std::string path;
};
std::vector<ControlGroup> MemoryGroups(const std::string& root) {
  const std::string groups = ReadSmallFile(root + "/proc/self/cgroup");
  std::string_view rest = groups;
  std::vector<ControlGroup> found;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const bool has_memory = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (controllers.empty() || has_memory)
      found.push_back({has_memory, std::string(line.substr(second + 1))});
  }
  return found;
}

std::string MountOf(const ControlGroup& group, const std::string& root) {
  return root + (group.first_version ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup");
}

// Above memory.high the kernel lets a group hardly go on, so it counts like memory.max.
int64_t ControlGroupLimit(const std::string& root) {
  int64_t limit = kNoBound;
  for (const ControlGroup& group : MemoryGroups(root)) {
    if (group.first_version) {
      limit =
          std::min(limit, SmallestLimitUpwards(MountOf(group, root), group.path, "memory.limit_in_bytes"));
      continue;
    }
    for (const char* file : {"memory.max", "memory.high"})
      limit = std::min(limit, SmallestLimitUpwards(MountOf(group, root), group.path, file));
  }
  return limit;
}

// The number behind a word that begins a line: "oom_kill 3"; -1 without such a line.
int64_t CountIn(const std::string& text, std::string_view word) {
  const std::string lines = "\n" + text;
  const size_t at = lines.find(fmt::format("\n{} ", word));
  if (at == std::string::npos) return -1;
  const std::string_view rest = std::string_view(lines).substr(at + word.size() + 2);
  int64_t number = 0;
  return std::from_chars(rest.data(), rest.data() + rest.size(), number).ec == std::errc() ? number : -1;
}

int64_t PhysicalBytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? pages * page_bytes : kNoBound;
}

// What a limit of setrlimit leaves; `page_column` is where /proc/self/statm says how much is taken.
int64_t LeftOf(int resource, const std::string& root, int page_column) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return kNoBound;
  const std::string statm = ReadSmallFile(root + "/proc/self/statm");
  std::string_view rest = statm;
  for (int i = 0; i < page_column; ++i) rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  const int64_t pages = NumberIn(rest);
  const int64_t taken = pages == kNoBound ? 0 : pages * sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(0, static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoBound)) - taken);
}

int64_t Within(int64_t bound, int64_t reserve) {
  if (bound == kNoBound) return kNoBound;
  const auto rest = static_cast<int64_t>(static_cast<double>(bound - reserve) * kShareOfRest);
  return std::max(rest, bound / kLeastShare);
}

}  // namespace

int64_t MemoryBounds::Smallest() const { return std::min({machine, control_group, address_space}); }

const char* MemoryBounds::NameOfSmallest() const {
  if (Smallest() == machine) return "the machine's memory";
  return Smallest() == control_group ? "the control group" : "ulimit";
}

int64_t MemoryBounds::DefaultLimit(int sharers) const {
  const auto share = [sharers](int64_t bound) { return bound == kNoBound ? kNoBound : bound / sharers; };
  const int64_t of_machine = machine == kNoBound ? kNoBound : share(machine) / 5 * 4;
  return std::min(
      {of_machine, Within(share(control_group), kReserveBytes), Within(address_space, kAddressReserveBytes)});
}

MemoryBounds ReadMemoryBounds(const std::string& root) {
  constexpr int kMappedPages = 0, kDataPages = 5;  // Columns of statm.
  MemoryBounds bounds;
  bounds.machine = PhysicalBytes();
  bounds.control_group = ControlGroupLimit(root);
  bounds.address_space =
      std::min(LeftOf(RLIMIT_AS, root, kMappedPages), LeftOf(RLIMIT_DATA, root, kDataPages));
  return bounds;
}

int64_t MemoryKills(const std::string& root) {
  for (const ControlGroup& group : MemoryGroups(root)) {
    const char* file = group.first_version ? "/memory.oom_control" : "/memory.events";
    const int64_t count = CountIn(ReadSmallFile(MountOf(group, root) + group.path + file), "oom_kill");
    if (count >= 0) return count;
  }
  return std::max<int64_t>(CountIn(ReadSmallFile(root + "/proc/vmstat"), "oom_kill"), 0);
}

int64_t DefaultMemoryLimit() {
  static const int64_t limit = ReadMemoryBounds().DefaultLimit();
  return limit;
}

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#include "core/memory_budget.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>

namespace heddle {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The first bytes of a small file of the kernel; empty when it cannot be read.
std::string ReadSmallFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text(4096, '\0');
  const ssize_t got = read(file, text.data(), text.size());
  close(file);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// The number in a control group's limit file; "max" and an absent file are no limit.
int64_t ReadLimit(const std::string& path) {
  const std::string text = ReadSmallFile(path);
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && bytes > 0 ? bytes : kNoLimit;
}

// A group is bound by its own limit and by those of all groups around it.
int64_t SmallestLimitUpwards(const std::string& root, std::string path, const char* file) {
  int64_t limit = ReadLimit(root + "/" + file);
  while (path.size() > 1) {
    limit = std::min(limit, ReadLimit(root + path + "/" + file));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return limit;
}

// Lines of /proc/self/cgroup: "0::/path" (version 2), "9:memory:/path" (version 1).
int64_t ControlGroupLimit() {
  const std::string groups = ReadSmallFile("/proc/self/cgroup");
  std::string_view rest = groups;
  int64_t limit = kNoLimit;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty())
      limit = std::min(limit, SmallestLimitUpwards("/sys/fs/cgroup", path, "memory.max"));
    if (controllers.find("memory") != std::string_view::npos)
      limit = std::min(limit, SmallestLimitUpwards("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return limit;
}

}  // namespace

int64_t DefaultMemoryLimit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const int64_t physical = pages > 0 && page_bytes > 0 ? pages * page_bytes : kNoLimit;
  return std::min(physical, ControlGroupLimit()) / 5 * 4;
}

MemoryBudget& MemoryBudget::Process() {
  static MemoryBudget* budget = new MemoryBudget(DefaultMemoryLimit());
  return *budget;
}

bool MemoryBudget::TryCharge(int64_t bytes) {
  int64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit() - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  const int64_t now = used + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

}  // namespace heddle

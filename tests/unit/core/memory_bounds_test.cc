// SPDX-License-Identifier: Apache-2.0
#include "core/memory/memory_bounds.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A folder with /proc and /sys of its own.
class MemoryBoundsTest : public testing::Test {
 protected:
  MemoryBoundsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-bounds-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~MemoryBoundsTest() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  int64_t ControlGroup() { return ReadMemoryBounds(root_).control_group; }

  std::string root_;
};

TEST_F(MemoryBoundsTest, WithoutAControlGroupThereIsNoBoundOfOne) {
  EXPECT_EQ(ControlGroup(), MemoryBounds::kNoBound);
  Put("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(ControlGroup(), MemoryBounds::kNoBound);
  Put("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(ControlGroup(), MemoryBounds::kNoBound);
}

TEST_F(MemoryBoundsTest, TheSmallestOfAllGroupsAroundCounts) {
  Put("/proc/self/cgroup", "0::/user.slice/session/job\n");
  Put("/sys/fs/cgroup/user.slice/session/job/memory.max", "600000000\n");
  EXPECT_EQ(ControlGroup(), 600'000'000);
  Put("/sys/fs/cgroup/user.slice/session/memory.max", "max\n");
  Put("/sys/fs/cgroup/user.slice/memory.max", "400000000\n");
  EXPECT_EQ(ControlGroup(), 400'000'000);
  // In a container the group's own files lie at the root.
  Put("/sys/fs/cgroup/memory.max", "300000000\n");
  EXPECT_EQ(ControlGroup(), 300'000'000);
}

TEST_F(MemoryBoundsTest, MemoryHighCountsLikeAMaximum) {
  Put("/proc/self/cgroup", "0::/job\n");
  Put("/sys/fs/cgroup/job/memory.max", "600000000\n");
  Put("/sys/fs/cgroup/job/memory.high", "500000000\n");
  EXPECT_EQ(ControlGroup(), 500'000'000);
}

TEST_F(MemoryBoundsTest, GroupsOfVersionOneHaveAHierarchyOfTheirOwn) {
  Put("/proc/self/cgroup", "12:cpu,cpuacct:/other\n9:memory:/a/b\n0::/unified\n");
  Put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  Put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "314572800\n");
  Put("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(ControlGroup(), 314'572'800);
}

TEST_F(MemoryBoundsTest, TheGroupSaysHowManyWereKilledForMemoryElseTheMachineDoes) {
  EXPECT_EQ(MemoryKills(root_), 0);
  std::string counters;
  for (int i = 0; i < 500; ++i) counters += "nr_something_" + std::to_string(i) + " 12345\n";
  Put("/proc/vmstat", counters + "oom_kill 7\nzswpin 0\n");
  EXPECT_EQ(MemoryKills(root_), 7);
  Put("/proc/self/cgroup", "0::/job\n");
  Put("/sys/fs/cgroup/job/memory.events", "low 0\nhigh 4\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n");
  EXPECT_EQ(MemoryKills(root_), 1);
  Put("/proc/self/cgroup", "9:memory:/a\n0::/unified\n");
  Put("/sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_EQ(MemoryKills(root_), 3);
}

TEST_F(MemoryBoundsTest, AReserveIsLeftForCodeStacksAndLibraries) {
  MemoryBounds bounds;
  bounds.machine = 1000 * kMiB;
  EXPECT_EQ(bounds.DefaultLimit(), 800 * kMiB);
  EXPECT_STREQ(bounds.NameOfSmallest(), "the machine's memory");
  bounds.control_group = 294 * kMiB;
  EXPECT_NEAR(static_cast<double>(bounds.DefaultLimit()), 200e0 * kMiB, 1.0 * kMiB);
  EXPECT_STREQ(bounds.NameOfSmallest(), "the control group");
  // A limit, 15 % and the reserve fit in.
  EXPECT_LE(static_cast<double>(bounds.DefaultLimit()) * 1.15 + 64.0 * kMiB, 294.0 * kMiB + 1);
  bounds.control_group = 588 * kMiB;
  EXPECT_NEAR(static_cast<double>(bounds.DefaultLimit(2)), 200e0 * kMiB, 1.0 * kMiB)
      << "each of two processes has a reserve";
  bounds.control_group = 40 * kMiB;
  EXPECT_EQ(bounds.DefaultLimit(), 10 * kMiB) << "a bound below the reserve still leaves something";
  bounds.control_group = MemoryBounds::kNoBound;
  bounds.address_space = 400 * kMiB;
  EXPECT_LT(bounds.DefaultLimit(), 144 * kMiB);
  EXPECT_STREQ(bounds.NameOfSmallest(), "ulimit");
}

TEST(MemoryBoundsOfThisProcessTest, UlimitBoundsWhatIsNotMappedYet) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer maps its shadow of all addresses";
#endif
  if (sizeof(void*) < 8 || ReadMemoryBounds().address_space != MemoryBounds::kNoBound)
    GTEST_SKIP() << "this process has a limit of its own";
  for (const int resource : {int{RLIMIT_AS}, int{RLIMIT_DATA}}) {
    const pid_t child = fork();
    if (child == 0) {
      constexpr int64_t kLimit = int64_t{64} << 30;
      const rlimit limit = {kLimit, kLimit};
      if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) _exit(2);
      const int64_t left = ReadMemoryBounds().address_space;
      _exit(left < kLimit && left > kLimit / 2 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << resource;
  }
}

}  // namespace
}  // namespace heddle

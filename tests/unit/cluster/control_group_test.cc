// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/control_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using testing_support::ReadText;
using testing_support::WriteText;

// A folder that looks like /proc and /sys of a process whose control group is its own.
class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() {
    std::filesystem::create_directories(root() + "/proc/self");
    std::filesystem::create_directories(group());
    WriteText(root() + "/proc/self/cgroup", "4:memory:/old\n0::/site/worker.service\n");
    WriteText(group() + "/cgroup.controllers", "cpuset cpu io memory pids\n");
  }
  std::string root() const { return folder_.path(); }
  std::string group() const { return root() + "/sys/fs/cgroup/site/worker.service"; }
  std::string WhyNot() const {
    std::string why_not;
    EXPECT_EQ(ControlGroups::Prepare(&why_not, root()), nullptr);
    return why_not;
  }

  const testing_support::TemporaryFolder folder_;
};

TEST_F(ControlGroupTest, EachExecutorHasAGroupWithItsLimits) {
  std::string why_not;
  const auto groups = ControlGroups::Prepare(&why_not, root());
  ASSERT_NE(groups, nullptr) << why_not;
  EXPECT_EQ(ReadText(group() + "/worker/cgroup.procs"), std::to_string(getpid())) << "leaves hold processes";
  EXPECT_EQ(ReadText(group() + "/cgroup.subtree_control"), "+memory +cpu");
  const Result<std::string> made = groups->Make("executor-j1-1-0", {.memory_bytes = 12'345, .threads = 3});
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(*made, group() + "/executor-j1-1-0");
  EXPECT_EQ(ReadText(*made + "/memory.max"), "12345");
  EXPECT_EQ(ReadText(*made + "/cpu.weight"), "300");
  EXPECT_EQ(ReadText(*made + "/memory.oom.group"), "1");
  EXPECT_EQ(MemoryLimitOfGroup(*made), 12'345);
  EXPECT_TRUE(EnterGroup(*made, 77));
  EXPECT_EQ(ReadText(*made + "/cgroup.procs"), "77");
  EXPECT_EQ(KillsInGroup(*made), 0);
  WriteText(*made + "/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 1\n");
  EXPECT_EQ(KillsInGroup(*made), 2);
  const std::string unlimited = *groups->Make("executor-j2-1-0", {.threads = 1000});
  EXPECT_EQ(ReadText(unlimited + "/memory.max"), "max");
  EXPECT_EQ(MemoryLimitOfGroup(unlimited), 0);
  EXPECT_EQ(ReadText(unlimited + "/cpu.weight"), "10000");
}

TEST_F(ControlGroupTest, WhereItMayNotItSaysWhy) {
  std::filesystem::create_directory(group() + "/cgroup.subtree_control");  // no file to write to
  EXPECT_EQ(WhyNot(), "the control group of the worker holds processes of others, or is not its own");
  EXPECT_EQ(ReadText(group() + "/cgroup.procs"), std::to_string(getpid())) << "back where it was";
  std::filesystem::remove_all(group() + "/worker");
  std::filesystem::remove_all(group() + "/cgroup.subtree_control");
  WriteText(group() + "/cgroup.controllers", "cpu pids\n");
  EXPECT_EQ(WhyNot(), "no control group of version 2 with memory and cpu");
  WriteText(root() + "/proc/self/cgroup", "4:memory:/old\n");
  EXPECT_EQ(WhyNot(), "no control group of version 2 with memory and cpu");
}

}  // namespace
}  // namespace heddle::cluster

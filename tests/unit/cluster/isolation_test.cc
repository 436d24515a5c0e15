// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/isolation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

// What a child of this process finds after it has been isolated; it ends with its answers.
std::string InChild(const ExecutorStart& start, const std::function<std::string()>& look,
                    Status (*isolate)(const ExecutorStart& start) = &Isolate) {
  int pipes[2] = {-1, -1};
  EXPECT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    Status status = BecomeOwner(start);
    if (status.ok()) status = isolate(start);
    const std::string answer = status.ok() ? look() : status.ToString();
    (void)!write(pipes[1], answer.data(), answer.size());
    _exit(0);
  }
  close(pipes[1]);
  std::string answer;
  char block[4096];
  for (ssize_t got = 0; (got = read(pipes[0], block, sizeof(block))) > 0;)
    answer.append(block, static_cast<size_t>(got));
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return answer;
}

// "ok", or why not. By the kernel's own call: no code of ours is asked.
std::string Open(const std::string& path, int flags) {
  const auto fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, 0600));
  if (fd < 0) return strerror(errno);
  close(fd);
  return "ok";
}
std::string Errno(long result) { return result >= 0 ? "ok" : strerror(errno); }

bool HasLandlock() { return DescribeIsolation().find("no landlock") == std::string::npos; }
bool HasSeccomp() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#endif
  return DescribeIsolation().find("no seccomp") == std::string::npos;
}

class IsolationTest : public testing::Test {
 protected:
  IsolationTest() {
    testing_support::WriteText(outside_.path() + "/secret", "do not tell\n");
    testing_support::WriteText(job_.path() + "/X.csv", "1\n");
    start_.is_isolated = true;
    start_.directory = job_.path();
    start_.roots.is_job = true;
    start_.options.spill_folder = spill_.path();
  }
  testing_support::TemporaryFolder job_, outside_, spill_;
  ExecutorStart start_;
};

TEST_F(IsolationTest, FilesOutsideOfTheRootsAreShut) {
  if (!HasLandlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string outside = outside_.path() + "/secret";
  ASSERT_EQ(symlink(outside.c_str(), (job_.path() + "/link").c_str()), 0);
  const std::string denied = strerror(EACCES);
  EXPECT_EQ(InChild(start_, [&] { return Open(outside, O_RDONLY); }), denied);
  EXPECT_EQ(InChild(start_, [&] { return Open(job_.path() + "/link", O_RDONLY); }), denied);
  EXPECT_EQ(InChild(start_, [&] { return Open(outside_.path() + "/new", O_WRONLY | O_CREAT); }), denied);
  EXPECT_EQ(InChild(start_, [&] { return Errno(unlink(outside.c_str())); }), denied);
  EXPECT_EQ(InChild(start_, [&] { return Open(outside_.path(), O_RDONLY | O_DIRECTORY); }), denied);
  EXPECT_EQ(InChild(start_, [&] { return Open("/etc/shadow", O_RDONLY); }), denied);
  const std::string parent = "/proc/" + std::to_string(getpid());
  for (const char* file : {"/environ", "/mem", "/maps", "/cmdline"})
    EXPECT_EQ(InChild(start_, [&] { return Open(parent + file, O_RDONLY); }), denied) << file;
  // And without: the test itself is right.
  start_.is_isolated = false;
  EXPECT_EQ(InChild(start_, [&] { return Open(outside, O_RDONLY); }), "ok");
}

TEST_F(IsolationTest, WhatAJobNeedsIsOpen) {
  const auto opens = [&](const std::string& path, int flags) {
    EXPECT_EQ(InChild(start_, [&] { return Open(path, flags); }), "ok") << path;
  };
  opens(job_.path() + "/X.csv", O_RDWR);
  opens(job_.path() + "/new.csv", O_WRONLY | O_CREAT | O_TRUNC);
  opens(spill_.path(), O_RDWR | O_TMPFILE);
  for (const char* path : {"/proc/self/status", "/proc/self/statm", "/proc/meminfo", "/etc/ld.so.cache",
                           "/usr/lib", "/sys/devices/system/cpu/online", "/dev/urandom"})
    opens(path, O_RDONLY);
  opens("/dev/null", O_RDWR);
  EXPECT_EQ(InChild(start_,
                    [&] {
                      const std::string part = job_.path() + "/.part";
                      if (Open(part, O_WRONLY | O_CREAT) != "ok") return std::string("no part");
                      return Errno(rename(part.c_str(), (job_.path() + "/result").c_str()));
                    }),
            "ok");
  EXPECT_EQ(InChild(start_, [&] { return Errno(mkdir((job_.path() + "/folder").c_str(), 0700)); }), "ok");
}

TEST_F(IsolationTest, FoldersThatAreNamedAreOpenAndMade) {
  const auto opens = [&](const std::string& path, int flags) {
    return InChild(start_, [&] { return Open(path, flags); });
  };
  start_.roots.arguments = {outside_.path() + "/X.csv"};
  EXPECT_EQ(opens(outside_.path() + "/secret", O_RDONLY), "ok") << "what lies beside a file that is named";
  start_.roots.arguments.clear();
  start_.roots.named = {outside_.path()};
  EXPECT_EQ(opens(outside_.path() + "/secret", O_RDONLY), "ok");
  start_.directory = outside_.path() + "/deep/down";
  start_.roots.named.clear();
  EXPECT_EQ(opens(start_.directory + "/new", O_WRONLY | O_CREAT), "ok") << "the job's folder was not there";
  if (!HasLandlock()) return;
  EXPECT_EQ(opens(outside_.path() + "/secret", O_RDONLY), strerror(EACCES));
  // Where the worker says what may be used, that alone.
  start_.roots.of_worker = {job_.path()};
  start_.roots.named = {outside_.path()};
  EXPECT_EQ(opens(outside_.path() + "/secret", O_RDONLY), strerror(EACCES));
  EXPECT_EQ(opens(job_.path() + "/X.csv", O_RDONLY), "ok");
}

// Heddle's own, beside what the script may name.
TEST_F(IsolationTest, CheckpointsOfTheJobAreOpenAndThoseOfOthersShut) {
  start_.checkpoints.location = outside_.path() + "/checkpoints";
  start_.checkpoints.folder = "j1-00000000000000aa/7";
  const std::string place = start_.checkpoints.location;
  const auto opens = [&](const std::string& path, int flags) {
    return InChild(start_, [&] { return Open(path, flags); });
  };
  EXPECT_EQ(opens(place + "/j1-00000000000000aa/part", O_WRONLY | O_CREAT), "ok");
  struct stat status {};
  ASSERT_EQ(stat(place.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  testing_support::WriteText(place + "/j2-00000000000000bb/part", "of another job\n");
  if (!HasLandlock()) return;
  EXPECT_EQ(opens(place + "/j2-00000000000000bb/part", O_RDONLY), strerror(EACCES));
  EXPECT_EQ(opens(place + "/new", O_WRONLY | O_CREAT), strerror(EACCES));
}

// The drivers of devices and what they keep, for those alone that may use one.
TEST_F(IsolationTest, DriversOfDevicesAreOpenForWhoMayUseThem) {
  if (!HasLandlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const std::string vendors = outside_.path() + "/vendors", library = outside_.path() + "/driver/libpocl.so";
  testing_support::WriteText(vendors + "/pocl.icd", library + "\n");
  testing_support::WriteText(library, "no library\n");
  const std::string cache = outside_.path() + "/cache";
  std::filesystem::create_directory(cache);
  std::filesystem::permissions(cache, std::filesystem::perms::owner_all);
  const auto opens = [&](const std::string& path, int flags) {
    return InChild(start_, [&] {
      setenv("OCL_ICD_VENDORS", vendors.c_str(), 1);
      setenv("XDG_CACHE_HOME", cache.c_str(), 1);
      const Status status = Isolate(start_);
      return status.ok() ? Open(path, flags) : status.ToString();
    }, [](const ExecutorStart&) { return OkStatus(); });
  };
  const std::string denied = strerror(EACCES), kernel = cache + "/pocl/kernel";
  EXPECT_EQ(opens(vendors + "/pocl.icd", O_RDONLY), denied);
  EXPECT_EQ(opens(library, O_RDONLY), denied);
  EXPECT_FALSE(std::filesystem::exists(cache + "/pocl"));
  start_.options.devices = "opencl:0";
  EXPECT_EQ(opens(vendors + "/pocl.icd", O_RDONLY), "ok");
  EXPECT_EQ(opens(vendors + "/new.icd", O_WRONLY | O_CREAT), denied);
  EXPECT_EQ(opens(library, O_RDONLY), "ok");
  EXPECT_EQ(opens(kernel, O_WRONLY | O_CREAT), "ok");
  EXPECT_EQ(opens(outside_.path() + "/secret", O_RDONLY), denied);
  EXPECT_EQ(opens(cache + "/other", O_WRONLY | O_CREAT), denied);
  start_.no_device = "the worker offers no device";
  EXPECT_EQ(opens(vendors + "/pocl.icd", O_RDONLY), denied);
  EXPECT_EQ(opens(kernel, O_RDONLY), denied);
}

// What is installed with Heddle, and nothing else that lies in these folders.
TEST_F(IsolationTest, OfTheInstallationItsPartsAreOpen) {
  const auto opens = [&](const std::string& path) {
    return InChild(start_, [&] { return Open(path, O_RDONLY); });
  };
  EXPECT_EQ(opens(HEDDLE_BINARY_DIR "/libheddle_codegen.so"), "ok");
  EXPECT_EQ(opens(HEDDLE_BINARY_DIR "/heddle-array-process"), "ok");
  EXPECT_EQ(opens("/proc/self/exe"), "ok");
  if (!HasLandlock()) return;
  EXPECT_EQ(opens(HEDDLE_BINARY_DIR "/heddle-write-rules"), strerror(EACCES));
  EXPECT_EQ(opens(HEDDLE_BINARY_DIR "/libheddle_cluster.a"), strerror(EACCES));
}

// Who compiles reads what lies in the folders of the job, for the sizes of its inputs.
TEST_F(IsolationTest, ACompilerChangesNoFile) {
  start_.is_isolated = false;
  start_.roots.arguments = {job_.path() + "/missing/X.csv"};
  const auto in_compiler = [&](const std::function<std::string()>& look) {
    return InChild(start_, look, &IsolateCompiler);
  };
  EXPECT_EQ(in_compiler([&] { return Open(job_.path() + "/X.csv", O_RDONLY); }), "ok");
  const std::string status = in_compiler([] { return testing_support::ReadText("/proc/self/status"); });
  EXPECT_NE(status.find("NoNewPrivs:\t1\n"), std::string::npos) << status;
  EXPECT_FALSE(std::filesystem::exists(job_.path() + "/missing"));
  if (HasSeccomp()) {
    EXPECT_NE(status.find("Seccomp:\t2\n"), std::string::npos) << status;
    EXPECT_EQ(in_compiler([] { return Errno(unshare(CLONE_NEWUSER)); }), strerror(EPERM));
  }
  if (!HasLandlock()) return;
  const std::string denied = strerror(EACCES);
  EXPECT_EQ(in_compiler([&] { return Open(outside_.path() + "/secret", O_RDONLY); }), denied);
  for (const std::string& folder : {job_.path(), spill_.path(), outside_.path()})
    EXPECT_EQ(in_compiler([&] { return Open(folder + "/new", O_WRONLY | O_CREAT); }), denied) << folder;
  EXPECT_EQ(in_compiler([&] { return Open(job_.path() + "/X.csv", O_WRONLY); }), denied);
  EXPECT_EQ(in_compiler([&] { return Errno(unlink((job_.path() + "/X.csv").c_str())); }), denied);
}

TEST_F(IsolationTest, ItGetsNoNewRights) {
  const std::string status = InChild(start_, [] { return testing_support::ReadText("/proc/self/status"); });
  EXPECT_NE(status.find("NoNewPrivs:\t1\n"), std::string::npos) << status;
  if (HasSeccomp()) {
    EXPECT_NE(status.find("Seccomp:\t2\n"), std::string::npos) << status;
  }
}

TEST_F(IsolationTest, CallsThatNoExecutorNeedsAreDenied) {
  if (!HasSeccomp()) GTEST_SKIP() << "this kernel has no seccomp, or a sanitizer needs what it denies";
  const std::string denied = strerror(EPERM);
  EXPECT_EQ(InChild(start_, [] { return Errno(ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr)); }),
            denied);
  EXPECT_EQ(InChild(start_, [] { return Errno(unshare(CLONE_NEWUSER)); }), denied);
  EXPECT_EQ(InChild(start_, [] { return Errno(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }),
            denied);
  EXPECT_EQ(InChild(start_, [] { return Errno(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, "")); }),
            denied);
  EXPECT_EQ(InChild(start_, [] { return Errno(syscall(SYS_bpf, 0, nullptr, 0)); }), denied);
  EXPECT_EQ(
      InChild(start_,
              [] { return Errno(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0)); }),
      denied);
  EXPECT_EQ(
      InChild(start_,
              [] { return Errno(syscall(SYS_process_vm_readv, getppid(), nullptr, 0, nullptr, 0, 0)); }),
      denied);
  EXPECT_EQ(InChild(start_, [] { return Errno(syscall(SYS_io_uring_setup, 1, nullptr)); }), strerror(ENOSYS));
}

TEST_F(IsolationTest, AWorkerOfRootRunsAJobAsItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  start_.is_isolated = false;
  start_.runs_as_owner = true;
  start_.owner = "nobody";
  const passwd* const nobody = getpwnam("nobody");
  ASSERT_NE(nobody, nullptr);
  const std::string facts = InChild(start_, [] {
    return fmt::format("{} {} {} {} {}", getuid(), geteuid(), getegid(), getenv("HOME"), Errno(setuid(0)));
  });
  EXPECT_EQ(facts, fmt::format("{0} {0} {1} {2} {3}", nobody->pw_uid, nobody->pw_gid, nobody->pw_dir,
                               strerror(EPERM)));
  start_.owner = "no-such-user";
  EXPECT_EQ(InChild(start_, [] { return std::string("ran"); }),
            "the worker runs jobs as their owners, and its machine has no user 'no-such-user'\n"
            "add that user there, or submit with the token of an owner who is one");
  for (const char* system : {"root", "daemon"}) {
    start_.owner = system;
    const std::string refused = InChild(start_, [] { return std::string("ran"); });
    for (const char* text :
         {"the worker runs jobs as their owners, and '", "' is a user of the system (number ",
          "submit with the token of an owner whose number is at least 1000"})
      EXPECT_NE(refused.find(text), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace heddle::cluster

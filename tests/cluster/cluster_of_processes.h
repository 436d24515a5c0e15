// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>

#include "tests/support/process.h"

namespace heddle::testing_support {

inline const std::string& Binary() {
  static const std::string path = std::string(HEDDLE_BINARY_DIR) + "/heddle";
  return path;
}

/// A process in the background whose standard output and error are read here. Dies with the test.
class BackgroundProcess {
 public:
  /// `group`: the file to which it writes its number first, to be in that control group; "": none.
  BackgroundProcess(std::vector<std::string> words, const std::string& directory,
                    const std::string& group = "") {
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0) return;
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent || chdir(directory.c_str()) != 0) _exit(126);
      if (!group.empty()) std::ofstream(group) << getpid() << std::flush;
      dup2(pipes[1], 1);
      dup2(pipes[1], 2);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      signal(SIGINT, SIG_DFL);  // Whoever started the tests in the background had it ignored.
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(pipes[1]);
    fd_ = pipes[0];
  }
  ~BackgroundProcess() {
    if (!code_) Signal(SIGKILL);
    Wait();
    close(fd_);
  }
  BackgroundProcess(const BackgroundProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) { kill(pid_, number); }

  /// Reads until `text` has been printed. False after `timeout_s` seconds (times kPatience) or at the end of
  /// the output.
  bool WaitFor(const std::string& text, int timeout_s = 20) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s * kPatience);
    while (output_.find(text) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())
              .count();
      if (left <= 0 || !ReadSome(static_cast<int>(left))) return false;
    }
    return true;
  }
  /// Waits for the end; the exit code, 128 + signal when killed. Kills it after `timeout_s` seconds (times
  /// kPatience) without output.
  int Wait(int timeout_s = 30) {
    if (code_) return *code_;
    while (ReadSome(timeout_s * kPatience * 1000)) {
    }
    if (timed_out_) Signal(SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *code_;
  }
  const std::string& output() const { return output_; }

 private:
  bool ReadSome(int timeout_ms) {
    pollfd poller = {fd_, POLLIN, 0};
    if (poll(&poller, 1, timeout_ms) <= 0) {
      timed_out_ = true;
      return false;
    }
    char block[1 << 14];
    const ssize_t got = read(fd_, block, sizeof(block));
    if (got <= 0) return false;
    output_.append(block, static_cast<size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  bool timed_out_ = false;
  std::string output_;
  std::optional<int> code_;
};

/// A master and workers in a folder of their own, and what they leave behind.
class ClusterOfProcesses {
 public:
  /// `listen`: the master's address, "": its socket in the state folder.
  /// `options`: further ones of the master.
  explicit ClusterOfProcesses(int lease_ms = 10'000, const std::string& listen = "",
                              std::vector<std::string> options = {})
      : lease_ms_(std::to_string(lease_ms * kLeasePatience)), listen_(listen), options_(std::move(options)) {
    std::filesystem::create_directories(folder_.path() + "/tmp");
    setenv("XDG_STATE_HOME", (folder_.path() + "/state").c_str(), 1);
    setenv("TMPDIR", (folder_.path() + "/tmp").c_str(), 1);
    StartMaster();
  }
  ~ClusterOfProcesses() {
    workers_.clear();
    master_.reset();
    unsetenv("TMPDIR");
  }

  void StartMaster() {
    std::vector<std::string> words = {"master", "--dev", "--lease-ms", lease_ms_};
    if (!listen_.empty()) words.insert(words.end(), {"--listen", listen_});
    words.insert(words.end(), options_.begin(), options_.end());
    master_ = Start(words);
    EXPECT_TRUE(master_->WaitFor("listens on")) << master_->output();
  }
  /// `master`: an address by which it reaches the master, "": as others do.
  BackgroundProcess& StartWorker(const std::string& name, const std::string& master = "") {
    std::vector<std::string> words = {"worker", "--name", name, "--threads", "1"};
    if (!master.empty()) words.insert(words.end(), {"--master", master});
    workers_.push_back(Start(words));
    EXPECT_TRUE(workers_.back()->WaitFor("works for the master")) << workers_.back()->output();
    return *workers_.back();
  }
  /// In the place of one that has been killed, with its identity.
  void RestartWorker(size_t index, const std::string& name) {
    workers_[index]->Wait();
    workers_[index] = Start({"worker", "--name", name, "--threads", "1"});
    EXPECT_TRUE(workers_[index]->WaitFor("works for the master")) << workers_[index]->output();
  }
  std::unique_ptr<BackgroundProcess> Start(std::vector<std::string> words, const std::string& group = "") {
    words.insert(words.begin(), Binary());
    return std::make_unique<BackgroundProcess>(std::move(words), folder_.path(), group);
  }
  Finished Run(std::vector<std::string> words) {
    words.insert(words.begin(), Binary());
    return RunProcess(words, folder_.path(), 120);
  }

  BackgroundProcess& master() { return *master_; }
  BackgroundProcess& worker(size_t index) { return *workers_[index]; }
  const std::string& folder() const { return folder_.path(); }
  std::string master_folder() const { return folder_.path() + "/state/heddle/master"; }
  /// Where the master listens.
  std::string address() const {
    const std::string line = ReadText(master_folder() + "/address");
    return line.substr(0, line.find('\n'));
  }

  /// Processes whose parent is `parent`.
  static std::vector<pid_t> ChildrenOf(pid_t parent) {
    std::vector<pid_t> children;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string stat = ReadText(entry.path().string() + "/stat");
      const size_t end = stat.rfind(')');
      if (end == std::string::npos || end + 4 >= stat.size()) continue;
      if (std::atoi(stat.c_str() + end + 4) == parent && stat[end + 2] != 'Z')
        children.push_back(std::stoi(name));
    }
    return children;
  }

  /// Ends workers and master; nothing may be left but their lasting state.
  void EndAndExpectNothingLeft() {
    for (auto& worker : workers_) {
      worker->Signal(SIGTERM);
      const int code = worker->Wait();
      EXPECT_TRUE(code == 0 || code == 128 + SIGKILL) << code << worker->output();
    }
    master_->Signal(SIGTERM);
    EXPECT_EQ(master_->Wait(), 0) << master_->output();
    ExpectNoProcess();
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/tmp"));
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      EXPECT_EQ(entry.path().filename().string().find("heddle"), std::string::npos) << entry.path();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() + "/state")) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(entry.is_directory() || name == "lock" || name.ends_with(".token") || name == "identity" ||
                  name == "jobs.sqlite" || name == "tokens.json" || name == "audit.log" ||
                  name.ends_with(".log") || name == ".private-to-heddle" || name == "code.key")
          << entry.path();
    }
  }

  /// No process but the test itself was started with this cluster's folders.
  void ExpectNoProcess() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
      EXPECT_EQ(ReadText(entry.path().string() + "/environ").find(folder_.path()), std::string::npos)
          << "process " << name << " is left: " << ReadText(entry.path().string() + "/cmdline");
    }
  }

 private:
  TemporaryFolder folder_;
  const std::string lease_ms_;
  const std::string listen_;
  const std::vector<std::string> options_;
  std::unique_ptr<BackgroundProcess> master_;
  std::vector<std::unique_ptr<BackgroundProcess>> workers_;
};

}  // namespace heddle::testing_support

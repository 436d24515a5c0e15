// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/executor_log.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLastLineBytes = 200;
constexpr size_t kReadLineBytes = kLastLineBytes + 4;  // so that it is seen where the last character ends
constexpr int kFirstFreeFd = 10;                       // above all descriptors that a child uses
constexpr std::string_view kExtension = ".log";
constexpr std::string_view kOldExtension = ".log.old";

// Leaves at most `most` logs.
void RemoveOldest(const std::string& folder, int most) {
  std::vector<std::pair<fs::file_time_type, fs::path>> logs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == kExtension) logs.emplace_back(entry.last_write_time(error), entry.path());
  std::sort(logs.begin(), logs.end());
  for (size_t i = 0; i + static_cast<size_t>(std::max(most, 0)) < logs.size(); ++i) {
    fs::remove(logs[i].second, error);
    fs::remove(logs[i].second.string() + ".old", error);
  }
}

class ExecutorLogImpl : public ExecutorLog {
 public:
  ExecutorLogImpl(std::string stem, std::function<void(std::string_view text)> said,
                  const ExecutorLogLimits& limits)
      : said_(std::move(said)),
        limits_(limits),
        path_(stem + std::string(kExtension)),
        old_path_(std::move(stem) + std::string(kOldExtension)) {}
  ~ExecutorLogImpl() override {
    CloseWriteEnd();
    Join();
    if (file_ >= 0) close(file_);
    if (read_end_ >= 0) close(read_end_);
  }

  Status Open() {
    OpenFile();
    int pipe[2] = {-1, -1};
    if (file_ < 0 || pipe2(pipe, O_CLOEXEC) != 0)
      return Unavailable("cannot write {}: {}", path_, strerror(errno));
    read_end_ = pipe[0];
    write_end_ = fcntl(pipe[1], F_DUPFD_CLOEXEC, kFirstFreeFd);
    close(pipe[1]);
    if (write_end_ < 0) return Unavailable("cannot write {}: {}", path_, strerror(errno));
    thread_ = std::thread([this] { Copy(); });
    return OkStatus();
  }

  int write_end() const override { return write_end_; }
  void CloseWriteEnd() override {
    if (const int fd = write_end_.exchange(-1); fd >= 0) close(fd);
  }

  void End(const ExecutorExit& exit) override {
    CloseWriteEnd();
    Join();
    if (total_bytes_ == 0 && !exit.signalled && exit.value == 0) {
      std::error_code error;
      fs::remove(path_, error);
      path_.clear();
      return;
    }
    const bool cut = !line_.empty();
    if (cut) last_line_ = TakeLine();
    Write(fmt::format("{}executor {} {}\n", cut ? "\n" : "", exit.pid, exit.Describe()));
  }

  const std::string& path() const override { return path_; }
  const std::string& last_line() const override { return last_line_; }

 private:
  void OpenFile() {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    file_bytes_ = 0;
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  void Copy() {
    char block[1 << 14];
    for (;;) {
      const ssize_t got = read(read_end_, block, sizeof(block));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      const std::string_view text(block, static_cast<size_t>(got));
      total_bytes_ += got;
      KeepLastLine(text);
      Write(text);
    }
  }

  // A full disk costs the log, not the job: the executor is read on.
  void Write(std::string_view text) {
    if (said_) said_(text);
    if (file_bytes_ > 0 && file_bytes_ + static_cast<int64_t>(text.size()) > limits_.most_file_bytes) {
      if (file_ >= 0) close(file_);
      std::error_code error;
      fs::rename(path_, old_path_, error);
      OpenFile();
    }
    while (file_ >= 0 && !text.empty()) {
      const ssize_t written = write(file_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      file_bytes_ += written;
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  std::string TakeLine() {
    const std::string line = std::exchange(line_, std::string());
    return std::string(CutAtCharacter(line, kLastLineBytes));
  }

  void KeepLastLine(std::string_view text) {
    for (const char c : text) {
      if (c != '\n') {
        if (line_.size() < kReadLineBytes) line_.push_back(c);
      } else if (!line_.empty()) {
        last_line_ = TakeLine();
      }
    }
  }

  const std::function<void(std::string_view text)> said_;
  const ExecutorLogLimits limits_;
  std::string path_;
  const std::string old_path_;
  int read_end_ = -1;
  std::atomic<int> write_end_ = -1;  // both the starter and the end close it
  std::thread thread_;
  // Of the thread, until it has been joined.
  int file_ = -1;
  int64_t file_bytes_ = 0;
  int64_t total_bytes_ = 0;
  std::string line_;
  std::string last_line_;
};

}  // namespace

Result<std::unique_ptr<ExecutorLog>> ExecutorLog::Open(const std::string& folder, const std::string& name,
                                                       std::function<void(std::string_view text)> said,
                                                       const ExecutorLogLimits& limits) {
  std::error_code error;
  fs::create_directories(folder, error);
  RemoveOldest(folder, limits.most_logs - 1);
  auto log = std::make_unique<ExecutorLogImpl>(folder + "/" + name, std::move(said), limits);
  HEDDLE_RETURN_IF_ERROR(log->Open());
  return std::unique_ptr<ExecutorLog>(std::move(log));
}

}  // namespace heddle::cluster

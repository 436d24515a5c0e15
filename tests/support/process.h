// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace heddle::testing_support {

/// How many times as long as usual a build with sanitizers may take: waits of tests are this much longer.
#if defined(__SANITIZE_THREAD__)
constexpr int kPatience = 10;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kPatience = 5;
#else
constexpr int kPatience = 1;
#endif
/// The same for leases, which must stay shorter than the time after which a link without an answer counts as
/// broken.
constexpr int kLeasePatience = kPatience == 1 ? 1 : 4;

/// Processes that tests start keep their caches in the build folder and know no measured constants of this
/// machine, unless a test sets XDG_CACHE_HOME itself.
inline const bool kCachesAreOurs = [] {
  std::error_code ignored;
  std::filesystem::remove_all(HEDDLE_BINARY_DIR "/cache-of-tests/heddle/machine", ignored);
  return setenv("XDG_CACHE_HOME", HEDDLE_BINARY_DIR "/cache-of-tests", 1) == 0;
}();

/// How a finished process ended and what it printed.
struct Finished {
  int code = -1;  ///< Exit code; 128 + signal when killed.
  std::string output;
  std::string errors;
};

/// Runs words[0] in `directory` to its end with empty standard input; kills it after
/// `timeout_s` seconds (times kPatience) without output (code 128 + 9).
inline Finished RunProcess(const std::vector<std::string>& words, const std::string& directory,
                           int timeout_s = 60, const std::string& input = "") {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(directory.c_str()) != 0) _exit(126);
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  if (!input.empty() && write(in[1], input.data(), input.size()) < 0) kill(child, SIGKILL);
  close(in[1]);
  Finished finished;
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  int open_pipes = 2;
  while (open_pipes > 0) {
    const int ready = poll(fds, 2, timeout_s * kPatience * 1000);
    if (ready <= 0) {
      kill(child, SIGKILL);
      break;
    }
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char block[1 << 14];
      const ssize_t got = read(fds[i].fd, block, sizeof(block));
      if (got > 0) {
        (i == 0 ? finished.output : finished.errors).append(block, static_cast<size_t>(got));
      } else {
        fds[i].fd = -1;
        --open_pipes;
      }
    }
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

/// A folder of its own below the system's temporary one, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string ReadText(const std::string& path) {
  // What cannot be read, a process that has just ended say, is "".
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteText(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// Words of a command line; single and double quotes group.
inline std::vector<std::string> SplitWords(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool inside = false;
  for (char c : line) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ') {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  return words;
}

}  // namespace heddle::testing_support

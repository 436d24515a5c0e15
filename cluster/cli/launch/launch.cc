// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/launch/launch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cluster/cli/launch/launch_files.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/executor/start_limits.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kOptions[] = {
    {"workers", Kind::kValue, "N", "number of workers"},
    {"threads", Kind::kValue, "N", "threads of a worker (default: what its machine has)"},
    {"memory", Kind::kValue, "SIZE", "memory of a worker, e.g. 16G (default: what its machine has)"},
    {"dry-run", Kind::kFlag, "", "print the script that would run, which holds no secret"},
    {"e", Kind::kValue, "CODE", "the script itself"},
    {"args", Kind::kRest, "V...", "parameters $1, $2, ... of the script"},
    {"nvargs", Kind::kRest, "K=V...", "named parameters of the script"},
};

bool IsPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_./:=@%+,-").find(c) != std::string_view::npos;
}

std::string OwnPath() {
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return error ? "heddle" : path;
}

std::string_view FileAt(std::string_view path) {
  for (const LaunchFile& file : LaunchFiles())
    if (file.path == path) return file.text;
  return {};
}

// Standard input from memory.
bool ReadFromText(const std::string& text) {
  const int fd = memfd_create("heddle-launch", MFD_CLOEXEC);
  return fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, STDIN_FILENO) >= 0;
}

}  // namespace

std::vector<Option> LaunchOptions() { return JoinOptions({kOptions}); }

std::vector<std::string> LaunchRequest::WorkerOptions() const {
  std::vector<std::string> options;
  if (threads > 0) options.insert(options.end(), {"--threads", std::to_string(threads)});
  if (memory_bytes > 0) options.insert(options.end(), {"--memory", std::to_string(memory_bytes)});
  return options;
}

Result<LaunchRequest> ReadLaunch(const Arguments& arguments) {
  LaunchRequest request;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t workers, arguments.Integer("workers", 0, 1, kMostWorkers));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", 0, 1, kMostThreads));
  HEDDLE_ASSIGN_OR_RETURN(request.memory_bytes, arguments.Bytes("memory", 0));
  request.workers = static_cast<int>(workers);
  request.threads = static_cast<int>(threads);
  request.here = OwnPath();
  request.heddle = arguments.Value("heddle").value_or(request.here);
  const bool has_file = !arguments.positional().empty();
  if (!has_file && !arguments.Has("e")) return request;
  if (has_file && arguments.positional()[0] == "-")
    return Usage("a launched script is a file or -e CODE, not standard input");
  HEDDLE_ASSIGN_OR_RETURN(const engine::Script script, ReadScript(arguments));
  if (has_file)
    request.job = {request.script = script.name};
  else
    request.job = {"-e", script.text};
  for (const std::string_view kind : {"args", "nvargs"}) {
    if (!arguments.Has(kind)) continue;
    request.job.push_back("-" + std::string(kind));
    const std::vector<std::string>& values = arguments.rest(kind);
    request.job.insert(request.job.end(), values.begin(), values.end());
  }
  return request;
}

std::string ShellWord(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string ShellWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + ShellWord(word);
  return text;
}

std::string FillIn(std::string_view path, std::map<std::string, std::string> places) {
  places["cluster_of_job"] = FileAt("cluster_of_job.sh");
  const std::string_view text = FileAt(path);
  std::string filled;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find('@', at), text.size());
    filled += text.substr(at, begin - at);
    const size_t end = begin == text.size() ? std::string_view::npos : text.find('@', begin + 1);
    const auto place = end == std::string_view::npos
                           ? places.end()
                           : places.find(std::string(text.substr(begin + 1, end - begin - 1)));
    if (place != places.end()) {
      filled += place->second;
      at = end + 1;
    } else {
      filled += text.substr(begin, 1);  // No place: "user@host", "${list[@]}".
      at = begin + 1;
    }
  }
  return filled;
}

int Launch(const Arguments& arguments, const std::string& text, const std::vector<std::string>& words,
           const std::string& input) {
  if (arguments.Has("dry-run")) {
    PrintOutput(text);
    return 0;
  }
  if (input.empty() || ReadFromText(input)) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
  }
  return Report(Unavailable("cannot start '{}': {}", words[0], strerror(errno))
                    .WithNote("--dry-run shows what would run"));
}

}  // namespace heddle::cluster::cli

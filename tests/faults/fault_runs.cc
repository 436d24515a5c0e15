// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/fault_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace heddle::testing_support {
namespace {

constexpr char kCsv[] = "1,2,3\n4,5,6\n7,8,9.5\n10,11,12\n";

// Of more than one panel.
std::string LongCsv() {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += fmt::format("{},{},{}\n", i, i % 7 * 0.5, 1000 - i);
  return lines;
}

}  // namespace

Files FilesBelow(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = std::filesystem::relative(entry.path(), folder);
    if (!path.starts_with("cache/")) files[path] = ReadText(entry.path());
  }
  return files;
}

bool TriesAllFaults() { return std::getenv("HEDDLE_FAULTS_ALL") != nullptr; }

std::pair<int64_t, int64_t> PartOf(int64_t most) {
  long part = 1, parts = 1;
  const char* const text = std::getenv("HEDDLE_FAULTS_PART");
  if (text != nullptr && (std::sscanf(text, "%ld/%ld", &part, &parts) != 2 || part < 1 || part > parts)) {
    std::fprintf(stderr, "HEDDLE_FAULTS_PART is not as 2/5\n");
    std::abort();
  }
  return {most * (part - 1) / parts + 1, most * part / parts};
}

std::vector<FileScript> FileScripts() {
  const std::string spilled =
      "X = rand(rows=2000, cols=9, seed=1)\nY = X * 2 + 1\nif (nrow(Y) < 0) print('none')\n"
      "for (i in 1:2) Y = (Y - colMeans(X)) * 0.5 + i\nprint(sum(Y) + ' ' + sum(t(Y) %*% X))\n"
      "write(Y, 'out.csv', format='csv')\n";
  const std::string in_panels =
      "X = read('long.csv', format='csv')\nY = X - colMeans(X)\nwrite(Y, 'out.csv', format='csv')\n"
      "write(X, 'out.bin', format='binary')\nprint(sum(t(Y) %*% X))\n"
      "write(Y, 'out.mtx.gz', format='mm')\n";  // Its entries are counted first: rows are kept.
  return {
      {"csv",
       "X = read('in.csv', format='csv')\nwrite(X * 2 + 1, 'out.csv', format='csv')\n",
       {"run"},
       {"out.csv"}},
      {"binary",
       "X = read('in.csv', format='csv')\nwrite(t(X) %*% X, 'out.bin', format='binary')\nprint(sum(X))\n",
       {"run"},
       {"out.bin"}},
      {"frame",
       "F = read('names.csv', data_type='frame', format='csv', header=TRUE)\nwrite(F, 'frame.csv', "
       "format='csv', header=TRUE)\nprint(nrow(F))\n",
       {"run"},
       {"frame.csv"}},
      {"folder",
       "X = read('parts', format='csv')\nwrite(X, 'out.mtx', format='mm')\nwrite(sum(X), 'sum.txt')\n",
       {"run"},
       {"out.mtx", "sum.txt"}},
      {"workers",
       "X = read('in.csv', format='csv')\nwrite(X * 2 + 1, 'out.csv', format='csv')\nprint(sum(X))\n",
       {"sim", "--workers", "2", "--min-distributed-bytes", "0"},
       {"out.csv"},
       12},
      {"spilled", spilled, {"run", "--panel-bytes", "4096"}, {"out.csv"}, 60, /*spills=*/true},
      {"in_panels",
       in_panels,
       {"run", "--panel-bytes", "4096"},
       {"out.csv", "out.bin", "out.mtx.gz"},
       60,
       /*spills=*/true},
      {"workers_in_panels",
       spilled,
       {"sim", "--workers", "2", "--min-distributed-bytes", "0", "--panel-bytes", "4096"},
       {"out.csv"},
       12,
       /*spills=*/true},
  };
}

std::vector<FileScript> SpillingScripts() {
  std::vector<FileScript> scripts = FileScripts();
  std::erase_if(scripts, [](const FileScript& script) { return !script.spills; });
  for (FileScript& script : scripts) script.most_tried /= 4;
  return scripts;
}

std::string FaultyRun::Failed() const {
  std::string failed;
  for (const std::string& call : calls)
    if (call.starts_with("fails")) failed += call + "; ";
  return failed;
}

int FaultyRun::MostCalls() const {
  int most = 0;
  for (const std::string& call : calls) most = std::max(most, std::atoi(call.substr(5).c_str()));
  return most;
}

void PrepareFolder(const std::string& folder, const FileScript& script, bool has_older) {
  std::filesystem::remove_all(folder);
  std::filesystem::remove(folder + ".log");
  WriteText(folder + "/script.dml", script.script);
  WriteText(folder + "/in.csv", kCsv);
  WriteText(folder + "/long.csv", LongCsv());
  WriteText(folder + "/names.csv", "name,size\nanna,1\nbert,2\ncarl,3\n");
  WriteText(folder + "/parts/part-0", "1,2\n3,4\n");
  WriteText(folder + "/parts/part-1", "5,6\n");
  std::filesystem::create_directory(folder + "/spill");
  for (const std::string& output : script.outputs)
    if (has_older) WriteText(folder + "/" + output, "older\n");
}

std::vector<std::string> WordsWithFault(const std::string& folder, const FileScript& script,
                                        const Fault& fault) {
  std::vector<std::string> words{"/usr/bin/env",
                                 "LD_PRELOAD=" HEDDLE_BINARY_DIR "/libheddle_failing_calls.so",
                                 "XDG_CACHE_HOME=" + folder + "/cache",
                                 "TMPDIR=" + folder + "/spill",
                                 "HEDDLE_FAULT_UNDER=" + folder + (fault.only_spill ? "/spill" : ""),
                                 fmt::format("HEDDLE_FAULT_AT={}", fault.at),
                                 fmt::format("HEDDLE_FAULT_ERRNO={}", fault.error),
                                 fmt::format("HEDDLE_FAULT_WRITES={}", fault.only_writes ? 1 : 0),
                                 fmt::format("HEDDLE_FAULT_MEMORY={}", fault.memory ? 1 : 0),
                                 fmt::format("HEDDLE_FAULT_NO_TMPFILE={}", fault.no_tmpfile ? 1 : 0),
                                 "HEDDLE_FAULT_LOG=" + folder + ".log",
                                 HEDDLE_BINARY_DIR "/heddle"};
  words.insert(words.end(), script.words.begin(), script.words.end());
  words.push_back("script.dml");
  return words;
}

pid_t StartProcess(const std::vector<std::string>& words, const std::string& folder) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 3; ++i)
    if (dup2(none, i) < 0) _exit(126);
  if (chdir(folder.c_str()) != 0) _exit(126);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

FaultyRun RunWithFault(const std::string& folder, const FileScript& script, const Fault& fault) {
  FaultyRun run;
  run.finished = RunProcess(WordsWithFault(folder, script, fault), folder, 120);
  run.files = FilesBelow(folder);
  std::istringstream lines(ReadText(folder + ".log"));
  for (std::string line; std::getline(lines, line);) run.calls.push_back(line);
  return run;
}

}  // namespace heddle::testing_support

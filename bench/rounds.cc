// SPDX-License-Identifier: Apache-2.0
#include "bench/rounds.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>

#include "core/status.h"
#include "engine/session/statistics.h"

namespace heddle::bench {
namespace {

constexpr int kFewRounds = 200;  // After these every plan is there, and its acts have been timed.

struct Case {
  const char* name;
  const char* verb;  // With options that make it run by plans, split where there are several ranks.
  int rounds;
};

constexpr Case kCases[] = {
    {"round, one process", "run --fusion all", 20'000},
    {"round, 2 executors", "sim --workers 2 --min-distributed-bytes 0", 6'000},
    {"round, 4 executors", "sim --workers 4 --min-distributed-bytes 0", 6'000},
};

constexpr const char* kScript =
    "X = rand(rows=400, cols=10, seed=1)\nx = 0\ni = 0\ncontinue = TRUE\n"
    "while (continue) {\n"
    "  x = x * 0.5 + sum(X * x) * 0.0001 + 0.1\n"
    "  i = i + 1\n"
    "  continue = (x < 1e300 & i < $rounds)\n"
    "}\n"
    "print(i + \" \" + x)\n";

struct Run {
  std::string output;
  int64_t elapsed_ns = 0;
  int64_t messages = 0;  // That rank 0 sent.
};

Result<Run> RunLoop(const Case& of, int rounds) {
  const std::string heddle = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "heddle";
  const std::string command =
      fmt::format("'{}' {} --stats --json -e '{}' -nvargs rounds={} 2>&1", heddle, of.verb, kScript, rounds);
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return Internal("{} does not start", heddle);
  std::string text;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Internal("{} failed:\n{}", command, text);
  Run run;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("{\"rank\"")) {
      HEDDLE_ASSIGN_OR_RETURN(const engine::SessionStatistics statistics, engine::ParseStatistics(line));
      run.elapsed_ns = std::max(run.elapsed_ns, statistics.elapsed_ns);
      run.messages = std::max(run.messages, statistics.messages_sent);
    } else if (!line.starts_with("{\"code\"")) {
      run.output += line;
    }
  }
  return run;
}

Status Measure(const Case& of, const BenchOptions& options) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  int64_t best_few_ns = kNever, best_many_ns = kNever;
  double messages = 0;
  const int rounds = of.rounds - kFewRounds;
  for (int round = 0; round < options.rounds; ++round) {
    HEDDLE_ASSIGN_OR_RETURN(const Run few, RunLoop(of, kFewRounds));
    HEDDLE_ASSIGN_OR_RETURN(const Run many, RunLoop(of, of.rounds));
    if (!many.output.starts_with(std::to_string(of.rounds)))
      return Internal("the loop ended early: {}", many.output);
    best_few_ns = std::min(best_few_ns, few.elapsed_ns);
    best_many_ns = std::min(best_many_ns, many.elapsed_ns);
    messages = static_cast<double>(many.messages - few.messages) / rounds;
  }
  const double best_us = static_cast<double>(best_many_ns - best_few_ns) / 1e3 / rounds;
  if (options.json)
    std::printf(
        "{\"bench\":\"control\",\"case\":\"%s\",\"value\":%.3f,\"unit\":\"us\",\"messages_of_rank_0\":%.1f}\n",
        of.name, best_us, messages);
  else
    std::printf("%-32s %10.3f us, %.1f messages of rank 0\n", of.name, best_us, messages);
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace

int RunRounds(const BenchOptions& options) {
  bool all_ran = true;
  for (const Case& each : kCases) {
    if (std::string_view(each.name).find(options.only) == std::string_view::npos) continue;
    if (const Status status = Measure(each, options); !status.ok()) {
      std::fprintf(stderr, "heddle-bench: %s: %s\n", each.name, status.ToString().c_str());
      all_ran = false;
    }
  }
  return all_ran ? 0 : 1;
}

}  // namespace heddle::bench

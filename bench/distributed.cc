// SPDX-License-Identifier: Apache-2.0
#include "bench/distributed.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>

#include "bench/scripts.h"
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
  HEDDLE_ASSIGN_OR_RETURN(HeddleRun all,
                          RunHeddle(fmt::format("{} -e '{}' -nvargs rounds={}", of.verb, kScript, rounds)));
  Run run{.output = std::move(all.output)};
  for (const engine::SessionStatistics& rank : all.ranks) {
    run.elapsed_ns = std::max(run.elapsed_ns, rank.elapsed_ns);
    run.messages = std::max(run.messages, rank.messages_sent);
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

// --- Whole scripts ---

struct ScriptCase {
  const char* name;
  const char* few_rounds;  // An argument with which it draws its data and does little else.
};
constexpr ScriptCase kScripts[] = {{"l2svm_nonlinear_cg", "outer=1"},
                                   {"kmeans", "iterations=1"},
                                   {"mlogreg", "outer=1 inner=1"},
                                   {"als_cg", "outer=1 inner=1"},
                                   {"linreg_cg", "iterations=1"}};
constexpr int kExecutors = 4, kProcessors = 2;

// The first two processors that this process may use become all that it and its children use.
Status UseTwoProcessors() {
  cpu_set_t own, two;
  CPU_ZERO(&own);
  CPU_ZERO(&two);
  if (sched_getaffinity(0, sizeof own, &own) != 0)
    return Internal("the processors of this process are not told");
  int count = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && count < kProcessors; ++cpu)
    if (CPU_ISSET(cpu, &own)) CPU_SET(cpu, &two), ++count;
  if (count < kProcessors) return FailedPrecondition("there is one processor, and two are compared");
  if (sched_setaffinity(0, sizeof two, &two) != 0)
    return Internal("no process can be kept to two processors");
  return OkStatus();
}

// What the slowest rank takes.
double SecondsOf(const HeddleRun& run) {
  double seconds = 0;
  for (const engine::SessionStatistics& rank : run.ranks)
    seconds = std::max(seconds, Seconds(rank.elapsed_ns));
  return seconds;
}

// Whole runs and, where the script is known, runs of few rounds, which draw the same data: what they take is
// no part of the figures. (How long each rank draws does not tell: four of them share two processors.)
Status MeasureScript(const std::string& file, const std::string& few_rounds, const BenchOptions& options) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const double few_at_first = few_rounds.empty() ? 0 : kNever;
  double one = kNever, four = kNever, one_few = few_at_first, four_few = few_at_first, sent_mb = 0;
  const std::string alone = fmt::format("run --threads {} '{}'", kProcessors, file);
  const std::string together = fmt::format("sim --workers {} --threads 1 '{}'", kExecutors, file);
  const std::string few = " -nvargs " + few_rounds;
  for (int round = 0; round < options.rounds; ++round) {
    HEDDLE_ASSIGN_OR_RETURN(const HeddleRun of_one, RunHeddle(alone));
    HEDDLE_ASSIGN_OR_RETURN(const HeddleRun of_four, RunHeddle(together));
    if (of_one.output != of_four.output)
      return Internal("{} prints something else on {} executors", file, kExecutors);
    one = std::min(one, SecondsOf(of_one));
    four = std::min(four, SecondsOf(of_four));
    sent_mb = 0;
    for (const engine::SessionStatistics& rank : of_four.ranks)
      sent_mb += static_cast<double>(rank.bytes_sent) / 1e6;
    if (few_rounds.empty()) continue;
    HEDDLE_ASSIGN_OR_RETURN(const HeddleRun few_of_one, RunHeddle(alone + few));
    HEDDLE_ASSIGN_OR_RETURN(const HeddleRun few_of_four, RunHeddle(together + few));
    one_few = std::min(one_few, SecondsOf(few_of_one));
    four_few = std::min(four_few, SecondsOf(few_of_four));
  }
  one -= one_few, four -= four_few;
  const std::string name = std::filesystem::path(file).stem();
  if (options.json)
    std::printf(
        "{\"bench\":\"distributed\",\"case\":\"%s\",\"executors\":%d,\"s\":%.3f,\"one_process_s\":%.3f,\"ratio\":%.3f,"
        "\"sent_mb\":%.2f,\"before_s\":%.3f,\"one_process_before_s\":%.3f}\n",
        name.c_str(), kExecutors, four, one, four / one, sent_mb, four_few, one_few);
  else
    std::printf("%-24s %8.3f s on %d executors, %8.3f s in one process: %.3f times; %.2f MB sent\n",
                name.c_str(), four, kExecutors, one, four / one, sent_mb);
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace

int RunDistributed(const BenchOptions& options, const std::vector<std::string>& files) {
  const auto report = [](const Status& status) {
    if (!status.ok()) std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
    return status.ok();
  };
  if (!report(UseTwoProcessors())) return 1;
  std::vector<std::pair<std::string, std::string>> scripts;  // With the argument for few rounds.
  for (const std::string& file : files) scripts.emplace_back(file, "");
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const ScriptCase& script : kScripts)
    if (files.empty())
      scripts.emplace_back((bin / "../../bench/scripts" / script.name).lexically_normal().string() + ".dml",
                           script.few_rounds);
  bool all_ran = true;
  for (const auto& [file, few_rounds] : scripts)
    if (file.find(options.only) != std::string::npos)
      all_ran &= report(MeasureScript(file, few_rounds, options));
  return all_ran ? 0 : 1;
}

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

// SPDX-License-Identifier: Apache-2.0
#include "bench/scripts.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>

#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"

namespace heddle::bench {
namespace {

constexpr const char* kModes[] = {"off", "all", "no-redundancy", "cost"};
constexpr int64_t kProbeCells = 25'000'000;

Result<HeddleRun> RunScript(const std::string& file, const std::string& mode, int threads,
                            const std::string& parameters = "") {
  return RunHeddle(
      fmt::format("run --fusion {} --fusion-strict --threads {} '{}' {}", mode, threads, file, parameters));
}

// Operators on matrices that are no products: what stitching makes fewer. A fused one counts as one, whatever
// is inside.
int64_t OperatorsBetweenProducts(const engine::SessionStatistics& statistics) {
  int64_t operators = statistics.matrix_operators;
  for (const auto& [name, counts] : statistics.operators) {
    const std::string_view op = std::string_view(name).substr(0, name.find('.'));
    const bool multiplies = op == "%*%" || op == "t%*%" || op.starts_with("conv2d") || op.starts_with("lstm");
    if (multiplies && !name.ends_with(".finish")) operators -= counts.acts;
  }
  return operators;
}

struct Figures {
  double seconds = std::numeric_limits<double>::infinity();
  HeddleRun run;
  const engine::SessionStatistics& statistics() const { return run.ranks[0]; }
};

void Print(const std::string& name, const char* mode, const Figures& own, const Figures& off, double probe,
           const BenchOptions& options) {
  const engine::SessionStatistics& statistics = own.statistics();
  const double saved = static_cast<double>(off.statistics().bytes_moved - statistics.bytes_moved);
  const double gigabytes = static_cast<double>(statistics.bytes_moved) / 1e9;
  const double factor = off.seconds / own.seconds, predicted = 1 + saved / (probe * 1e9) / own.seconds;
  const double planning = 1e3 * Seconds(statistics.planning_ns), fusion = 1e3 * Seconds(statistics.fusion_ns);
  const double drawing = SecondsOfDrawing(statistics);
  const int64_t between = OperatorsBetweenProducts(statistics);
  if (options.json) {
    std::printf(
        "{\"bench\":\"scripts\",\"case\":\"%s\",\"plan\":\"%s\",\"s\":%.3f,\"drawing_s\":%.3f,\"gb_moved\":%.2f,\"between_products\":%ld,"
        "\"faster_than_off\":%.2f,\"predicted\":%.2f,\"planning_ms\":%.1f,\"fusion_ms\":%.2f,\"probe_gb_per_s\":%.2f,"
        "\"threads\":%d}\n",
        name.c_str(), mode, own.seconds, drawing, gigabytes, between, factor, predicted, planning, fusion,
        probe, options.threads);
  } else {
    std::printf(
        "%-24s %-14s %8.3f s (and %6.3f s drawing data)  %9.2f GB  %6ld operators between products  %6.2f times faster than off, predicted %6.2f  "
        "planning %6.1f ms, of fusion %6.2f ms\n",
        name.c_str(), mode, own.seconds, drawing, gigabytes, between, factor, predicted, planning, fusion);
  }
  std::fflush(stdout);
}

Status Measure(const std::string& file, const Matrix& probe_data, const BenchOptions& options) {
  Figures best[std::size(kModes)];
  double probe = 0;
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < std::size(kModes); ++i) {
      probe = std::max(probe, ReadBandwidth(probe_data.data(), probe_data.cells(), options.threads));
      HEDDLE_ASSIGN_OR_RETURN(HeddleRun run, RunScript(file, kModes[i], options.threads));
      if (i + static_cast<size_t>(round) > 0 && run.output != best[0].run.output)
        return Internal("{} prints something else with --fusion {}", file, kModes[i]);
      const double seconds = Seconds(run.ranks[0].elapsed_ns) - SecondsOfDrawing(run.ranks[0]);
      if (seconds < best[i].seconds) best[i] = {seconds, std::move(run)};
    }
  }
  for (size_t i = 0; i < std::size(kModes); ++i)
    Print(std::filesystem::path(file).stem(), kModes[i], best[i], best[0], probe, options);
  return OkStatus();
}

void PrintOptimizer(const std::string& name, const engine::SessionStatistics& statistics,
                    const BenchOptions& options) {
  const double planning = 1e3 * Seconds(statistics.planning_ns), fusion = 1e3 * Seconds(statistics.fusion_ns);
  if (options.json)
    std::printf(
        "{\"bench\":\"optimizer\",\"case\":\"%s\",\"plans\":%ld,\"planning_ms\":%.2f,\"fusion_ms\":%.2f,\"costed\":%ld}\n",
        name.c_str(), statistics.plans_compiled, planning, fusion, statistics.fusion_costed);
  else
    std::printf("%-24s %3ld plans made in %6.2f ms, of it fusion %6.2f ms, %5ld choices costed\n",
                name.c_str(), statistics.plans_compiled, planning, fusion, statistics.fusion_costed);
}

}  // namespace

Result<HeddleRun> RunHeddle(const std::string& words) {
  const std::string heddle = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "heddle";
  // Options before a script: behind -nvargs they would be arguments of it.
  const size_t verb = words.find(' ');
  const std::string command =
      fmt::format("'{}' {} --stats --json {} 2>&1", heddle, words.substr(0, verb), words.substr(verb + 1));
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return Internal("{} does not start", heddle);
  std::string text;
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Internal("{} failed:\n{}", command, text);
  HeddleRun run;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("{\"rank\"")) {
      HEDDLE_ASSIGN_OR_RETURN(engine::SessionStatistics statistics, engine::ParseStatistics(line));
      run.ranks.push_back(std::move(statistics));
    } else if (!line.starts_with("{\"code\"")) {
      run.output += line + '\n';
    }
  }
  if (run.ranks.empty()) return Internal("{} told no statistics:\n{}", command, text);
  return run;
}

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

double SecondsOfDrawing(const engine::SessionStatistics& statistics) {
  const auto found = statistics.operators.find("rand");
  return found == statistics.operators.end() ? 0 : Seconds(found->second.kernel_ns);
}

int RunOptimizer(const BenchOptions& options, const std::vector<std::string>& files) {
  const std::string parameters = options.data.empty() ? "" : fmt::format("-nvargs 'X={}'", options.data);
  bool all_ran = true;
  for (const std::string& file : files) {
    std::optional<engine::SessionStatistics> best;
    for (int round = 0; round < options.rounds; ++round) {
      Result<HeddleRun> run = RunScript(file, "cost", options.threads, parameters);
      if (!run.ok()) {
        std::fprintf(stderr, "heddle-bench: %s\n", run.status().ToString().c_str());
        all_ran = false;
        break;
      }
      if (!best || run->ranks[0].fusion_ns < best->fusion_ns) best = std::move(run->ranks[0]);
    }
    if (best) PrintOptimizer(std::filesystem::path(file).stem(), *best, options);
  }
  return all_ran ? 0 : 1;
}

int RunScripts(const BenchOptions& options, const std::vector<std::string>& files) {
  ops::Arena arena(options.threads);
  const Matrix probe_data = RandomDense(1, kProbeCells, 1, &arena);
  bool all_ran = true;
  for (const std::string& file : files) {
    if (const Status status = Measure(file, probe_data, options); !status.ok()) {
      std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
      all_ran = false;
    }
  }
  return all_ran ? 0 : 1;
}

}  // namespace heddle::bench

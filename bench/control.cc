// SPDX-License-Identifier: Apache-2.0
#include "bench/control.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "bench/distributed.h"
#include "compiler/compile.h"
#include "core/environment/clock.h"
#include "engine/control/local_run.h"
#include "scheduler/schedule.h"

namespace heddle::bench {
namespace {

// A loop of `rounds` rounds; `unit` is what `nanoseconds` is divided by, beside the rounds.
struct Case {
  const char* name;
  const char* unit;
  double per_round;
  int64_t rounds;
  const char* before;
  const char* body;
};

constexpr Case kCases[] = {
    {"while counter", "s in all", 1e9 / 1e6, 1'000'000, "", ""},
    {"scalar operator", "ns an operator", 12, 200'000, "a = 1.5\nb = 2.0\n",
     "a = a * 0.5 + 1.25 - b / 3\nb = b * 0.25 + a - 1 + (a > 3) * 2\n"},
    {"function call", "us a call", 1e3, 200'000,
     "f = function(double x, int k) return (double y) {\n"
     "  y = x\n  if (k < 0) { y = f(y, k + 1); }\n  else { y = y + 1; }\n}\nx = 0.5\n",
     "x = f(x, i)\n"},
    {"block of ten operators, 10x10", "us a block", 1e3, 50'000,
     "A = rand(rows=10, cols=10, seed=1)\nB = rand(rows=10, cols=10, seed=2)\n",
     "C = A %*% B\nD = C * 0.01 + A\nE = D[2:9, 1:10]\nv = rowSums(D) / 100\nB = abs(B * 0.5 - v)\n"
     "A[1, 1] = max(E)\n"},
    {"X = rbind(X, v), v 1x10", "s in all", 1e9 / 2e4, 20'000,
     "X = matrix(0, rows=0, cols=10)\nv = matrix(1, rows=1, cols=10)\n", "X = rbind(X, v * i)\n"},
    {"X = cbind(X, v), v 10x1", "s in all", 1e9 / 2e4, 20'000,
     "X = matrix(0, rows=10, cols=0)\nv = matrix(1, rows=10, cols=1)\n", "X = cbind(X, v * i)\n"},
    {"x = cbind(x, s), x one row", "s in all", 1e9 / 2e4, 20'000, "x = matrix(0, rows=1, cols=0)\n",
     "x = cbind(x, as.matrix(i * 2))\n"},
    {"l = append(l, v)", "s in all", 1e9 / 2e4, 20'000, "l = list()\n",
     "l = append(l, matrix(i, rows=1, cols=10))\n"},
};

std::string TextOf(const Case& of) {
  return fmt::format("{}i = 0\nwhile (i < {}) {{\n{}i = i + 1\n}}\n", of.before, of.rounds, of.body);
}

// A thousand lines as people write them: a function and a few loops again and again.
std::string LongScript() {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += fmt::format(
        "f{0} = function(matrix[double] X, double s) return (double r) {{\n"
        "  r = 0\n"
        "  for (k in 1:ncol(X)) {{\n"
        "    c = X[, k] * s\n"
        "    if (sum(c) > 0) r = r + sum(c) / nrow(X)\n"
        "  }}\n"
        "}}\n"
        "X{0} = rand(rows=100, cols=10, seed={1})\n"
        "Y{0} = t(X{0}) %*% X{0} + diag(matrix(0.1, rows=10, cols=1))\n"
        "print(\"result \" + f{0}(Y{0}, 0.5 * {1}))\n",
        i, i + 1);
  return text;
}

Result<Program> Compile(const std::string& text, bool types_only = false) {
  compiler::CompileOptions options;
  options.types_only = types_only;
  options.script = "control.dml";
  compiler::Diagnostics diagnostics;
  return compiler::CompileScript(text, options, &diagnostics);
}

Result<int64_t> NanosecondsOf(const std::string& text, int threads) {
  HEDDLE_ASSIGN_OR_RETURN(const Program program, Compile(text));
  engine::SessionOptions options;
  options.threads = threads;
  options.seed = 1;
  engine::RunSurroundings surroundings;
  surroundings.directory = "/";
  surroundings.print = [](std::string_view) {};
  const int64_t begin_ns = SystemClock().MonotonicNs();
  const engine::RunOutcome outcome = engine::RunLocally(program, options, surroundings);
  HEDDLE_RETURN_IF_ERROR(outcome.status);
  return SystemClock().MonotonicNs() - begin_ns;
}

Result<int64_t> NanosecondsToCompile(const std::string& text, bool types_only) {
  const int64_t begin_ns = SystemClock().MonotonicNs();
  HEDDLE_RETURN_IF_ERROR(Compile(text, types_only).status());
  return SystemClock().MonotonicNs() - begin_ns;
}

// Gradient descent whose 200 operators are one block, on rows that so many ranks share.
Result<int64_t> NanosecondsToPlan(int32_t ranks) {
  constexpr int64_t kRows = 100'000'000;
  Graph graph;
  const auto add = [&](const char* op, std::vector<NodeId> inputs, Shape shape, const char* name = nullptr) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.info = ValueInfo::OfMatrix(shape);
    if (name != nullptr) node.SetAttribute("name", Scalar(std::string(name)));
    return graph.Add(std::move(node));
  };
  const NodeId x = add("variable", {}, {kRows, 10}, "X");
  NodeId w = add("variable", {}, {10, 1}, "w");
  for (int round = 0; round < 50; ++round) {
    const NodeId rows = add("abs", {add("%*%", {x, w}, {kRows, 1})}, {kRows, 1});
    w = add("-", {w, add("t%*%", {x, rows}, {10, 1})}, {10, 1});
  }
  add("assign", {w}, {10, 1}, "w");
  const int64_t begin_ns = SystemClock().MonotonicNs();
  const Result<Plan> plan = scheduler::Schedule(
      graph, {{"X", Distribution::SplitRows(kRows, ranks)}, {"w", Distribution::Each()}}, {.ranks = ranks});
  HEDDLE_RETURN_IF_ERROR(plan.status());
  return SystemClock().MonotonicNs() - begin_ns;
}

template <typename Measure>
bool Report(const BenchOptions& options, const std::string& name, const char* unit, double divisor,
            const Measure& measure) {
  if (name.find(options.only) == std::string::npos) return true;
  int64_t best_ns = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < options.rounds; ++round) {
    const Result<int64_t> ns = measure();
    if (!ns.ok()) {
      std::fprintf(stderr, "heddle-bench: %s: %s\n", name.c_str(), ns.status().ToString().c_str());
      return false;
    }
    best_ns = std::min(best_ns, *ns);
  }
  const double value = static_cast<double>(best_ns) / divisor;
  if (options.json)
    std::printf("{\"bench\":\"control\",\"case\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}\n", name.c_str(),
                value, unit);
  else
    std::printf("%-32s %10.3f %s\n", name.c_str(), value, unit);
  std::fflush(stdout);
  return true;
}

}  // namespace

int RunControl(const BenchOptions& options) {
  bool all_ran = true;
  for (const Case& each : kCases) {
    const std::string text = TextOf(each);
    all_ran &= Report(options, each.name, each.unit, static_cast<double>(each.rounds) * each.per_round,
                      [&] { return NanosecondsOf(text, options.threads); });
  }
  const std::string text = LongScript();
  all_ran &= Report(options, "parse and check 1000 lines", "ms", 1e6,
                    [&] { return NanosecondsToCompile(text, /*types_only=*/true); });
  all_ran &= Report(options, "compile 1000 lines", "ms", 1e6,
                    [&] { return NanosecondsToCompile(text, /*types_only=*/false); });
  all_ran &=
      Report(options, "plan 200 operators, 1024 ranks", "s", 1e9, [] { return NanosecondsToPlan(1024); });
  all_ran &= RunRounds(options) == 0;
  return all_ran ? 0 : 1;
}

}  // namespace heddle::bench

// SPDX-License-Identifier: Apache-2.0
// The n-th allocation fails, for every n until a run asks for no more; and every limit of memory from nothing
// to what a run needs: the run ends with the right output and files or as out of memory, with all matrices
// given back, no half a file and no spill file left.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "compiler/compile.h"
#include "core/memory/block_pool.h"
#include "core/memory/heap_counters.h"
#include "tests/faults/fault_runs.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

struct Kind {
  std::string name;
  std::string script;
  int ranks = 1;
  int most_tried = 150;     ///< Without HEDDLE_FAULTS_ALL: so many n, evenly.
  int64_t panel_bytes = 0;  ///< Of a pass; values are then panels, and most of them in spill files.
};

// What files of scripts are made of.
std::string LinesOfCsv() {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += fmt::format("{},{},{}\n", i, i % 7 * 0.5, 1000 - i);
  return lines;
}

constexpr int64_t kPanelBytes = 4096;

std::vector<Kind> Kinds() {
  const std::string spilled =
      "X = rand(rows=2000, cols=9, seed=1)\nY = X * 2 + 1\nif (nrow(Y) < 0) print('none')\n"
      "for (i in 1:2) Y = (Y - colMeans(X)) * 0.5 + i\n"
      "print(sum(Y) + ' ' + sum(t(Y) %*% X) + ' ' + sum(X > 0.5))\n";
  const std::string loop =
      "f = function(matrix[double] A, double s) return (matrix[double] B) { B = A * s + 1 }\n"
      "X = rand(rows=200, cols=20, seed=1)\n"
      "w = matrix(0, 20, 1)\n"
      "for (i in 1:3) { w = w - 0.001 * (t(X) %*% (X %*% w - rowSums(X))) }\n"
      "print(sum(f(w, 2)) + ' ' + sum(X[1:7, ] ^ 2))\n";
  return {
      {"loop", loop},
      {"two_ranks", loop, 2, 60},
      {"lists",
       "L = list(1, 'two')\nfor (i in 1:4) { L = append(L, matrix(i, 3, i)) }\n"
       "print(length(L) + ' ' + sum(as.matrix(L[4])))\n"
       "R = matrix(0, 4, 1)\nparfor (i in 1:4) { R[i, 1] = sum(seq(1, i)) }\nprint(sum(R))\n"},
      {"frames",
       "F = as.frame(matrix('1 2 3 4 5 6', 3, 2))\nF = cbind(F, as.frame(matrix('7 8 9', 3, 1)))\n"
       "print(nrow(F) + ' ' + ncol(F) + ' ' + sum(as.matrix(F)))\nprint(toString(F))\n"},
      {"solve",
       "A = rand(rows=30, cols=30, seed=2)\nS = t(A) %*% A + diag(matrix(1, 30, 1))\n"
       "x = solve(S, matrix(1, 30, 1))\nprint(sum(x) + ' ' + sum(order(target=A, by=1)))\n"},
      {"spilled", spilled, 1, 100, kPanelBytes},
      {"spilled_by_two_ranks", spilled, 2, 40, kPanelBytes},
      {"read_in_panels",
       "X = read('in.csv', format='csv')\nY = X - colMeans(X)\nprint(sum(t(Y) %*% X) + ' ' + sum(X[, 2]))\n",
       1, 60, kPanelBytes},
      {"written_from_panels",
       "X = rand(rows=400, cols=4, seed=3)\nwrite(X * 2 + 1, 'out.csv', format='csv')\n"
       "write(X, 'out.bin', format='binary')\nprint(sum(X))\n",
       1, 60, kPanelBytes},
      {"frames_in_panels",
       "F = as.frame(rand(rows=300, cols=2, seed=4))\nF = cbind(F, map(F[, 1], \"x -> x + 'k'\"))\n"
       "if (nrow(F) < 0) print('none')\nprint(toString(F[1:3, ]))\nprint(sum(as.matrix(F[, 2])))\n",
       1, 40, kPanelBytes},
  };
}

// How a run ended, in a process of its own.
struct End {
  std::string text;     ///< "ok " and the output; the code and the message of an error; how it was killed.
  int64_t asked = 0;    ///< Allocations that may be refused.
  int64_t spilled = 0;  ///< Bytes of panels that all ranks have written to spill files.
  testing_support::Files files;  ///< In the folder that it ran in.
};

ScriptOutcome CompileAndRun(const std::string& script, const SessionOptions& options,
                            const std::string& folder) {
  compiler::CompileOptions how;
  how.script = "test.dml";
  compiler::Diagnostics diagnostics;
  const Result<Program> program = compiler::CompileScript(script, how, &diagnostics);
  if (!program.ok()) return {.status = program.status()};
  Stretch whole;
  whole.is_watched = false;
  whole.folders.assign(static_cast<size_t>(options.ranks), folder);
  return RunProgram(*program, options, &whole);
}

End RunElsewhere(const Kind& kind, int64_t fail_at, int64_t room) {
  const testing_support::TemporaryFolder folder;
  static const std::string lines = LinesOfCsv();
  testing_support::WriteText(folder.path() + "/in.csv", lines);
  std::filesystem::create_directory(folder.path() + "/spill");
  int ends[2];
  HEDDLE_CHECK(pipe(ends) == 0, "there are descriptors");
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    setenv("TMPDIR", (folder.path() + "/spill").c_str(), 1);
    SessionOptions options = SplitOver(kind.ranks);
    options.panel_bytes = kind.panel_bytes;
    // What was compiled may be larger than a small limit of the run.
    const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
    MemoryBudget& budget = MemoryBudget::Process();
    if (room >= 0) budget.SetLimit(budget.used() + room);
    heap::refusable_asked.store(0);
    heap::refused_at.store(fail_at);
    std::string text;
    int64_t spilled = 0;
    {
      const ScriptOutcome outcome = CompileAndRun(kind.script, options, folder.path());
      heap::refused_at.store(0);
      budget.SetLimit(int64_t{1} << 40);
      text = outcome.status.ok()
                 ? "ok " + outcome.output
                 : fmt::format("code {}: {}", ExitCode(outcome.status), outcome.status.ToString());
      for (const SessionStatistics& rank : outcome.statistics) spilled += rank.spilled_bytes;
    }
    if (BlockPool::Process().Statistics().in_use_bytes != before) text = "matrices are left: " + text;
    const int64_t asked = heap::refusable_asked.load();
    (void)!write(ends[1], &asked, sizeof(asked));
    (void)!write(ends[1], &spilled, sizeof(spilled));
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  End end;
  (void)!read(ends[0], &end.asked, sizeof(end.asked));
  (void)!read(ends[0], &end.spilled, sizeof(end.spilled));
  char block[4096];
  for (ssize_t got; (got = read(ends[0], block, sizeof(block))) > 0;)
    end.text.append(block, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) end.text = fmt::format("signal {}", WTERMSIG(status));
  end.files = testing_support::FilesBelow(folder.path());
  return end;
}

// "": as the whole run, or out of memory with whole files alone; else what is wrong.
std::string WhatIsWrong(const End& end, const End& whole) {
  if (end.text == whole.text) return end.files == whole.files ? "" : "other files";
  if (!end.text.starts_with("code 5: ")) return end.text;
  for (const auto& [path, contents] : end.files) {
    const auto expected = whole.files.find(path);
    if (expected == whole.files.end() || contents != expected->second) return "left behind: " + path;
  }
  return "";
}

class AllocationsTest : public testing::TestWithParam<Kind> {
 protected:
  static int64_t StepOf(int64_t most, int tried) {
    return testing_support::TriesAllFaults() ? 1 : std::max<int64_t>(1, most / tried);
  }
};

TEST_P(AllocationsTest, TheNthFails) {
  const Kind& kind = GetParam();
  const End whole = RunElsewhere(kind, INT64_MAX, -1);
  ASSERT_TRUE(whole.text.starts_with("ok ")) << whole.text;
  ASSERT_GT(whole.asked, 100);
  if (kind.name.starts_with("spilled")) {
    EXPECT_GT(whole.spilled, 0);
  }
  int64_t refused = 0;
  const int64_t step = StepOf(whole.asked, kind.most_tried);
  const auto [first, last] = testing_support::PartOf(whole.asked);
  for (int64_t n = first; n <= last; n += step) {
    const End end = RunElsewhere(kind, n, -1);
    EXPECT_EQ(WhatIsWrong(end, whole), "") << kind.name << ", allocation " << n << ": " << end.text;
    refused += end.text != whole.text;
  }
  EXPECT_GT(refused, 0);
  std::printf("%s: %lld allocations, every %lld-th failed, %lld runs with an error\n", kind.name.c_str(),
              static_cast<long long>(whole.asked), static_cast<long long>(step),
              static_cast<long long>(refused));
}

TEST_P(AllocationsTest, EveryLimit) {
  const Kind& kind = GetParam();
  const End whole = RunElsewhere(kind, INT64_MAX, -1);
  const int tried = kind.most_tried / 3;
  int refused = 0;
  // Steps that grow: small limits stop at the first blocks, which are small.
  int64_t room = 0;
  for (; room < int64_t{1} << 30; room += std::max<int64_t>(4096, room / tried)) {
    const End end = RunElsewhere(kind, 0, room);
    EXPECT_EQ(WhatIsWrong(end, whole), "") << kind.name << ", room " << room << ": " << end.text;
    if (end.text == whole.text && room > 1 << 20) break;
    refused += end.text != whole.text;
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AllocationsTest, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
// The n-th allocation fails, for every n until a run asks for no more; and every limit of memory from nothing
// to what a run needs: the run ends with the right output or as out of memory, with all matrices given back.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "compiler/compile.h"
#include "core/memory/block_pool.h"
#include "core/memory/heap_counters.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

struct Kind {
  std::string name;
  std::string script;
  int ranks = 1;
  int most_tried = 150;  ///< Without HEDDLE_FAULTS_ALL: so many n, evenly.
};

std::vector<Kind> Kinds() {
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
  };
}

// How a run ended, in a process of its own.
struct End {
  std::string text;  ///< "ok " and the output; the code and the message of an error; how it was killed.
  int64_t asked = 0;
};

ScriptOutcome CompileAndRun(const std::string& script, const SessionOptions& options) {
  compiler::CompileOptions how;
  how.script = "test.dml";
  compiler::Diagnostics diagnostics;
  const Result<Program> program = compiler::CompileScript(script, how, &diagnostics);
  if (!program.ok()) return {.status = program.status()};
  Stretch whole;
  whole.is_watched = false;
  return RunProgram(*program, options, &whole);
}

End RunElsewhere(const Kind& kind, int64_t fail_at, int64_t room) {
  int ends[2];
  HEDDLE_CHECK(pipe(ends) == 0, "there are descriptors");
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    SessionOptions options = SplitOver(kind.ranks);
    // What was compiled may be larger than a small limit of the run.
    const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
    MemoryBudget& budget = MemoryBudget::Process();
    if (room >= 0) budget.SetLimit(budget.used() + room);
    heap::refusable_asked.store(0);
    heap::refused_at.store(fail_at);
    std::string text;
    {
      const ScriptOutcome outcome = CompileAndRun(kind.script, options);
      heap::refused_at.store(0);
      budget.SetLimit(int64_t{1} << 40);
      text = outcome.status.ok()
                 ? "ok " + outcome.output
                 : fmt::format("code {}: {}", ExitCode(outcome.status), outcome.status.ToString());
    }
    if (BlockPool::Process().Statistics().in_use_bytes != before) text = "matrices are left: " + text;
    const int64_t asked = heap::refusable_asked.load();
    (void)!write(ends[1], &asked, sizeof(asked));
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  End end;
  (void)!read(ends[0], &end.asked, sizeof(end.asked));
  char block[4096];
  for (ssize_t got; (got = read(ends[0], block, sizeof(block))) > 0;)
    end.text.append(block, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) end.text = fmt::format("signal {}", WTERMSIG(status));
  return end;
}

bool IsRight(const std::string& text, const std::string& expected) {
  return text == expected || text.starts_with("code 5: ");
}

class AllocationsTest : public testing::TestWithParam<Kind> {
 protected:
  static int64_t StepOf(int64_t most, int tried) {
    return std::getenv("HEDDLE_FAULTS_ALL") != nullptr ? 1 : std::max<int64_t>(1, most / tried);
  }
};

TEST_P(AllocationsTest, TheNthFails) {
  const Kind& kind = GetParam();
  const End whole = RunElsewhere(kind, INT64_MAX, -1);
  ASSERT_TRUE(whole.text.starts_with("ok ")) << whole.text;
  ASSERT_GT(whole.asked, 100);
  int64_t refused = 0;
  const int64_t step = StepOf(whole.asked, kind.most_tried);
  for (int64_t n = 1; n <= whole.asked; n += step) {
    const End end = RunElsewhere(kind, n, -1);
    EXPECT_TRUE(IsRight(end.text, whole.text)) << kind.name << ", allocation " << n << ": " << end.text;
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
    EXPECT_TRUE(IsRight(end.text, whole.text)) << kind.name << ", room " << room << ": " << end.text;
    if (end.text == whole.text && room > 1 << 20) break;
    refused += end.text != whole.text;
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AllocationsTest, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle::engine

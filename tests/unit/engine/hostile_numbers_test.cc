// SPDX-License-Identifier: Apache-2.0
// Every argument that is an index, a size or a count, given numbers that no program means: the script may
// fail, with an error at a place; nothing else may happen.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "compiler/compile.h"
#include "core/memory/memory_budget.h"
#include "tests/support/all_plans.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr int64_t kMemory = int64_t{64} << 20;

const char* const kNumbers[] = {"Inf",
                                "(-Inf)",
                                "NaN",
                                "1e308",
                                "(-1e308)",
                                "9223372036854775807",
                                "(-9223372036854775807 - 1)",
                                "9223372036854774784.0",
                                "1e18",
                                "281474976710657",
                                "281474976710656",
                                "1073741825",
                                "2147483648",
                                "0.5",
                                "(-0.0)",
                                "0",
                                "(-1)"};

// Statements with N for the number. X is 3 x 3, v 3 x 1.
const char* const kIndexes[] = {
    "print(sum(X[N,]))",
    "print(sum(X[,N]))",
    "print(sum(X[2,N]))",
    "print(sum(X[N,2]))",
    "print(sum(X[N:2,]))",
    "print(sum(X[2:N,]))",
    "print(sum(X[,N:2]))",
    "print(sum(X[,2:N]))",
    "print(sum(X[N:N,N:N]))",
    "print(sum(exp(X[,N:3]) * X[,N:3] + 1))",
    "print(sum(rowSums(X[,1:N]) * 2))",
    "X[N,1] = 5\nprint(sum(X))",
    "X[2,N] = 5\nprint(sum(X))",
    "X[N,N] = 5\nprint(sum(X))",
    "X[N,] = t(v)\nprint(sum(X))",
    "X[,N] = v\nprint(sum(X))",
    "X[N:3,] = X\nprint(sum(X))",
    "X[,1:N] = X\nprint(sum(X))",
    "S = table(v, v, 3, 9)\nS[2,N] = 5\nprint(sum(S))",
    "S = table(v, v, 3, 9)\nprint(sum(S[N,]))",
    "for (i in 1:3) X[i,N] = i\nprint(sum(X))",
    "for (i in 1:3) X[N,i] = X[2,i]\nprint(sum(X))",
    "s = 0\nfor (i in 1:3) s = s + as.scalar(X[i,N])\nprint(s)",
    "s = 0\nfor (i in 1:3) s = s + sum(X[i,N:3])\nprint(s)",
    "for (i in N:3) X[i,1] = 7\nprint(sum(X))",
    "f = function(matrix[double] A, double k) return (double s) { s = as.scalar(A[k,1]) }\nprint(f(X, N))",
};

const char* const kOthers[] = {
    "print(sum(matrix(1, rows=N, cols=1)))",
    "print(sum(matrix(1, rows=1, cols=N) * 2))",
    "print(sum(matrix(1, rows=N, cols=N)))",
    "print(sum(matrix(X, rows=N, cols=3)))",
    "print(sum(matrix(X, rows=9, cols=N)))",
    "print(sum(matrix(\"1 2 3\", rows=N, cols=1)))",
    "print(sum(matrix(N, rows=2, cols=2)))",
    "print(ncol(matrix(0, rows=0, cols=N)))",
    "print(nrow(t(matrix(0, rows=0, cols=N)) %*% matrix(0, rows=0, cols=N)))",
    "print(sum(rand(rows=N, cols=1, seed=1)))",
    "print(sum(rand(rows=2, cols=N, seed=1) + 1))",
    "print(sum(rand(rows=N, cols=N, sparsity=0.001, seed=1)))",
    "print(sum(rand(rows=N, cols=N, sparsity=0, seed=1)))",
    "print(sum(rand(rows=3, cols=3, seed=N)))",
    "print(sum(rand(rows=3, cols=3, sparsity=N, seed=1)))",
    "print(sum(rand(rows=3, cols=3, min=N, max=N, seed=1)))",
    "print(sum(rand(rows=3, cols=3, pdf=\"poisson\", lambda=N, seed=1)))",
    "print(sum(seq(1, N)))",
    "print(sum(seq(N, 1)))",
    "print(sum(seq(1, 3, N)))",
    "print(sum(seq(0, N, 1e300)))",
    "print(sum(table(v, v, N, 3)))",
    "print(sum(table(v, v, 3, N)))",
    "print(sum(table(v, v * N)))",
    "print(sum(table(v * N, v)))",
    "print(sum(table(v * N, v, 3, 3)))",
    "print(sum(table(v, v, N)))",
    "print(sum(diag(matrix(1, rows=N, cols=1))))",
    "print(sum(t(matrix(1, rows=N, cols=2))))",
    "print(sum(cbind(X, matrix(1, rows=3, cols=N))))",
    "print(sum(rbind(X, matrix(1, rows=N, cols=3))))",
    "print(sum(rbind(matrix(1, rows=N, cols=1), matrix(1, rows=N, cols=1), matrix(1, rows=N, cols=1))))",
    "print(sum(outer(matrix(1, rows=N, cols=1), matrix(1, rows=1, cols=N), \"*\")))",
    "print(sum(matrix(1, rows=N, cols=1) %*% matrix(1, rows=1, cols=N)))",
    "print(sum(cumsum(matrix(1, rows=N, cols=1))))",
    "print(sum(rowSums(matrix(1, rows=N, cols=2))))",
    "print(sum(colSums(matrix(1, rows=2, cols=N))))",
    "print(sum(order(target=X, by=N)))",
    "print(sum(order(target=X, by=matrix(N, rows=1, cols=1))))",
    "print(sum(order(target=X, by=1, decreasing=FALSE, index.return=TRUE) * N))",
    "print(sum(order(target=matrix(1, rows=N, cols=1))))",
    "print(sum(replace(target=X, pattern=N, replacement=N)))",
    "print(sum(removeEmpty(target=matrix(0, rows=N, cols=1), margin=\"rows\")))",
    "print(sum(removeEmpty(target=X * N, margin=\"cols\")))",
    "print(sum(rev(matrix(1, rows=N, cols=1))))",
    "print(toString(X, rows=N))",
    "print(toString(X, cols=N))",
    "print(toString(X, decimal=N))",
    "print(as.integer(N))",
    "print(as.logical(N))",
    "print(bitwAnd(N, 3))",
    "print(bitwShiftL(3, N))",
    "print(sum(bitwShiftR(X, N)))",
    "print(N %/% 2)",
    "print(7 %/% N)",
    "print(N %% N)",
    "print(abs(N))",
    "print(-N)",
    "print(N * N)",
    "print(sum(X ^ N))",
    "print(sum(X %/% N))",
    "print(sum(solve(diag(matrix(N, rows=3, cols=1)), v)))",
    "for (i in 1:3) { print(i * N) }",
    "for (i in seq(1, 3, N)) { print(i) }",
};

// N as the text says it, as block entry finds it, and as a cell of the same block has it.
struct Form {
  const char* before;
  bool is_text;
};
constexpr Form kForms[] = {
    {"", true},
    {"n = NUMBER\nif (sum(X) > 100) { n = 1 }\n", false},
    {"n = as.scalar(matrix(NUMBER, rows=1, cols=1) + sum(X) - 9)\n", false},
};

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string Script(const Form& form, const std::string& statement, const std::string& number) {
  // Functions stand first. N is no other word of any statement: as a letter alone.
  std::string with;
  for (size_t at = 0; at < statement.size(); ++at) {
    const auto is_letter = [&](size_t i) { return i < statement.size() && std::isalpha(statement[i]) != 0; };
    const bool is_number = statement[at] == 'N' && !is_letter(at + 1) && (at == 0 || !is_letter(at - 1));
    with += is_number ? (form.is_text ? number : "n") : std::string(1, statement[at]);
  }
  return "X = matrix(1, rows=3, cols=3)\nv = seq(1, 3)\n" + Replaced(form.before, "NUMBER", number) + with;
}

Status RunHostile(const std::string& script, int ranks, const char* fusion) {
  compiler::CompileOptions options;
  options.script = "test.dml";
  compiler::Diagnostics diagnostics;
  const Result<Program> program = compiler::CompileScript(script, options, &diagnostics);
  if (!program.ok()) return program.status();
  SessionOptions session = SplitOver(ranks);
  session.fusion = fusion;
  if (ranks > 1) session.memory_bytes = kMemory;  // Else only allocations are refused, not plans.
  return RunScript(script, session).status;
}

class HostileNumbersTest : public testing::TestWithParam<int> {
 protected:
  HostileNumbersTest() : limit_(MemoryBudget::Process().limit()) {
    // Drivers of devices that other tests have opened keep memory.
    MemoryBudget::Process().SetLimit(MemoryBudget::Process().used() + kMemory);
  }
  ~HostileNumbersTest() override { MemoryBudget::Process().SetLimit(limit_); }

 private:
  const int64_t limit_;
};

TEST_P(HostileNumbersTest, NoIndexIsTakenForAnotherOne) {
  for (const Form& form : kForms) {
    for (const char* statement : kIndexes) {
      for (const std::string number : kNumbers) {
        const std::string script = Script(form, statement, number);
        const Status status = RunHostile(script, GetParam(), "cost");
        if (number == "NaN" && std::string_view(statement).starts_with("for (i in N")) {
          EXPECT_TRUE(status.ok()) << script << "\n" << status.ToString();  // A loop without a round.
          continue;
        }
        // i in 0:3 and in -1:3 begins outside, i in 0.5:3 at 0.
        ASSERT_TRUE(ExitCode(status) == 1 || ExitCode(status) == 3) << script << "\n" << status.ToString();
        EXPECT_TRUE(ExitCode(status) == 3 || status.position().IsKnown()) << script << "\n"
                                                                          << status.ToString();
        EXPECT_NE(status.ToString().find("test.dml:"), std::string::npos) << script << "\n"
                                                                          << status.ToString();
      }
    }
  }
}

TEST_P(HostileNumbersTest, EverySizeAndCountIsRefusedOrRight) {
  const std::set<int> allowed = {0, 1, 3, 5};
  // What compilation refuses takes no time; of what runs, usually every fourth is taken.
  const int step = testing_support::RunsAllPlans() ? 1 : 4;
  int run = 0;
  for (const Form& form : kForms) {
    for (const char* statement : kOthers) {
      for (const std::string number : kNumbers) {
        if (run++ % step != 0 && !(form.is_text && GetParam() == 1)) continue;
        const std::string script = Script(form, statement, number);
        const Status status = RunHostile(script, GetParam(), "off");
        ASSERT_TRUE(allowed.contains(ExitCode(status))) << script << "\n" << status.ToString();
        if (status.ok()) continue;
        EXPECT_NE(status.ToString().find("test.dml:"), std::string::npos) << script << "\n"
                                                                          << status.ToString();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, HostileNumbersTest, testing::Values(1, 2));

}  // namespace
}  // namespace heddle::engine

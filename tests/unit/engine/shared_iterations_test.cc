// SPDX-License-Identifier: Apache-2.0
// Iterations of a parfor that are shared out over ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/variables/merge_cells.h"
#include "engine/variables/share_report.h"
#include "engine/variables/sum_terms.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

SessionOptions OnRanks(int ranks, int threads = 1) {
  SessionOptions options;
  options.ranks = ranks;
  options.threads = threads;
  options.fusion = "off";
  return options;
}

int64_t ActsOf(const ScriptOutcome& outcome, size_t rank, const std::string& op) {
  const auto& operators = outcome.statistics[rank].operators;
  const auto found = operators.find(op);
  return found == operators.end() ? 0 : found->second.acts;
}

TEST(SharedIterationsTest, EveryRankRunsItsShare) {
  const std::string script =
      "R = matrix(0, rows=7, cols=2)\nX = rand(rows=20, cols=2, seed=3)\nparfor (i in 1:7) {\n"
      "  R[i, 1] = sum(cumsum(X * i))\n  print(\"iteration \" + i)\n}\nprint(toString(R, decimal=17))\nprint(i)";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  for (const int threads : {1, 2}) {
    const ScriptOutcome three = RunScript(script, OnRanks(3, threads));
    ASSERT_TRUE(three.status.ok()) << three.status.ToString();
    EXPECT_EQ(three.output, one.output);
    EXPECT_EQ(ActsOf(three, 0, "cumsum"), 3);
    EXPECT_EQ(ActsOf(three, 1, "cumsum"), 2);
    EXPECT_EQ(ActsOf(three, 2, "cumsum"), 2);
  }
}

// The roots of all rounds are shared out before them, and then the rounds.
TEST(SharedIterationsTest, RoundsThatFindTheirTreeInAForestAreShared) {
  const std::string script =
      "f = function(Matrix[Double] T, Integer n, Matrix[Double] X) return (Matrix[Double] h) {\n"
      "  h = X[n,]\n"
      "  if (as.scalar(T[n,1]) > 0) { l = f(T, as.integer(as.scalar(T[n,1])), X);  h = h * 2 + l }\n}\n"
      "T = matrix(\"0 1 2 0 4 5 6 7\", 8, 1)\nX = rand(rows=8, cols=4, seed=1)\nR = matrix(0, rows=7, cols=1)\n"
      "parfor (i in 1:7) {\n  h = f(T, i + 1, X)\n  R[i, 1] = sum(cumsum(t(h)))\n  print(\"round \" + i)\n}\n"
      "print(toString(R, decimal=17))";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  const ScriptOutcome three = RunScript(script, OnRanks(3));
  ASSERT_TRUE(three.status.ok()) << three.status.ToString();
  EXPECT_EQ(three.output, one.output);
  EXPECT_EQ(ActsOf(three, 0, "cumsum"), 3);
  EXPECT_EQ(ActsOf(three, 1, "cumsum"), 2);
  EXPECT_EQ(ActsOf(three, 2, "cumsum"), 2);
}

// Where it is large: 32 times the size from which matrices are cut.
TEST(SharedIterationsTest, LargeRowsStayWhereTheyAre) {
  const std::string script =
      "X = rand(rows=4000, cols=2, seed=3)\nR = matrix(0, rows=3, cols=1)\nparfor (i in 1:3) {\n"
      "  R[i, 1] = sum(abs(X - i))\n}\nprint(sum(R))";
  SessionOptions options = OnRanks(2);
  options.min_distributed_bytes = 1000;
  const ScriptOutcome split = RunScript(script, options);
  EXPECT_EQ(split.output, RunScript(script, OnRanks(1)).output);
  EXPECT_EQ(ActsOf(split, 1, "abs"), 3) << "both ranks have rows of every iteration";
  options.min_distributed_bytes = 10000;
  const ScriptOutcome together = RunScript(script, options);
  EXPECT_EQ(together.output, split.output);
  EXPECT_EQ(ActsOf(together, 0, "abs"), 2);
  EXPECT_EQ(ActsOf(together, 1, "abs"), 1);
}

TEST(SharedIterationsTest, CellsOfASplitMatrixComeTogether) {
  const std::string script =
      "X = rand(rows=3000, cols=2, seed=3)\nparfor (i in 1:5) {\n  X[i * 500, 1] = sum(X[i * 500, ]) + 7\n}\n"
      "Y = X * 2\nprint(sum(Y))\nprint(toString(X[495:505, ], decimal=17))\nprint(toString(X[2500, ]))";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  SessionOptions options = OnRanks(3);
  options.min_distributed_bytes = 8000;
  const ScriptOutcome three = RunScript(script, options);
  ASSERT_TRUE(three.status.ok()) << three.status.ToString();
  EXPECT_EQ(three.output, one.output);
}

TEST(SharedIterationsTest, CopiesThatTakeTooMuchMemoryAreNotMade) {
  const std::string script =
      "X = rand(rows=2000, cols=100, seed=3)\nR = matrix(0, rows=4, cols=1)\nparfor (i in 1:4) {\n"
      "  R[i, 1] = sum(cumsum(X[, i]))\n}\nprint(sum(R))";
  SessionOptions options = OnRanks(2);
  options.memory_bytes = 1 << 22;
  const ScriptOutcome little = RunScript(script, options);
  ASSERT_TRUE(little.status.ok()) << little.status.ToString();
  EXPECT_EQ(ActsOf(little, 1, "cumsum"), 0);
  options.memory_bytes = 1 << 24;
  const ScriptOutcome enough = RunScript(script, options);
  EXPECT_EQ(ActsOf(enough, 1, "cumsum"), 2);
  EXPECT_EQ(little.output, enough.output);
}

// With m = 0 every iteration writes the same cells: the loop inside counts down.
TEST(SharedIterationsTest, WhatTheProofTookForGrantedIsLookedAt) {
  for (const char* m : {"2", "0", "-1", "0.5"}) {
    const std::string script =
        std::string("m = ") + m +
        " * nrow(rand(rows=1, cols=1))\nR = matrix(1, rows=9, cols=1)\nparfor (i in 1:3) {\n"
        "  for (j in 1:m) { R[(i - 1) * m + j + 2, 1] = R[(i - 1) * m + j + 2, 1] * 3 + i }\n"
        "}\nprint(toString(R))";
    SCOPED_TRACE(script);
    const ScriptOutcome one = RunScript(script, OnRanks(1));
    for (const int threads : {1, 2}) {
      EXPECT_EQ(RunScript(script, OnRanks(1, 3)).output, one.output);
      const ScriptOutcome two = RunScript(script, OnRanks(2, threads));
      EXPECT_EQ(two.status.ToString(), one.status.ToString());
      EXPECT_EQ(two.output, one.output);
    }
  }
}

TEST(SharedIterationsTest, WhenOneFailsTheErrorIsThatOfTheFirst) {
  const std::string script =
      "f = function(double x) return (double y) { if (x > 4) { stop(\"large: \" + x) }\n y = x }\n"
      "R = matrix(0, rows=9, cols=1)\nparfor (i in 1:9) {\n  print(\"begins \" + i)\n  R[i, 1] = f(i)\n"
      "  print(\"ends \" + i)\n}";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_EQ(one.status.code(), StatusCode::kAborted);
  for (const int ranks : {2, 3}) {
    const ScriptOutcome several = RunScript(script, OnRanks(ranks, 2));
    EXPECT_EQ(several.status.ToString(), one.status.ToString());
    EXPECT_EQ(several.output, one.output);
  }
}

TEST(SharedIterationsTest, CellsOfAnyKindComeTogether) {
  const std::string script =
      "S = rand(rows=30, cols=30, sparsity=0.05, seed=2)\nN = matrix(0, 5, 1) / 0\nE = matrix(1, 5, 2)\n"
      "for (round in 1:3) {\n  parfor (i in 1:5) {\n    if (i %% 2 == 0) { S[i, i] = 0 / 0; S[i, 1] = 0 - 0 }\n"
      "    if (i == round) { N[i, 1] = i }\n    if (i > 7) { E[i, 1] = 5 }\n    v = sum(rand(rows=3, cols=3))\n"
      "    E[i, 2] = v\n  }\n  print(sum(E))\n}\n"
      "print(toString(S, decimal=17))\nprint(toString(N))\nprint(toString(E, decimal=17))";
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    SessionOptions options = OnRanks(1);
    options.element_type = type;
    const ScriptOutcome one = RunScript(script, options);
    ASSERT_TRUE(one.status.ok()) << one.status.ToString();
    options.ranks = 3;
    const ScriptOutcome three = RunScript(script, options);
    ASSERT_TRUE(three.status.ok()) << three.status.ToString();
    EXPECT_EQ(three.output, one.output);
  }
}

TEST(SharedIterationsTest, CellsOfFramesAndElementsOfListsComeTogether) {
  const std::string script =
      "F = cbind(as.frame(matrix(2.5, rows=6, cols=1)), frame(\"x\", rows=6, cols=1))\n"
      "L = list(matrix(7, rows=2, cols=2), 0, \"c\", F[1, ], list(1, 2), 6)\n"
      "for (round in 1:2) {\n  parfor (i in 1:6) {\n    X = cumsum(rand(rows=5, cols=2))\n"
      "    F[i, 2] = as.frame(\"text \" + i)\n"
      "    if (i > 3) { F[i, 1] = as.frame(matrix(round(sum(X)), rows=1, cols=1)) }\n"
      "    if (i %% 2 == 0) { L[i] = list(list(X, F[i, ], i)) }\n    if (i == round) { L[i] = X }\n"
      "  }\n}\nprint(F)\nprint(toString(L, decimal=17))";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  for (const int ranks : {2, 3}) {
    const ScriptOutcome several = RunScript(script, OnRanks(ranks, 2));
    ASSERT_TRUE(several.status.ok()) << several.status.ToString();
    EXPECT_EQ(several.output, one.output);
    EXPECT_GT(ActsOf(several, static_cast<size_t>(ranks) - 1, "cumsum"), 0) << "every rank has a share";
    EXPECT_LT(ActsOf(several, 0, "cumsum"), 12);
  }
}

TEST(SharedIterationsTest, FramesThatAreCutByRowsStayCut) {
  const std::string script =
      "F = cbind(as.frame(matrix(seq(1, 3000), rows=3000, cols=1)), frame(\"x\", rows=3000, cols=1))\n"
      "parfor (i in 1:5) {\n  F[i * 500, 2] = as.frame(\"longer \" + i)\n"
      "  F[i * 500 - 1, 1] = as.frame(matrix(0 - i, rows=1, cols=1))\n}\n"
      "print(sum(as.matrix(F[, 1])))\nprint(F[1499:1500, ])\nprint(F[2500, ])";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  SessionOptions options = OnRanks(3);
  options.min_distributed_bytes = 4000;
  const ScriptOutcome three = RunScript(script, options);
  ASSERT_TRUE(three.status.ok()) << three.status.ToString();
  EXPECT_EQ(three.output, one.output);
}

TEST(SharedIterationsTest, SumsAreAddedInTheOrderOfTheIterations) {
  const std::string script =
      "S = matrix(0.1, rows=2, cols=2)\nd = 0.3\nn = 0\nparfor (i in 1:11) {\n"
      "  v = cumsum(rand(rows=2, cols=2, min=-1e6, max=1e6))\n  S += v\n  n += i\n"
      "  if (i %% 3 == 0) { d += sum(v) }\n  for (k in 1:3) { d += k / 7 * i }\n  S += t(v) * 1e-9\n}\n"
      "print(toString(S, decimal=17))\nprint(n)\nprint(d)";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  for (const int threads : {1, 2}) {
    const ScriptOutcome three = RunScript(script, OnRanks(3, threads));
    ASSERT_TRUE(three.status.ok()) << three.status.ToString();
    EXPECT_EQ(three.output, one.output);
    EXPECT_EQ(ActsOf(three, 2, "cumsum"), 3) << "iterations 3, 6 and 9";
  }
}

TEST(SharedIterationsTest, ATermThatDoesNotFitIsTheErrorOfItsIteration) {
  const std::string script =
      "S = matrix(0, rows=2, cols=2)\nparfor (i in 1:6) {\n  print(\"in \" + i)\n"
      "  v = rand(rows=2, cols=2 + (i > 3), seed=i)\n  S += v\n}\nprint(sum(S))";
  const ScriptOutcome one = RunScript(script, OnRanks(1));
  ASSERT_FALSE(one.status.ok());
  const ScriptOutcome two = RunScript(script, OnRanks(2, 2));
  EXPECT_EQ(two.status.ToString(), one.status.ToString());
  EXPECT_EQ(two.output, one.output);
}

TEST(SumTermsTest, TermsParseBack) {
  std::vector<SumTerm> terms(2);
  terms[0] = {.iteration = UINT64_MAX - 1, .block = 7};
  terms[0].values["a \"b\"\n"] = Variable::OfScalar(Scalar("x\ny"));
  Variable matrix;
  matrix.value = Value(*Matrix::Dense(2, 3));
  matrix.info = ValueInfo::OfMatrix({2, 3});
  terms[0].values["m"] = matrix;
  std::vector<SumTerm> back;
  const std::string bytes = EncodeTerms(terms);
  ASSERT_TRUE(DecodeTerms(bytes, &back).ok());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].iteration, UINT64_MAX - 1);
  EXPECT_EQ(back[0].block, 7);
  EXPECT_EQ(back[0].values.at("a \"b\"\n").value.scalar(), Scalar("x\ny"));
  EXPECT_TRUE(Matrix::SameCells(back[0].values.at("m").value.matrix(), matrix.value.matrix()));
  EXPECT_EQ(back[0].values.at("m").info, matrix.info);
  EXPECT_TRUE(back[1].values.empty());
  for (const size_t size : {size_t{3}, bytes.size() / 2, bytes.size() - 20})
    EXPECT_FALSE(DecodeTerms(std::string_view(bytes).substr(0, size), &back).ok()) << size;
}

TEST(ShareReportTest, ReportsAndTextsParseBack) {
  ShareReport report;
  report.iteration_ns = 123;
  report.changes = {{5, true, ValueInfo::OfMatrix({3, 4}, Format::kSparse)},
                    {0, false, ValueInfo::OfMatrix({1, 1})}};
  const Result<ShareReport> parsed = ShareReport::Parse(report.ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(*parsed, report);
  ShareReport failed;
  failed.has_failed = true;
  EXPECT_EQ(*ShareReport::Parse(failed.ToText()), failed);
  EXPECT_FALSE(ShareReport::Parse("done well").ok());

  const std::vector<PrintedText> texts = {{7, "a\n"}, {9, ""}, {8, std::string("\0\n", 2)}};
  std::vector<PrintedText> back;
  ASSERT_TRUE(DecodeTexts(EncodeTexts(texts), &back).ok());
  EXPECT_EQ(back, texts);
  EXPECT_FALSE(DecodeTexts(EncodeTexts(texts).substr(0, 20), &back).ok());
  EXPECT_FALSE(DecodeTexts("short", &back).ok());
}

TEST(MergeCellsTest, ChangedCellsAreTakenOutAndPutIn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    Matrix before = *Matrix::Dense(2, 3, type);
    Matrix after = *Matrix::Dense(2, 3, type);
    const auto set = [type](Matrix& matrix, int64_t i, double value) {
      if (type == ElementType::kFloat64) {
        matrix.mutable_data()[i] = value;
      } else {
        matrix.mutable_data<float>()[i] = static_cast<float>(value);
      }
    };
    const double old_cells[] = {1, nan, 0.0, 4, 5, 6}, new_cells[] = {1, nan, -0.0, nan, 5, 0.1};
    for (int64_t i = 0; i < 6; ++i) {
      set(before, i, old_cells[i]);
      set(after, i, new_cells[i]);
    }
    const Result<Matrix> changes = ChangedCells(before, after);
    ASSERT_TRUE(changes.ok());
    EXPECT_EQ(changes->rows(), 3);
    const Result<Matrix> back = WithCells(before, 0, 2, *changes);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(Matrix::SameCells(*back, after));
    EXPECT_TRUE(std::signbit(back->At(0, 2)));
    EXPECT_EQ(before.At(1, 0), 4) << "what others hold stays";
    EXPECT_TRUE(Matrix::SameCells(*WithCells(before, 1, 2, *changes), after.Rows(1, 2)));
  }
  EXPECT_EQ(ChangedCells(*Matrix::Dense(1, 1), *Matrix::Dense(1, 2)).status().code(), StatusCode::kInternal);
  Matrix outside = *Matrix::Dense(1, 2);
  outside.mutable_data()[0] = 1;
  EXPECT_EQ(WithCells(*Matrix::Dense(1, 1), 0, 1, outside).status().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace heddle::engine

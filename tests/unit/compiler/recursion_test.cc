// SPDX-License-Identifier: Apache-2.0
// What is recognised as structural recursion, and what is said of the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/compile.h"
#include "compiler/recursion/class_body.h"
#include "compiler/recursion/recognise.h"

namespace heddle::compiler {
namespace {

std::string Explained(const std::string& script) {
  Diagnostics diagnostics;
  CompileOptions options;
  options.script = "s.dml";
  const Result<Program> program = CompileScript(script, options, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return program.ok() ? ExplainRecursion(*program) : "";
}

std::string Warned(const std::string& script) {
  Diagnostics diagnostics;
  CompileOptions options;
  options.script = "s.dml";
  EXPECT_TRUE(CompileScript(script, options, &diagnostics).ok());
  std::string text;
  for (const Diagnostic* warning : diagnostics.Sorted(Severity::kWarning)) text += warning->message + "\n";
  return text;
}

// A function over a binary tree whose nodes are computed by `body` from l and r.
std::string OverTree(const std::string& body,
                     const std::string& arguments = "T, as.integer(as.scalar(T[n,2])), X") {
  return "f = function(Matrix[Double] T, Integer n, Matrix[Double] X) return (Matrix[Double] h) {\n"
         "  h = X[n,]\n"
         "  if (as.scalar(T[n,1]) > 0) {\n"
         "    l = f(T, as.integer(as.scalar(T[n,1])), X)\n"
         "    r = f(" +
         arguments + ")\n" + body +
         "  }\n}\n"
         "print(sum(f(matrix(0, 3, 2), 1, matrix(1, 3, 2))))\n";
}

TEST(RecogniseTest, ATreeWithChildrenByPositionIsOne) {
  EXPECT_EQ(Explained(OverTree("h = tanh(l + r + h)\n")),
            "s.dml:1: 'f' is a structural recursion\n"
            "  node: n; the same in all calls: T, X\n"
            "  structure: cells of T\n"
            "  decisions: 1; calls of itself: 2; numbers that operators read: 1\n"
            "  results at each node: h\n");
}

TEST(RecogniseTest, DerivativesAreToldInTheWordsOfTheScript) {
  EXPECT_EQ(
      Explained("f = function(Matrix[Double] X, Integer t, Matrix[Double] w) return (Matrix[Double] h) {\n"
                "  if (t == 0) h = 0 * w\n"
                "  else { g = f(X, t - 1, w); h = tanh(g + X[t,] * w) }\n}\n"
                "l = function(Matrix[Double] X, Matrix[Double] w) return (Double s) { s = sum(f(X, 4, w)) }\n"
                "[s, dw] = gradient(\"l\", \"w\", matrix(1, 4, 2), matrix(1, 1, 2))\nprint(sum(dw))\n"),
      "s.dml:1: 'f' is a structural recursion; its derivative runs in batches as well\n"
      "  node: t; the same in all calls: X, w\n"
      "  structure: cells of no matrix\n"
      "  decisions: 1; calls of itself: 1; numbers that operators read: 1\n"
      "  results at each node: h\n");
}

// Of f: a rate, also in numbers made of it; a size, a position and a text are not.
TEST(RecogniseTest, ParametersThatNoSizeDependsOnAreFound) {
  Diagnostics diagnostics;
  CompileOptions options;
  options.script = "s.dml";
  const Result<Program> program = CompileScript(
      "f = function(Matrix[Double] T, Integer n, Matrix[Double] X, Double rate, Integer times, Integer wide,\n"
      "    Integer at, Integer first, Boolean halves) return (Matrix[Double] h, Double s) {\n"
      "  scaled = rate * times + 1\n  h = X[n + first,] * scaled + matrix(0, 1, wide)\n"
      "  s = sum(h[1,at:(at+1)]) * scaled\n  if (halves) h = h / 2\n"
      "  if (as.scalar(T[n,1]) > 0) {\n"
      "    [l, a] = f(T, as.integer(as.scalar(T[n,1])), X, rate, times, wide, at, first, halves)\n"
      "    h = h + l ^ times\n    s = s + a\n  }\n}\n"
      "[h, s] = f(matrix(\"0 1\", 2, 1), 2, matrix(1, 3, 4), 0.5, 2, 4, 1, 1, TRUE)\nprint(sum(h) + s)\n",
      options, &diagnostics);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  for (const auto& [key, function] : program->functions) {
    const Recognition found = Recognise(key, function);
    ASSERT_TRUE(found.is_recognised) << found.reason;
    EXPECT_EQ(found.recursion.free, (Names{"halves", "rate", "times"}));
  }
}

TEST(RecogniseTest, ASequenceIsOne) {
  EXPECT_EQ(Explained("f = function(Matrix[Double] X, Integer t) return (Matrix[Double] h) {\n"
                      "  if (t == 0) h = matrix(0, 1, ncol(X))\n"
                      "  else { g = f(X, t - 1); h = tanh(g + X[t,]) }\n}\n"
                      "print(sum(f(matrix(1, 4, 2), 4)))\n"),
            "s.dml:1: 'f' is a structural recursion\n"
            "  node: t; the same in all calls: X\n"
            "  structure: cells of no matrix\n"
            "  decisions: 1; calls of itself: 1; numbers that operators read: 1\n"
            "  results at each node: h\n");
}

TEST(RecogniseTest, WhoReadsOneOfTwoResultsCallsTheSameFunction) {
  EXPECT_EQ(
      Explained("f = function(Matrix[Double] X, Integer t) return (Matrix[Double] h, Matrix[Double] c) {\n"
                "  h = matrix(0, 1, ncol(X)); c = h\n"
                "  if (t > 0) { [a, b] = f(X, t - 1); h = tanh(a + b); c = b + X[t,] }\n}\n"
                "[h, c] = f(matrix(1, 4, 2), 4)\nprint(sum(h))\n"),
      "s.dml:1: 'f' is a structural recursion\n"
      "  node: t; the same in all calls: X\n"
      "  structure: cells of no matrix\n"
      "  decisions: 1; calls of itself: 1; numbers that operators read: 1\n"
      "  results at each node: h, c\n");
}

TEST(RecogniseTest, FunctionsOfScalarsAloneAreNotSpokenOf) {
  EXPECT_EQ(Warned("f = function(Integer n) return (Integer y) { if (n < 2) y = 1 else y = n * f(n - 1) }\n"
                   "print(f(5))\n"),
            "");
}

TEST(RecogniseTest, WhatSplitsItsDataIsNotSpokenOf) {
  EXPECT_EQ(Warned("f = function(Matrix[Double] X) return (Matrix[Double] Y) {\n"
                   "  Y = X\n"
                   "  if (nrow(X) > 1) { A = f(X[1:1,]); B = f(X[2:nrow(X),]); Y = rbind(A, B) }\n}\n"
                   "print(sum(f(matrix(1, 4, 2))))\n"),
            "");
}

TEST(RecogniseTest, ARowOfTheNodeWhoseColumnOnlyResultsTellIsSpokenOf) {
  EXPECT_EQ(
      Warned("f = function(Matrix[Double] T, Integer n) return (Matrix[Double] h) {\n"
             "  h = T[n,]\n"
             "  if (as.scalar(T[n,1]) > 0) {\n"
             "    k = as.integer(as.scalar(rowIndexMax(T[n,])))\n"
             "    h = h + f(T, as.integer(as.scalar(T[n,k])))\n  }\n}\n"
             "print(sum(f(matrix(0, 3, 2), 1)))\n"),
      "'f' is not compiled as structural recursion: the node that the call at line 5 passes depends on a "
      "tensor result (C2); interpreted\n");
}

TEST(RecogniseTest, ResultsMayBeNumbers) {
  EXPECT_EQ(Explained("f = function(Matrix[Double] T, Integer n) return (Double s, Integer k, Boolean b) {\n"
                      "  s = as.scalar(T[n,2]); k = 1; b = n > 1\n"
                      "  if (as.scalar(T[n,1]) > 0) {\n"
                      "    [t, j, c] = f(T, as.integer(as.scalar(T[n,1])))\n"
                      "    s = s + t; k = j + 1\n  }\n}\n"
                      "[s, k, b] = f(matrix(0, 3, 2), 1)\nprint(s + k)\n"),
            "s.dml:1: 'f' is a structural recursion\n"
            "  node: n; the same in all calls: T\n"
            "  structure: cells of T\n"
            "  decisions: 1; calls of itself: 1; numbers that operators read: 2\n"
            "  results at each node: s, k, b\n");
}

TEST(RecogniseTest, AVariableThatMayHaveNoValueIsAskedFor) {
  Diagnostics diagnostics;
  CompileOptions options;
  options.script = "s.dml";
  const Result<Program> program = CompileScript(
      "f = function(Matrix[Double] T, Integer n) return (Matrix[Double] h) {\n"
      "  h = T[n,]\n"
      "  if (as.scalar(T[n,1]) > 0) { k = as.integer(as.scalar(T[n,1])); l = f(T, k); h = h + l }\n"
      "  h = h * k\n}\n"
      "print(sum(f(matrix(0, 3, 2), 1)))\n",
      options, &diagnostics);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const auto& [key, function] = *program->functions.begin();
  const Recognition recognition = Recognise(key, function);
  ASSERT_TRUE(recognition.is_recognised) << recognition.reason;
  const ops::StructureProgram& structure = recognition.recursion.structure;
  ASSERT_EQ(structure.unset.size(), 1u);
  EXPECT_TRUE(std::any_of(structure.steps.begin(), structure.steps.end(), [&](const auto& step) {
    return step.code == ops::StructureProgram::Code::kNeed && step.a == structure.unset[0];
  }));
}

TEST(RecogniseTest, ASparseMatrixIsNamedWhereItIsRead) {
  Diagnostics diagnostics;
  CompileOptions options;
  options.script = "s.dml";
  const Result<Program> program = CompileScript(
      "f = function(Matrix[Double] T, Integer n, Matrix[Double] S) return (Matrix[Double] h) {\n"
      "  h = S[n,] * 2\n"
      "  if (as.scalar(T[n,1]) > 0) { l = f(T, as.integer(as.scalar(T[n,1])), S); h = h + l }\n}\n"
      "print(sum(f(matrix(0, 3, 2), 1, matrix(0, 3, 2))))\n",
      options, &diagnostics);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const auto& [key, function] = *program->functions.begin();
  const Recognition recognition = Recognise(key, function);
  ASSERT_TRUE(recognition.is_recognised) << recognition.reason;
  ClassContext context;
  context.parameters["T"].info = ValueInfo::OfMatrix({3, 2});
  context.parameters["S"].info = ValueInfo::OfMatrix({3, 2}, Format::kSparse);
  std::string why;
  EXPECT_FALSE(JoinBlocks(recognition.recursion, function, {false}, context, &why).has_value());
  EXPECT_EQ(why, "line 2: 'S' is sparse");
}

TEST(RecogniseTest, OfAFunctionThatIsOnlyDifferentiatedTheDerivativeIsSpokenOf) {
  EXPECT_EQ(
      Warned("f = function(Matrix[Double] X, Integer t, Matrix[Double] w) return (Matrix[Double] h) {\n"
             "  h = X[t,] * w\n"
             "  if (t > 1) { g = f(X, t - 1, w); if (sum(g) > 1) g = g / 2; h = tanh(g + h) }\n}\n"
             "l = function(Matrix[Double] X, Matrix[Double] w) return (Double s) { s = sum(f(X, 4, w)) }\n"
             "[s, dw] = gradient(\"l\", \"w\", matrix(1, 4, 2), matrix(1, 1, 2))\nprint(sum(dw))\n"),
      "the derivative of 'f' is not compiled as structural recursion: the condition at line 3 uses a tensor "
      "result (C3); interpreted\n");
}

// A recursion over a chain, of which `of_model` is read as well, and its derivative by a model.
std::string WithModel(const std::string& of_model, const std::string& passed = "model") {
  return "f = function(Matrix[Double] X, Integer t, List[unknown] model) return (Matrix[Double] h) {\n"
         "  h = X[t,] * as.matrix(model[\"w\"])\n" +
         of_model + "  if (t > 1) { g = f(X, t - 1, " + passed +
         "); h = tanh(g + h) }\n}\n"
         "l = function(Matrix[Double] X, List[unknown] model) return (Double s) {\n"
         "  s = sum(f(X, nrow(X), model))\n}\n"
         "[s, G] = gradient(\"l\", \"model\", matrix(1, 4, 2), list(w=matrix(1, 1, 2), b=0.5))\n"
         "print(sum(as.matrix(G[\"w\"])))\n";
}

TEST(RecogniseTest, DerivativesByAListAreByItsElements) {
  EXPECT_EQ(Warned(WithModel("")), "");
  EXPECT_EQ(Explained(WithModel("  h = h * as.scalar(model[2])\n")),
            "s.dml:1: 'f' is a structural recursion; its derivative runs in batches as well\n"
            "  node: t; the same in all calls: X, as.matrix(model[\"w\"]), as.scalar(model[2])\n"
            "  structure: cells of no matrix\n"
            "  decisions: 1; calls of itself: 1; numbers that operators read: 1\n"
            "  results at each node: h\n");
}

TEST(RecogniseTest, AListOfWhichMoreIsNeededThanCertainElementsStaysOne) {
  const auto warned = [](const std::string& reason) {
    return "the derivative of 'f' is not compiled as structural recursion: " + reason + "; interpreted\n";
  };
  // The length is asked for, the run tells which element, only some calls read it, another list is passed.
  EXPECT_EQ(Warned(WithModel("  h = h * length(model)\n")), warned("line 3 works on a list (C6)"));
  EXPECT_EQ(Warned(WithModel("  h = h * as.scalar(model[ncol(X)])\n")),
            warned("line 3 works on a list (C6)"));
  EXPECT_EQ(Warned(WithModel("  if (ncol(X) > 2) h = h * as.matrix(model[\"gate\"])\n")),
            warned("line 3 works on a list (C6)"));
  EXPECT_EQ(Warned(WithModel("  other = model\n", "other")),
            warned("the call at line 4 passes another 'model' (C1)"));
}

TEST(RecogniseTest, EachConditionIsNamedWithItsLine) {
  const auto warned = [](const std::string& reason) {
    return "'f' is not compiled as structural recursion: " + reason + "; interpreted\n";
  };
  EXPECT_EQ(Warned(OverTree("h = l + r\n", "T, as.integer(as.scalar(T[n,2])), X * 2")),
            warned("the call at line 5 passes another 'X' (C1)"));
  EXPECT_EQ(Warned(OverTree("h = l + r\n", "T, as.integer(sum(X[n,])), X")),
            warned("the node that the call at line 5 passes depends on a tensor result (C2)"));
  EXPECT_EQ(Warned(OverTree("score = sum(l)\nif (score > 1) h = l + r\n")),
            warned("the condition at line 7 uses 'score', a tensor result (C3)"));
  EXPECT_EQ(Warned(OverTree("h = l + r\n", "T, as.integer(as.scalar(l[1,1])), X")),
            warned("what the call at line 5 passes for 'n' depends on the result of another call (C4)"));
  EXPECT_EQ(Warned(OverTree("print(sum(l))\nh = l + r\n")), warned("line 6 acts: print() (C6)"));
  EXPECT_EQ(Warned(OverTree("h = l + r + rand(rows=1, cols=2)\n")),
            warned("line 6 draws or tells the time: rand() (C6)"));
}

}  // namespace
}  // namespace heddle::compiler

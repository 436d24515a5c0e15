// SPDX-License-Identifier: Apache-2.0
// What the compiler does with compress(), and what it puts in front of loops.
#include <gtest/gtest.h>

#include "compiler/explain/explain.h"
#include "compiler/optimize/storage.h"

namespace heddle::compiler {
namespace {

std::string Explained(const std::string& script, std::string_view level, bool is_auto = false) {
  CompileOptions options;
  if (is_auto) options.disabled_passes.insert("plain-storage");
  Diagnostics diagnostics;
  const Result<std::string> text = Explain(script, options, level, &diagnostics);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

constexpr const char* kLarge = "X = rand(rows=200000, cols=10, seed=1)\n";

TEST(ReadThroughStorageTest, OperatorsOfTheBlockReadWhatIsCompressed) {
  const std::string text = Explained(
      "X = rand(rows=9, cols=9)\nv = rand(rows=9, cols=1)\nC = compress(X %*% X)\nprint(sum(C %*% v))\n"
      "for (i in 1:3) print(sum(C * i))",
      "program");
  // The order of the product is that of X %*% X %*% v.
  EXPECT_TRUE(Contains(text, "compress(")) << text;
  const std::string without = Explained(
      "X = rand(rows=9, cols=9)\nv = rand(rows=9, cols=1)\nC = compress(X %*% X)\nprint(sum(C %*% v))",
      "program");
  EXPECT_FALSE(Contains(without, "compress")) << without;
  EXPECT_EQ(CountOf(without, " %*% "), 2u) << without;
  EXPECT_TRUE(Contains(without, "%*% v") || Contains(without, "%*% %2")) << without;
}

TEST(ReadThroughStorageTest, WhatIsStoredTwiceIsStoredOnce) {
  const std::string text = Explained(
      std::string(kLarge) + "C = compress(decompress(compress(X)))\nfor (i in 1:3) print(sum(C * i))",
      "program");
  EXPECT_EQ(CountOf(text, "compress("), 1u) << text;
}

TEST(CompressLoopsTest, WhatALoopReadsIsCompressedBeforeIt) {
  const std::string script =
      std::string(kLarge) +
      "v = rand(rows=10, cols=1)\nfor (i in 1:20) v = v + t(X) %*% (X %*% v)\nprint(sum(v))";
  EXPECT_FALSE(Contains(Explained(script, "program"), "compress"));
  const std::string text = Explained(script, "program", true);
  EXPECT_TRUE(Contains(text, "compress(X, reads=40")) << text;
  EXPECT_EQ(CountOf(text, "compress("), 1u) << text;
}

// Sums of cells, and of functions of them and scalars, look no cell up.
TEST(CompressLoopsTest, ReadsOfDictionariesAreToldApart) {
  const std::string before =
      std::string(kLarge) + "v = rand(rows=10, cols=1)\nw = rand(rows=nrow(X), cols=1)\n";
  const auto of = [&](const std::string& rounds) {
    return Explained(before + "s = 0\nfor (i in 1:20) s = s + " + rounds + "\nprint(s)", "program", true);
  };
  EXPECT_TRUE(Contains(of("sum((X > i) * 2)"), "compress(X, of_tuples=20.0, reads=20.0"));
  EXPECT_TRUE(Contains(of("max(X / i) + max(X %*% (v + i))"), "compress(X, of_tuples=20.0, reads=40.0"));
  for (const std::string rounds : {"sum((X > i) * w)", "sum(rowSums(X * i)^2)", "var(X * i)"}) {
    EXPECT_TRUE(Contains(of(rounds), "compress(X, reads=20.0")) << of(rounds);
    EXPECT_FALSE(Contains(of(rounds), "of_tuples")) << of(rounds);
  }
}

TEST(CompressLoopsTest, WhatIsChangedSmallOrNeededWholeIsNot) {
  const char* const loops[] = {
      "for (i in 1:20) X[i, 1] = i\nprint(sum(X))",                           // changed
      "for (i in 1:20) print(sum(svd_of(X)))\n",                              // decoded as a whole
      "Y = X[1:100, ]\nfor (i in 1:20) print(sum(Y * i))",                    // small
      "for (i in 1:20) print(nrow(X) * i)\nprint(sum(X))",                    // its size alone
      "for (i in 1:20) { l = list(X, i)\nprint(length(l)) }\nprint(sum(X))",  // in a list
  };
  for (const char* loop : loops) {
    const std::string script =
        "svd_of = function(Matrix[Double] A) return (Matrix[Double] S) { S = rev(A) }\n" +
        std::string(kLarge) + loop;
    EXPECT_FALSE(Contains(Explained(script, "program", true), "compress(X")) << loop;
  }
}

TEST(CompressWhereMadeTest, EncodersOfWhatCompressReadsMakeGroups) {
  const std::string encode =
      "F = as.frame(rand(rows=200000, cols=10, seed=1))\n[X, M] = transformencode(target=F, spec=\"{ids: true, recode: [1]}\")\n";
  const std::string loop =
      "v = rand(rows=10, cols=1)\nfor (i in 1:20) v = v + t(X) %*% (X %*% v)\nprint(sum(v))\n";
  EXPECT_FALSE(Contains(Explained(encode + loop, "program"), "compressed=")) << encode;
  // In the same block, in one behind it, and by the pass compress-loops.
  EXPECT_TRUE(Contains(Explained(encode + "X = compress(X)\n" + loop, "program"), "compressed=TRUE"));
  const std::string between = "if (nrow(X) > 3) print(M[1, 1])\n";
  EXPECT_TRUE(
      Contains(Explained(encode + between + "X = compress(X)\n" + loop, "program"), "compressed=TRUE"));
  const std::string by_loops = Explained(encode + loop, "program", true);
  EXPECT_TRUE(Contains(by_loops, "compressed=TRUE")) << by_loops;
  EXPECT_TRUE(Contains(by_loops, "reads=40")) << by_loops;
  EXPECT_TRUE(
      Contains(Explained(encode +
                             "Y = transformapply(target=F, meta=M, spec=\"{ids: true, recode: [1]}\")\n"
                             "X = compress(Y)\n" +
                             loop,
                         "program"),
               "compressed=TRUE"));
  // What has changed since is another matrix.
  const std::string changed = encode + "if (nrow(X) > 3) X = X + 1\nX = compress(X)\n" + loop;
  EXPECT_FALSE(Contains(Explained(changed, "program"), "compressed=TRUE")) << Explained(changed, "program");
  EXPECT_FALSE(Contains(Explained(encode + "X = compress(X * 2)\n" + loop, "program"), "compressed=TRUE"));
}

TEST(CompressLoopsTest, TheFirstThatIsReadIsCompressedFirst) {
  for (const auto& [first, second] : {std::pair("X", "A"), std::pair("A", "X")}) {
    const std::string text =
        Explained(std::string(kLarge) + "A = X * 2\nv = rand(rows=10, cols=1)\nfor (i in 1:20) { v = v + t(" +
                      first + ") %*% (" + first + " %*% v)\nprint(sum(v))\nv = v + t(" + second + ") %*% (" +
                      second + " %*% v)\n}\nprint(sum(v))",
                  "program", true);
    const size_t place = text.find("compress(" + std::string(first));
    EXPECT_LT(place, text.find("compress(" + std::string(second))) << text;
    EXPECT_NE(place, std::string::npos) << text;
  }
}

TEST(CompressLoopsTest, FunctionsThatALoopCallsAreFollowed) {
  const std::string text = Explained(
      "f = function(Matrix[Double] A, Double k) return (Double s) { s = 0\nwhile (s < k) s = s + sum(A * k) + 1\n}\n" +
          std::string(kLarge) +
          "t = 0\nfor (i in 1:4) t = t + f(X, i)\nfor (i in 1:4) t = t + f(X, i * 2)\nprint(t)",
      "program", true);
  EXPECT_GE(CountOf(text, "compress(X, of_tuples=4.0, reads=4.0"), 2u) << text;
}

TEST(ExplainCompressionTest, TellsGroupsReadersAndReasons) {
  const std::string text = Explained(
      "X = floor(rand(rows=100000, cols=10, min=0, max=9, seed=1))\nC = compress(X)\nS = compress(X[1:5, ])\n"
      "D = compress(X * 2)\nprint(sum(D))\nY = rand(rows=200000, cols=10)\nv = rand(rows=10, cols=1, seed=2)\n"
      "for (i in 1:20) v = v + t(C) %*% (C %*% v) / 1e9 + sum(Y * i) + sum(S * i)\nprint(sum(v))",
      "compression");
  EXPECT_TRUE(Contains(text, "compress() in line 2: C, 100000x10, 8.0 MB\n")) << text;
  EXPECT_TRUE(
      Contains(text, "  %*% in line 8 reads it 20 times, and reads codes and dictionaries where it can\n"))
      << text;
  EXPECT_TRUE(Contains(
      text, "  t() %*% in line 8 reads it 20 times, and reads codes and dictionaries where it can\n"))
      << text;
  EXPECT_TRUE(Contains(text, "  compressed: 8.0 MB to ")) << text;
  EXPECT_TRUE(Contains(text, "times smaller): 10 columns in ")) << text;
  EXPECT_TRUE(Contains(text, "  not compressed: it fits in the cache of a core\n")) << text;
  EXPECT_TRUE(Contains(
      text,
      "compress() in line 4: no effect, as no loop, branch, function or later block reads the result\n"
      "  the statements next to it read the cells, which are there anyway: compressing takes as long "
      "as 25 reads of them\n"
      "  it pays in front of a loop that reads the result in many rounds\n"))
      << text;
  EXPECT_TRUE(Contains(text, "loop in line 8: Y, 200000x10, 16.0 MB\n")) << text;
  EXPECT_TRUE(
      Contains(text,
               "  not compressed: nothing asks for it; Y = compress(Y) in front of the loop does, and "
               "--compress auto where it pays\n"))
      << text;
}

TEST(ExplainCompressionTest, SaysWhatOnlyARunTells) {
  const std::string text = Explained(
      "X = rand(rows=200000, cols=10)\nn = as.integer(sum(X > 0.5))\nC = compress(X[1:n, ])\n"
      "for (i in 1:20) print(sum(C * i))",
      "compression");
  EXPECT_TRUE(
      Contains(text, "  what it takes then depends on cells that only a run has: heddle run -stats tells\n"))
      << text;
  EXPECT_EQ(
      Explained("print(1)", "compression"),
      "Nothing is compressed: the script has no compress(), and no loop that reads a matrix which it does "
      "not change.\n");
}

// Names of the compiler are not shown: of functions that are put in place of their calls, and of what is
// computed in front of loops.
TEST(ExplainCompressionTest, NamesAreThoseOfTheScript) {
  const std::string text = Explained(
      "f = function(Matrix[Double] A) return (Double s) { s = 0\nfor (j in 1:5) s = s + sum(A * j)\n}\n" +
          std::string(kLarge) +
          "t = f(X)\nfor (i in 1:20) { t = t + sum(solve(t(X) %*% X, t(X) %*% X)) }\nprint(t)",
      "compression");
  EXPECT_FALSE(Contains(text, "%in") || Contains(text, "%hoist")) << text;
  EXPECT_TRUE(Contains(text, "loop in line 2: A, 200000x10, 16.0 MB\n")) << text;
  EXPECT_TRUE(Contains(text, "loop in line 6: an intermediate result, 10x10, 0.8 KB\n")) << text;
  EXPECT_TRUE(
      Contains(text, "  not compressed: solve in line 6 needs all of it, and would decode it each time\n"))
      << text;
}

TEST(ExplainCompressionTest, AFunctionThatCallsItselfStoresCells) {
  const std::string text = Explained(
      "f = function(Matrix[Double] A, Double n) return (Double s) {\n"
      "  C = compress(A)\n  s = sum(C)\n  if (n > 0) s = s + f(C, n - 1)\n}\n" +
          std::string(kLarge) + "print(f(X, 3))",
      "compression");
  EXPECT_TRUE(
      Contains(text,
               "compress() in line 2: no effect, as f() calls itself\n"
               "  what such a function holds is stored by its cells; compress it before the first call\n"))
      << text;
}

// Floats take four bytes a cell, and are planned as floats.
TEST(ExplainCompressionTest, CountsBytesOfTheElementType) {
  CompileOptions options;
  Diagnostics diagnostics;
  const PlanningOptions planning = {.element_type = ElementType::kFloat32};
  const Result<std::string> text = Explain(
      "X = floor(rand(rows=200000, cols=10, min=0, max=9, seed=1))\nC = compress(X)\n"
      "for (i in 1:20) print(sum(C * i))",
      options, "compression", &diagnostics, planning);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_TRUE(Contains(*text, "compress() in line 2: C, 200000x10, 8.0 MB\n")) << *text;
  EXPECT_TRUE(Contains(*text, "  compressed: 8.0 MB to ")) << *text;
}

// What --compress auto puts into a function changes none of its parameters.
TEST(CompressLoopsTest, AFunctionThatCompressesItsParameterIsFollowed) {
  const std::string text = Explained(
      "f = function(Matrix[Double] A, Double k) return (Double s) { s = 0\nwhile (s < k) s = s + sum(A * k) + 1\n}\n" +
          std::string(kLarge) + "t = 0\nfor (i in 1:4) t = t + f(X, i)\nprint(t)",
      "compression", true);
  EXPECT_FALSE(Contains(text, "f() in line")) << text;
  EXPECT_TRUE(Contains(text, "--compress auto, in front of the loop in line 6: X, ")) << text;
}

}  // namespace
}  // namespace heddle::compiler

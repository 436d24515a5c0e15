// SPDX-License-Identifier: Apache-2.0
// What a user sees of fusion: explain's levels, -stats, and what happens without machine code.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;

constexpr const char* kScript =
    "X = rand(rows=50000, cols=10, seed=1)\n"
    "v = rand(rows=10, cols=1, seed=2)\n"
    "print(sum(X * exp(X)))\n"
    "print(sum(t(X) %*% (X %*% v)))\n";

Finished Heddle(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  return testing_support::RunProcess(words, HEDDLE_SOURCE_DIR);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FusionTest, ExplainShowsCandidatesAndChoice) {
  const Finished finished = Heddle({"explain", "--level", "fusion", "-e", kScript});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  EXPECT_TRUE(Contains(finished.output, "memo")) << finished.output;
  EXPECT_TRUE(Contains(finished.output, "cell driver=0")) << finished.output;
  EXPECT_TRUE(Contains(finished.output, "row driver=0")) << finished.output;
  EXPECT_FALSE(Contains(finished.output, "known only when it runs")) << finished.output;
}

TEST(FusionTest, ExplainShowsCostsAndCode) {
  const Finished cost = Heddle({"explain", "--level", "cost", "-e", kScript});
  ASSERT_EQ(cost.code, 0) << cost.errors;
  EXPECT_TRUE(Contains(cost.output, "plans costed")) << cost.output;
  const Finished code = Heddle({"explain", "--level", "codegen", "-e", kScript});
  ASSERT_EQ(code.code, 0) << code.errors;
  EXPECT_TRUE(Contains(code.output, "define void @heddle_region")) << code.output;
}

TEST(FusionTest, ExplainFollowsPrecisionAndMode) {
  const Finished code = Heddle({"explain", "--level", "codegen", "--precision", "single", "-e", kScript});
  ASSERT_EQ(code.code, 0) << code.errors;
  EXPECT_TRUE(Contains(code.output, "x float>")) << code.output;
  EXPECT_FALSE(Contains(Heddle({"explain", "--level", "codegen", "-e", kScript}).output, "x float>"));
  const Finished off = Heddle({"explain", "--level", "codegen", "--fusion", "off", "-e", kScript});
  ASSERT_EQ(off.code, 0) << off.errors;
  EXPECT_FALSE(Contains(off.output, "define void")) << off.output;
  const Finished typo = Heddle({"explain", "--precision", "half", "--level", "fusion", "-e", kScript});
  EXPECT_EQ(typo.code, 2) << typo.errors;
}

TEST(FusionTest, AMisspeltLevelIsCorrected) {
  const Finished typo = Heddle({"explain", "--level", "fuson", "-e", kScript});
  EXPECT_EQ(typo.code, 2) << typo.errors;
  EXPECT_TRUE(Contains(typo.errors, "did you mean 'fusion'?")) << typo.errors;
}

// Why no rule and no operator is there for them: fused over the CSR X, they compute its entries only.
TEST(FusionTest, FunctionsOfEntriesAreDrivenByTheSparseMatrix) {
  for (const char* cells : {"(X != 0) * log(X)", "X - 3 * (X != 0)", "X * (1 - X)"}) {
    const std::string script = std::string("X = rand(rows=20000, cols=100, sparsity=0.01, seed=1)\n") +
                               "print(sum((" + cells + ") ^ 2))\n";
    const Finished explained = Heddle({"explain", "--level", "fusion", "-e", script});
    ASSERT_EQ(explained.code, 0) << explained.errors;
    const size_t fused = explained.output.find("cell driver=0");
    ASSERT_NE(fused, std::string::npos) << explained.output;
    EXPECT_NE(explained.output.find("name=\"0\" : matrix double 20000x100 sparse", fused), std::string::npos)
        << explained.output;
    const Finished on = Heddle({"run", "-e", script}), off = Heddle({"run", "--fusion", "off", "-e", script});
    ASSERT_EQ(on.code, 0) << on.errors;
    EXPECT_EQ(on.output, off.output);
  }
}

TEST(FusionTest, SizesOfFilesAreKnownToExplain) {
  const Finished finished = Heddle({"explain", "--level", "fusion", "-e",
                                    "X = read(\"examples/data/breast_cancer.csv\")\nprint(sum(X * X + X))"});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  EXPECT_TRUE(Contains(finished.output, "cell driver=0")) << finished.output;
}

// Seven granules of rows for eight workers: one of them runs the same operators on nothing.
TEST(FusionTest, WorkersWithoutRowsRunThem) {
  constexpr const char* kLayer =
      "X = rand(rows=390, cols=100, seed=1)\n"
      "W = rand(rows=100, cols=64, seed=2)\n"
      "H = sigmoid(X %*% W + 1)\n"
      "print(sum(H * 2))\n"
      "print(sum(t(X) %*% (H - 0.5)))\n";
  const Finished one = Heddle({"run", "--fusion", "all", "-e", kLayer});
  ASSERT_EQ(one.code, 0) << one.errors;
  for (const char* mode : {"all", "cost", "off"}) {
    const Finished many = Heddle({"sim", "--workers", "8", "--threads", "1", "--min-distributed-bytes", "0", "--fusion", mode, "-e", kLayer});
    ASSERT_EQ(many.code, 0) << mode << ": " << many.errors;
    EXPECT_EQ(many.output, one.output) << mode;
  }
}

TEST(FusionTest, StatisticsNameEveryFusedOperator) {
  const Finished finished = Heddle({"run", "-stats", "--fusion-strict", "-e", kScript});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, " ms chose fused operators)")) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, "cell sum ")) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, "row t%*% ")) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, " 0 interpreted for want of code")) << finished.errors;
  const Finished off = Heddle({"run", "-stats", "--fusion", "off", "-e", kScript});
  EXPECT_FALSE(Contains(off.errors, "Fused operator")) << off.errors;
  EXPECT_EQ(off.output, finished.output);
}

// A copy of the binary without the module beside it.
TEST(FusionTest, WithoutMachineCodeOperatorsAreInterpretedWithOneWarning) {
  char name[] = "/tmp/heddle-bare-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::filesystem::path folder = std::filesystem::path(name) / "bin";  // Its parent is looked into too.
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(HEDDLE_BINARY_DIR "/heddle", folder / "heddle");
  const std::string bare = (folder / "heddle").string();
  const Finished with = Heddle({"run", "-e", kScript});
  const Finished without = testing_support::RunProcess({bare, "run", "-e", kScript}, folder.string());
  EXPECT_EQ(without.code, 0) << without.errors;
  EXPECT_EQ(without.output, with.output);
  const size_t warning = without.errors.find("without machine code");
  ASSERT_NE(warning, std::string::npos) << without.errors;
  EXPECT_EQ(without.errors.find("without machine code", warning + 1), std::string::npos) << without.errors;
  const Finished strict =
      testing_support::RunProcess({bare, "run", "--fusion-strict", "-e", kScript}, folder.string());
  EXPECT_EQ(strict.code, 1) << strict.errors;
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace heddle

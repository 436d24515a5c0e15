// SPDX-License-Identifier: Apache-2.0
// What a user sees of fusion: explain's levels, -stats, and what happens without machine code.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/linked_project.h"

namespace heddle {
namespace {

using testing_support::Finished;

constexpr const char* kScript =
    "X = rand(rows=50000, cols=10, seed=1)\n"
    "v = rand(rows=10, cols=1, seed=2)\n"
    "Y = rand(rows=40000, cols=10, seed=3)\n"
    "print(sum(Y * exp(Y)))\n"
    "print(sum(t(X) %*% (X %*% v)))\n";

Finished Heddle(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  return testing_support::RunProcess(words, testing_support::LinkedProject().path());
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

// What is explained is what runs: the options of sim with their names and limits decide.
TEST(FusionTest, ExplainTakesTheOptionsThatPlansDependOn) {
  constexpr const char* kShared = "X = rand(rows=20000, cols=100, seed=1)\nprint(sum(exp(X)) + sum(X * X))";
  const auto cost = [&](std::vector<std::string> options) {
    std::vector<std::string> words = {"explain", "--level", "cost", "--threads", "1", "-e", kShared};
    words.insert(words.end(), options.begin(), options.end());
    const Finished finished = Heddle(words);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished.output;
  };
  const std::string alone = cost({});
  EXPECT_EQ(cost({"--workers", "1"}), alone);
  const std::string spread = cost({"--workers", "4"});
  EXPECT_NE(spread, alone);
  EXPECT_EQ(cost({"--workers", "4", "--min-distributed-bytes", "1G"}), alone);
  EXPECT_NE(cost({"--memory", "1M"}), alone);
  EXPECT_EQ(Heddle({"explain", "--level", "cost", "--workers", "257", "-e", kShared}).code, 2);
  const Finished zmm = Heddle({"explain", "--level", "codegen", "--cpu", "avx2", "-e", kShared});
  EXPECT_EQ(zmm.code, 0) << zmm.errors;
  EXPECT_FALSE(Contains(zmm.output, "<8 x double>")) << zmm.output;
  EXPECT_EQ(Heddle({"explain", "--level", "codegen", "--cpu", "sse", "-e", kShared}).code, 2);
}

TEST(FusionTest, ExplainListsTheCheapestPlans) {
  const Finished cost = Heddle(
      {"explain", "--level", "cost", "-e",
       "X = rand(rows=20000, cols=100, seed=1)\nY = exp(X)\nprint(sum(Y * 2) + sum(Y %*% t(Y)))\nprint(sum(Y))"});
  ASSERT_EQ(cost.code, 0) << cost.errors;
  EXPECT_TRUE(Contains(cost.output, "the cheapest plans costed, and what they materialise\n")) << cost.output;
  EXPECT_TRUE(Contains(cost.output, " ms: nothing\n")) << cost.output;
}

TEST(FusionTest, ExplainCountsOnKnownSparsity) {
  const auto explain = [](const std::string& script) {
    const Finished finished =
        Heddle({"explain", "--level", "cost", "-e", script + "\nif (sum(X) > 3) { print(sum(X * exp(X))) }"});
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished.output;
  };
  const std::string drawn =
      explain("X = rand(rows=1000, cols=100, sparsity=0.02, seed=1)\nprint(sum(X * 2 * X))");
  EXPECT_TRUE(Contains(drawn, "sparsity of rand in line 1 known: 0.02\n")) << drawn;
  EXPECT_TRUE(Contains(drawn, "sparsity of X known: 0.02\n")) << drawn;
  const std::string computed =
      explain("X = rand(rows=1000, cols=100, sparsity=0.02, seed=1)\nX = X * 2\nprint(sum(X))");
  EXPECT_TRUE(Contains(computed, "sparsity of X not known, guessed as 0.1\n")) << computed;
  char name[] = "/tmp/heddle-explain-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string path = std::string(name) + "/x.mtx";
  std::ofstream(path) << "%%MatrixMarket matrix coordinate real general\n100 50 2\n3 4 1.5\n70 9 2\n";
  const std::string read = explain("X = read(\"" + path + "\")\nprint(sum(X))");
  EXPECT_TRUE(Contains(read, "sparsity of X known: 0.0004\n")) << read;
  std::filesystem::remove_all(name);
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
    const Finished many = Heddle({"sim", "--workers", "8", "--threads", "1", "--min-distributed-bytes", "0",
                                  "--fusion", mode, "-e", kLayer});
    ASSERT_EQ(many.code, 0) << mode << ": " << many.errors;
    EXPECT_EQ(many.output, one.output) << mode;
  }
}

TEST(FusionTest, StatisticsNameEveryFusedOperator) {
  const Finished finished = Heddle({"run", "-stats", "--fusion-strict", "-e", kScript});
  ASSERT_EQ(finished.code, 0) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, " ms chose fused operators, ")) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, "cell sum -e:4:7 ")) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, "row t%*% -e:5:16 ")) << finished.errors;
  EXPECT_TRUE(Contains(finished.errors, " 0 interpreted for want of code")) << finished.errors;
  const Finished off = Heddle({"run", "-stats", "--fusion", "off", "-e", kScript});
  EXPECT_FALSE(Contains(off.errors, "Fused operator")) << off.errors;
  EXPECT_EQ(off.output, finished.output);
}

TEST(FusionTest, StatisticsCountFusedOperatorsOfAllWorkers) {
  const Finished sim =
      Heddle({"sim", "--workers", "2", "--threads", "1", "--min-distributed-bytes", "0", "-stats", "-e",
              "X = rand(rows=2000, cols=100, seed=1)\nprint(sum(X * X + X))"});
  ASSERT_EQ(sim.code, 0) << sim.errors;
  EXPECT_TRUE(Contains(sim.errors, "Of 2 workers: calls and MB of all")) << sim.errors;
  // One call on each worker.
  const size_t at = sim.errors.find("cell sum -e:2:7 ");
  ASSERT_NE(at, std::string::npos) << sim.errors;
  EXPECT_EQ(std::atoi(sim.errors.c_str() + at + 16), 2) << sim.errors;
}

// Choices costed in a whole run, all plans of a script together, stay few: twenty microseconds each would be
// 20 ms.
TEST(FusionTest, EveryExampleCostsFewChoices) {
  for (const char* name : {"kmeans", "l2svm", "linreg_cg", "logreg", "pagerank"}) {
    const Finished run =
        Heddle({"run", "--threads", "1", "-stats", "--json", "examples/" + std::string(name) + ".dml",
                "-nvargs", "X=examples/data/breast_cancer.csv"});
    ASSERT_EQ(run.code, 0) << run.errors;
    const nlohmann::json statistics =
        nlohmann::json::parse(run.errors.substr(0, run.errors.find('\n')), nullptr, false);
    ASSERT_TRUE(statistics.is_object()) << run.errors;
    EXPECT_GT(statistics.value("fusion_costed", 0), 0) << name;
    EXPECT_LE(statistics.value("fusion_costed", 0), 1000) << name;
  }
}

// A copy of the binary without the module beside it. What little data need is interpreted anyhow, without a
// word.
TEST(FusionTest, WithoutMachineCodeOperatorsAreInterpretedWithOneWarning) {
  char name[] = "/tmp/heddle-bare-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::filesystem::path folder = std::filesystem::path(name) / "bin";  // Its parent is looked into too.
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(HEDDLE_BINARY_DIR "/heddle", folder / "heddle");
  const std::string bare = (folder / "heddle").string();
  const char* const kLarge = "X = rand(rows=3000, cols=1000, seed=1)\nprint(sum(exp(X) * log(X + 1)))";
  const Finished with = Heddle({"run", "-e", kLarge});
  const Finished without = testing_support::RunProcess({bare, "run", "-e", kLarge}, folder.string());
  EXPECT_EQ(without.code, 0) << without.errors;
  EXPECT_EQ(without.output, with.output);
  const size_t warning = without.errors.find("without machine code");
  ASSERT_NE(warning, std::string::npos) << without.errors;
  EXPECT_EQ(without.errors.find("without machine code", warning + 1), std::string::npos) << without.errors;
  const Finished small = testing_support::RunProcess({bare, "run", "-e", kScript}, folder.string());
  EXPECT_EQ(small.code, 0) << small.errors;
  EXPECT_EQ(small.errors, "");
  const Finished strict =
      testing_support::RunProcess({bare, "run", "--fusion-strict", "-e", kScript}, folder.string());
  EXPECT_EQ(strict.code, 1) << strict.errors;
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace heddle

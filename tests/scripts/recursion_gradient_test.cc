// SPDX-License-Identifier: Apache-2.0
// Gradients through structural recursions (docs/gradient.md): the same bytes however they run as batches, the
// interpreter's to rounding, and what the script itself compares with difference quotients.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/script_case.h"

namespace heddle {
namespace {

using testing_support::Finished;

const char* const kScript = HEDDLE_SOURCE_DIR "/tests/scripts/data/recursion_gradient.dml";

// `arguments` stand behind the script.
std::string OutputOf(const std::string& options, const std::string& script = kScript,
                     const std::string& arguments = "") {
  std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
  for (const std::string& word : testing_support::SplitWords(options)) words.push_back(word);
  words.push_back(script);
  for (const std::string& word : testing_support::SplitWords(arguments)) words.push_back(word);
  const testing_support::TemporaryFolder folder;
  const Finished finished = testing_support::RunProcess(words, folder.path());
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(finished.errors.find("the derivative of"), std::string::npos) << finished.errors;
  return finished.output;
}

// What stands between blanks and ends of lines.
std::vector<std::string> PartsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Numbers must agree to `tolerance`, of those above one relative; all else to the letter.
void ExpectClose(const std::string& a, const std::string& b, double tolerance) {
  const std::vector<std::string> x = PartsOf(a), y = PartsOf(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    char *end_x = nullptr, *end_y = nullptr;
    const double p = std::strtod(x[i].c_str(), &end_x), q = std::strtod(y[i].c_str(), &end_y);
    if (*end_x != 0 || *end_y != 0)
      ASSERT_EQ(x[i], y[i]);
    else
      ASSERT_NEAR(p, q, tolerance * std::max(1.0, std::fabs(p))) << i;
  }
}

TEST(RecursionGradient, AgreesWithDifferenceQuotientsAndTheInterpreter) {
  const std::string batched = OutputOf("run --threads 1");
  EXPECT_EQ(batched.find("FALSE"), std::string::npos) << batched;
  // Sums over nodes have another order (docs/numerics.md).
  ExpectClose(batched, OutputOf("run --disable-pass recursion"), 1e-12);
}

// From PyTorch 2 in double precision: the same two models written as recursive Python functions, the loss and
// then, of each gradient, sum() and (x ** 2).sum().
TEST(RecursionGradient, AgreesWithPyTorch) {
  const double kTorch[] = {
      6.459680737507247,   3.136594285272086,  10.277813400555731,     3.4657686984711287, 11.867516479132842,
      -0.5063934716650458, 3.7249785779185576, -9.992007221626409e-16, 5.056126387733686,  -11.07884293830033,
      2.7161397486716905,  4.572299956159474,  -1.9151739353440584,    14.90099998084018,  7.194362083600449,
      14.548670219385137,  15.964253051824764, 28.027707049403286,     6.660772618200189,  99.06768673846906,
      -6.244409737949976,  19.240550828596202};
  const std::vector<std::string> words =
      PartsOf(OutputOf("run", HEDDLE_SOURCE_DIR "/tests/scripts/data/recursion_torch.dml"));
  ASSERT_EQ(words.size(), std::size(kTorch));
  for (size_t i = 0; i < words.size(); ++i)
    EXPECT_NEAR(std::atof(words[i].c_str()), kTorch[i], 1e-11 * std::max(1.0, std::fabs(kTorch[i]))) << i;
}

TEST(RecursionGradient, HasTheSameBytesHoweverItRuns) {
  const std::string first = OutputOf("run --threads 1");
  for (const char* options : {"run --threads 2 --fusion off", "run --threads 2 --fusion all --cpu avx2",
                              "sim --workers 2 --threads 1 --min-distributed-bytes 0",
                              "sim --workers 3 --threads 2 --min-distributed-bytes 0"}) {
    SCOPED_TRACE(options);
    EXPECT_EQ(OutputOf(options), first);
  }
}

// Forests of one group of roots and of several (ops/recursion/structure/root_groups.h), which threads and
// workers take a group each; trees of different groups share nodes.
TEST(RecursionGradient, HasTheSameBytesInGroups) {
  const std::string script = HEDDLE_SOURCE_DIR "/tests/scripts/data/recursion_groups.dml";
  for (const std::string precision : {"double", "single"}) {
    const std::string first = OutputOf("run --threads 1 --precision " + precision, script);
    for (const std::string options :
         {"run --threads 2 --fusion off", "run --threads 3 --fusion no-redundancy --cpu avx2",
          "sim --workers 2 --threads 1", "sim --workers 3 --threads 2 --min-distributed-bytes 0"}) {
      SCOPED_TRACE(precision + " " + options);
      EXPECT_EQ(OutputOf(options + " --precision " + precision, script), first);
    }
    ExpectClose(first, OutputOf("run --disable-pass recursion --precision " + precision, script),
                precision == "double" ? 1e-12 : 1e-5);
  }
}

// Numbers of nodes that hold what is differentiated by, calls without a derivative, functions with branches.
TEST(RecursionGradient, RunsInBatchesWhateverNodesDo) {
  const std::string path = HEDDLE_SOURCE_DIR "/tests/scripts/cases/gradient_recursions";
  EXPECT_EQ(OutputOf("run", path + ".dml"), testing_support::ReadText(path + ".expected"));
}

// A chain of so many nodes is as deep; an eighth of the memory does not hold what its nodes could keep, so
// that it is made again: -stats tells.
TEST(RecursionGradient, HasTheSameBytesKeptOrMadeAgain) {
  const auto run = [](const std::string& memory) {
    const testing_support::TemporaryFolder folder;
    Finished finished = testing_support::RunProcess(
        {HEDDLE_BINARY_DIR "/heddle", "run", "-stats", "--memory", memory,
         HEDDLE_SOURCE_DIR "/tests/scripts/data/recursion_gradient_sizes.dml", "-nvargs", "nodes=100000"},
        folder.path());
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished;
  };
  const Finished kept = run("4G"), again = run("400M");
  EXPECT_EQ(kept.output.find("FALSE"), std::string::npos) << kept.output;
  EXPECT_EQ(again.output, kept.output);
  const std::string made_again = "Recursion gradient of lstm_at, forth, saves nothing, for want of memory, ";
  EXPECT_EQ(kept.errors.find(made_again), std::string::npos) << kept.errors;
  EXPECT_NE(kept.errors.find("Recursion gradient of lstm_at, forth, saves 640 bytes a node, nodes with 1 "),
            std::string::npos)
      << kept.errors;
  EXPECT_NE(again.errors.find(made_again), std::string::npos) << again.errors;
}

}  // namespace
}  // namespace heddle

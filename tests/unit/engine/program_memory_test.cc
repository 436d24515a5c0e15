// SPDX-License-Identifier: Apache-2.0
// What `explain --level memory` says, in whole: cases are tests/golden/memory/*.case, a script and sections
//
//     ---- memory=1M workers=1
//     expected text
//
// UPDATE_GOLDEN=1 writes what it says now. And that what plans say is what runs keep to.
#include "engine/blocks/program_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/explain/explain.h"
#include "core/memory/memory_budget.h"
#include "engine/control/local_run.h"
#include "engine/engine.h"
#include "ops/base/machine_constants.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kSection = "---- ";

struct Case {
  std::string script;
  std::vector<std::pair<std::string, std::string>> sections;  // Header without the sign, text.
};

Case ReadCase(const std::filesystem::path& path) {
  Case result;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kSection))
      result.sections.emplace_back(line.substr(kSection.size()), "");
    else
      (result.sections.empty() ? result.script : result.sections.back().second) += line + '\n';
  }
  return result;
}

SessionOptions OptionsOf(const std::string& header) {
  SessionOptions options;
  std::istringstream words(header);
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find('='));
    const std::string value = word.substr(word.find('=') + 1);
    if (name == "memory") options.memory_bytes = std::stoll(value) << 20;
    if (name == "workers") options.ranks = std::stoi(value);
    if (name == "split") options.min_distributed_bytes = std::stoll(value);
    if (name == "panels") options.panel_bytes = std::stoll(value) << 10;
    if (name == "fusion") options.fusion = value;
  }
  options.constants = ops::BuiltInConstants(1);
  return options;
}

std::string Produce(const std::string& script, const SessionOptions& options) {
  compiler::Diagnostics diagnostics;
  compiler::CompileOptions compile;
  compile.script = "test.dml";
  const Result<std::string> text = compiler::Explain(
      script, compile, "memory", &diagnostics,
      {.memory_of = [&](const Program& program) { return ExplainMemory(program, options, nullptr); }});
  return text.ok() ? *text : text.status().ToString() + "\n";
}

class MemoryGoldenTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(MemoryGoldenTest, ExplainsAsWritten) {
  const Case golden = ReadCase(GetParam());
  ASSERT_FALSE(golden.sections.empty()) << "no line begins with " << kSection;
  std::string rewritten = golden.script;
  for (const auto& [header, expected] : golden.sections) {
    const std::string text = Produce(golden.script, OptionsOf(header));
    rewritten += std::string(kSection) + header + "\n" + text;
    if (std::getenv("UPDATE_GOLDEN") != nullptr) continue;
    EXPECT_EQ(text, expected) << header;
  }
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(GetParam()) << rewritten;
}

std::vector<std::filesystem::path> AllCases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/golden/memory"))
    if (entry.path().extension() == ".case") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Golden, MemoryGoldenTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.stem().string(); });

// The number behind "peak: " of the last line, in bytes.
double PeakOf(const std::string& text) {
  const size_t at = text.rfind("peak: ");
  std::istringstream words(text.substr(at + 6));
  double amount = 0;
  std::string unit;
  words >> amount >> unit;
  return amount * (unit.starts_with("GB")   ? 1e9
                   : unit.starts_with("MB") ? 1e6
                   : unit.starts_with("KB") ? 1e3
                                            : 1);
}

// What is said before a script runs is what its plans say, and what it takes is no more.
TEST(SaidMemoryTest, WhatIsSaidBeforeIsWhatPlansSayAndMoreThanWhatIsTaken) {
  const char* const kScripts[] = {
      "X = rand(rows=200000, cols=20, seed=1)\nY = X * 2 + 1\nprint(sum(Y))\nZ = t(X) %*% Y\nprint(sum(Z))\n",
      "f = function(matrix[double] A) return (matrix[double] B) {\n  B = A - colMeans(A)\n}\n"
      "X = rand(rows=200000, cols=20, seed=1)\nY = f(X)\nprint(sum(Y) + sum(X))\n",
      // A variable that the last plan reads whole beside panels.
      "U = rand(rows=30000, cols=20, seed=1)\nif (sum(U) > 0) print(1)\nX = rand(rows=200000, cols=20, seed=2)\n"
      "Y = X * 2 + 1\nif (sum(Y) > 0) print(2)\nprint(sum(Y[1:30000,] * U) + sum(Y))\n",
  };
  for (const char* const script : kScripts)
    for (const int64_t memory : {int64_t{0}, int64_t{16} << 20}) {
      SCOPED_TRACE(testing::Message() << script << "memory " << memory);
      SessionOptions options;
      options.memory_bytes = memory;
      options.constants = ops::BuiltInConstants(1);
      const std::string text = Produce(script, options);
      const ScriptOutcome outcome = RunScript(script, options);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
      const double said = static_cast<double>(outcome.statistics[0].planned_bytes);
      EXPECT_NEAR(PeakOf(text), said, 0.1 * said + 1e6) << text;
    }
}

}  // namespace
}  // namespace heddle::engine

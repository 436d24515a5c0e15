// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/explain/explain.h"

// Every file below tests/golden is a case: a script, then one or more sections
//
//     ---- explain=STAGE [name=value ...]
//     expected text
//
// name=value are the script's arguments. UPDATE_GOLDEN=1 writes what the compiler says now into the files.
namespace heddle::compiler {
namespace {

constexpr std::string_view kSection = "---- explain=";

struct Section {
  std::string header;  ///< The whole line.
  std::string stage;
  std::map<std::string, std::string> arguments;
  std::string expected;
};

struct GoldenCase {
  std::string script;
  std::vector<Section> sections;
};

GoldenCase ReadCase(const std::filesystem::path& path) {
  GoldenCase result;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(kSection)) {
      Section section;
      section.header = line;
      std::istringstream words(line.substr(kSection.size()));
      words >> section.stage;
      for (std::string word; words >> word;)
        section.arguments[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      result.sections.push_back(std::move(section));
    } else {
      (result.sections.empty() ? result.script : result.sections.back().expected) += line + '\n';
    }
  }
  return result;
}

std::string Produce(const GoldenCase& golden, const Section& section, const std::string& name) {
  CompileOptions options;
  options.script = name;
  options.arguments = section.arguments;
  Diagnostics diagnostics;
  const Result<std::string> text = Explain(golden.script, options, section.stage, &diagnostics);
  const std::string warnings = diagnostics.RenderAll(Severity::kWarning);
  return warnings + (text.ok() ? *text : text.status().ToString() + "\n");
}

std::vector<std::filesystem::path> AllCases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(HEDDLE_SOURCE_DIR "/tests/golden"))
    if (entry.path().extension() == ".golden") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class GoldenTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenTest, ExplainsAsWritten) {
  const GoldenCase golden = ReadCase(GetParam());
  ASSERT_FALSE(golden.sections.empty()) << "no line begins with " << kSection;
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  std::string rewritten = golden.script;
  for (const Section& section : golden.sections) {
    const std::string actual = Produce(golden, section, GetParam().stem().string() + ".dml");
    rewritten += section.header + '\n' + actual;
    if (!update) {
      EXPECT_EQ(actual, section.expected) << GetParam() << ", " << section.header;
    }
  }
  if (update) std::ofstream(GetParam()) << rewritten;
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTest, testing::ValuesIn(AllCases()), [](const auto& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace heddle::compiler

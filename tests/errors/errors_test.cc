// SPDX-License-Identifier: Apache-2.0
// Bad input, case by case: the exact message, the place, the exit code, and what is left of the user's files.
//
// A case is tests/errors/cases/NAME.error:
//     # what it shows
//     $ run case.dml -nvargs x=1           words after "heddle"
//     exit 3
//     ---- file case.dml                   files that are there before
//     ---- stderr                          exactly this; MEMORY stands for the bytes that this machine allows
//     ---- stdout                          exactly this (nothing when the section is absent)
//     ---- after out.csv                   this file has this content afterwards
//     ---- absent out.csv                  this file is not there afterwards
// UPDATE_GOLDEN=1 rewrites exit, stderr and stdout; read the difference as you would read code.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "core/memory/memory_bounds.h"
#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;
using testing_support::WriteText;

struct Section {
  std::string kind;
  std::string name;
  std::string text;
};

struct Case {
  std::string path;
  std::string comment;
  std::string command;
  int code = 0;
  std::vector<Section> sections;

  const Section* Find(const std::string& kind) const {
    for (const Section& section : sections)
      if (section.kind == kind) return &section;
    return nullptr;
  }
};

Case Load(const std::string& path) {
  Case result;
  result.path = path;
  std::istringstream file(ReadText(path));
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("---- ")) {
      std::istringstream words(line.substr(5));
      Section section;
      words >> section.kind >> section.name;
      result.sections.push_back(section);
    } else if (!result.sections.empty()) {
      result.sections.back().text += line + "\n";
    } else if (line.starts_with("$ ")) {
      result.command = line.substr(2);
    } else if (line.starts_with("exit ")) {
      result.code = std::stoi(line.substr(5));
    } else {
      result.comment += line + "\n";
    }
  }
  return result;
}

void Save(const Case& c, const Finished& finished) {
  std::string text = c.comment + "$ " + c.command + "\nexit " + std::to_string(finished.code) + "\n";
  for (const Section& section : c.sections)
    if (section.kind != "stderr" && section.kind != "stdout")
      text += "---- " + section.kind + (section.name.empty() ? "" : " " + section.name) + "\n" + section.text;
  if (!finished.output.empty()) text += "---- stdout\n" + finished.output;
  text += "---- stderr\n" + finished.errors;
  WriteText(c.path, text);
}

std::string WithoutNulls(std::string text) {
  // \x00 in a case stands for a byte that text files cannot hold.
  for (size_t at = text.find("\\x00"); at != std::string::npos; at = text.find("\\x00", at))
    text.replace(at, 4, 1, '\0');
  return text;
}

// Sizes that depend on the machine, and on what libraries hold.
std::string WithoutMachine(std::string text) {
  static const std::regex in_use(": [1-9][0-9]* of ([0-9]+) bytes in use");
  text = std::regex_replace(text, in_use, ": SOME of $1 bytes in use");
  const std::string bytes = std::to_string(DefaultMemoryLimit());
  for (size_t at = text.find(bytes); at != std::string::npos; at = text.find(bytes, at))
    text.replace(at, bytes.size(), "MEMORY");
  return text;
}

class ErrorCase : public testing::TestWithParam<std::string> {};

TEST_P(ErrorCase, IsToldExactly) {
  const Case c = Load(GetParam());
  const testing_support::TemporaryFolder folder;
  for (const Section& section : c.sections)
    if (section.kind == "file") WriteText(folder.path() + "/" + section.name, WithoutNulls(section.text));
  std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
  for (const std::string& word : testing_support::SplitWords(c.command)) words.push_back(word);
  Finished finished = testing_support::RunProcess(words, folder.path());
  finished.errors = WithoutMachine(finished.errors);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    Save(c, finished);
    return;
  }
  EXPECT_EQ(finished.code, c.code);
  EXPECT_EQ(finished.errors, c.Find("stderr") ? c.Find("stderr")->text : "");
  EXPECT_EQ(finished.output, c.Find("stdout") ? c.Find("stdout")->text : "");
  EXPECT_LE(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 12);
  for (const Section& section : c.sections) {
    const std::string path = folder.path() + "/" + section.name;
    if (section.kind == "after") {
      EXPECT_EQ(ReadText(path), section.text) << section.name;
    }
    if (section.kind == "absent") {
      EXPECT_FALSE(std::filesystem::exists(path)) << section.name;
    }
  }
  // No temporary file is left behind.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename().string().find(".heddle"), std::string::npos) << entry.path();
  }
}

std::vector<std::string> Cases() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/errors/cases"))
    if (entry.path().extension() == ".error") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Errors, ErrorCase, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = std::filesystem::path(info.param).stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace heddle

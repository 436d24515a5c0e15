// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/linked_project.h"

namespace heddle {

/// The cases of tests/scripts/cases, by name: NAME.dml is a script; NAME.args holds a script of the project
/// and its arguments, with paths from the project's folder.
inline std::vector<std::string> ScriptCases() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/scripts/cases"))
    if (entry.path().extension() == ".dml" || entry.path().extension() == ".args")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// `heddle` with these options on a case. NAME.dml has a folder of its own, so that it may write files.
inline testing_support::Finished RunCase(const std::string& options, const std::filesystem::path& path) {
  std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
  for (const std::string& word : testing_support::SplitWords(options)) words.push_back(word);
  if (path.extension() == ".args") {
    std::string line = testing_support::ReadText(path);
    line.resize(line.find('\n'));
    for (const std::string& word : testing_support::SplitWords(line)) words.push_back(word);
    return testing_support::RunProcess(words, testing_support::LinkedProject().path());
  }
  const testing_support::TemporaryFolder folder;
  words.push_back(path.string());
  return testing_support::RunProcess(words, folder.path());
}

}  // namespace heddle

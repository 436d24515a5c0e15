// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/corpus.h"

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/script_text.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

using testing_support::ReadText;

std::vector<std::filesystem::path> FilesOf(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/" + folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// NAME.args holds options, a script of the project and its arguments; the folders and data they name are
// found from anywhere.
CorpusScript WithArguments(const std::filesystem::path& path) {
  std::string line = ReadText(path);
  line.resize(line.find('\n'));
  std::vector<std::string> words = testing_support::SplitWords(line);
  CorpusScript script{path.filename(), "", {}};
  size_t at_script = 0;
  for (; words[at_script] == "--library"; at_script += 2)
    script.parameters.insert(script.parameters.end(),
                             {words[at_script], HEDDLE_SOURCE_DIR "/" + words[at_script + 1]});
  script.text = ReadText(HEDDLE_SOURCE_DIR "/" + words[at_script]);
  for (size_t i = at_script + 1; i < words.size(); ++i) {
    const size_t at = words[i].find("=examples/");
    if (at != std::string::npos) words[i].insert(at + 1, HEDDLE_SOURCE_DIR "/");
    script.parameters.push_back(words[i]);
  }
  return script;
}

// The scripts among the files of a case of tests/errors.
void AddScriptsOf(const std::filesystem::path& path, std::vector<CorpusScript>* scripts) {
  bool inside = false;
  for (const std::string& line : SplitLines(ReadText(path))) {
    if (line.starts_with("---- ")) {
      inside = line.starts_with("---- file ") && line.ends_with(".dml\n");
      if (inside) scripts->push_back({path.filename(), "", {}});
    } else if (inside) {
      scripts->back().text += line;
    }
  }
}

}  // namespace

std::vector<CorpusScript> LoadCorpus() {
  std::vector<CorpusScript> scripts;
  for (const auto& path : FilesOf("tests/scripts/cases")) {
    if (path.extension() == ".dml") scripts.push_back({path.filename(), ReadText(path), {}});
    if (path.extension() == ".args") scripts.push_back(WithArguments(path));
  }
  for (const auto& path : FilesOf("tests/errors/cases"))
    if (path.extension() == ".error") AddScriptsOf(path, &scripts);
  return scripts;
}

}  // namespace heddle::fuzz

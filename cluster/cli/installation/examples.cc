// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cli/example_files.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "compiler/parse/diagnostics.h"
#include "ops/io/files/files.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {{"force", Option::Kind::kFlag, "", "replace files that are there"}};

struct Example {
  std::string name;     // "kmeans"
  std::string summary;  // "k-means"
  std::string command;  // "heddle run examples/kmeans.dml ..."
};

std::string_view FileAt(std::string_view path) {
  for (const ExampleFile& file : ExampleFiles())
    if (file.path == path) return file.text;
  return {};
}

std::string Stripped(std::string_view text, std::string_view of) {
  const size_t begin = text.find_first_not_of(of);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(of) - begin + 1));
}

// The rows "| `kmeans.dml` | k-means | `heddle run ...` |" of examples/README.md.
std::vector<Example> Examples() {
  std::vector<Example> examples;
  std::string_view rest = FileAt("README.md");
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::vector<std::string> cells;
    for (size_t bar = 0; bar < line.size() && line[bar] == '|';) {
      const size_t next = line.find('|', bar + 1);
      if (next == std::string_view::npos) break;
      cells.push_back(Stripped(line.substr(bar + 1, next - bar - 1), " `"));
      bar = next;
    }
    if (cells.size() != 3 || !cells[0].ends_with(".dml")) continue;
    examples.push_back({cells[0].substr(0, cells[0].size() - 4), cells[1], cells[2]});
  }
  return examples;
}

Status Write(ops::Files& files, std::string_view path, bool replaces) {
  const std::string place = "examples/" + std::string(path);
  std::error_code error;
  if (!replaces && std::filesystem::exists(place, error)) {
    if (path.starts_with("data/")) return OkStatus();  // the data of several examples
    return Usage("'{}' is there already", place).WithNote("--force replaces it");
  }
  std::filesystem::create_directories(std::filesystem::path(place).parent_path(), error);
  return files.Replace(place, [&](const ops::ByteSink& sink) { return sink(FileAt(path)); });
}

// The data that a command reads: "examples/data/breast_cancer.csv" in it.
Status WriteExample(const Example& example, bool replaces) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  HEDDLE_RETURN_IF_ERROR(Write(*files, example.name + ".dml", replaces));
  for (const ExampleFile& file : ExampleFiles())
    if (file.path.starts_with("data/") &&
        example.command.find("examples/" + std::string(file.path)) != std::string::npos)
      HEDDLE_RETURN_IF_ERROR(Write(*files, file.path, replaces));
  PrintOutput(example.command + "\n");
  return OkStatus();
}

int List() {
  std::string text;
  for (const Example& example : Examples())
    text += fmt::format("  {:<12} {}\n", example.name, example.summary);
  PrintOutput(
      text +
      "\n'heddle examples get NAME' writes one into examples/, with its data, and prints how to run it.\n");
  return 0;
}

int Run(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.positional();
  if (words.empty() || (words.size() == 1 && words[0] == "list")) return List();
  if (words[0] != "get" || words.size() != 2)
    return Report(
        Usage("examples takes nothing, or 'get' and a name").WithNote("'heddle examples' lists them"));
  std::vector<std::string> names;
  for (const Example& example : Examples()) {
    if (example.name == words[1]) return Report(WriteExample(example, arguments.Has("force")));
    names.push_back(example.name);
  }
  const std::string nearest = compiler::SuggestName(words[1], names);
  return Report(Usage("there is no example '{}'{}", words[1],
                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest))
                    .WithNote("'heddle examples' lists them"));
}

}  // namespace

const Verb kExamplesVerb = {"examples",
                            "list examples, or write one with its data into examples/",
                            "examples [get NAME] [--force]",
                            JoinOptions({kOptions}),
                            "heddle examples get kmeans",
                            Run,
                            /*takes_words=*/true};

}  // namespace heddle::cluster::cli

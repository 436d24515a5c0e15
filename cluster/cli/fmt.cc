// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "cluster/cli/find_scripts.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "compiler/editor/format_script.h"
#include "ops/io/files/files.h"

namespace heddle::cluster::cli {
namespace {

constexpr int kNotFormatted = 1;

struct Settings {
  compiler::FormatOptions format;
  bool check = false;
};

Result<Settings> ReadSettings(const Arguments& arguments) {
  Settings settings;
  settings.check = arguments.Has("check");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t width,
                          arguments.Integer("width", settings.format.width, compiler::kLeastFormatWidth,
                                            compiler::kMostFormatWidth));
  settings.format.width = static_cast<int32_t>(width);
  return settings;
}

Result<std::string> Format(const std::string& name, const std::string& text, const Settings& settings) {
  compiler::Diagnostics diagnostics;
  return compiler::FormatScript(name, text, settings.format, &diagnostics);
}

// True if the file is in the style already. Else it is written, but with --check, which tells its name.
Result<bool> FormatFile(const std::string& name, const Settings& settings) {
  std::error_code error;
  // Before it is read: nobody may ever write into a pipe.
  if (!settings.check && std::filesystem::exists(name, error) &&
      !std::filesystem::is_regular_file(name, error))
    return InvalidArgument("fmt writes ordinary files, and '{}' is none", name)
        .WithNote("'heddle fmt - < FILE' writes to standard output");
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadScriptFile(name));
  HEDDLE_ASSIGN_OR_RETURN(const std::string formatted, Format(name, text, settings));
  if (formatted == text) return true;
  if (settings.check) {
    PrintOutput(name + "\n");
    return false;
  }
  HEDDLE_RETURN_IF_ERROR(ops::MakeFiles(WorkingDirectory())->Replace(name, formatted));
  return false;
}

int FormatInput(const Settings& settings) {
  Result<std::string> text = ReadStandardInput();
  if (!text.ok()) return Report(text.status());
  const Result<std::string> formatted = Format("-", *text, settings);
  if (!formatted.ok()) return Report(formatted.status());
  if (!settings.check) PrintOutput(*formatted);
  return settings.check && *formatted != *text ? kNotFormatted : 0;
}

int Run(const Arguments& arguments) {
  const Result<Settings> settings = ReadSettings(arguments);
  if (!settings.ok()) return Report(settings.status());
  const std::vector<std::string>& names = arguments.positional();
  if (names.empty()) return Report(Usage("no script: give files, folders, or - for standard input"));
  if (names.size() == 1 && names[0] == "-") return FormatInput(*settings);
  if (std::find(names.begin(), names.end(), "-") != names.end())
    return Report(Usage("'-', standard input, stands alone: its script goes to standard output"));
  int code = 0;
  const auto keep_first = [&code](int other) { code = code == 0 ? other : code; };
  for (const std::string& name : names) {
    std::vector<std::string> files = {name};
    std::error_code error;
    if (std::filesystem::is_directory(name, error)) {
      const Result<std::vector<std::string>> found = FindScripts(name, "fmt");
      if (!found.ok()) {
        keep_first(Report(found.status()));
        continue;
      }
      files.clear();
      for (const std::string& file : *found) files.push_back((std::filesystem::path(name) / file).string());
    }
    // One file that cannot be read or does not parse does not keep the others from being formatted.
    for (const std::string& file : files) {
      const Result<bool> is_formatted = FormatFile(file, *settings);
      if (!is_formatted.ok()) {
        keep_first(Report(is_formatted.status()));
      } else if (!*is_formatted && settings->check) {
        keep_first(kNotFormatted);
      }
    }
  }
  return code;
}

constexpr Option kOptions[] = {
    {"check", Option::Kind::kFlag, "",
     "write nothing; name the files that would change, and exit with 1 then"},
    {"width", Option::Kind::kValue, "N", "columns after which lines are broken (default 110)"},
};

}  // namespace

const Verb kFmtVerb = {"fmt",
                       "format scripts: indentation, blanks, long lines",
                       "fmt [--check] [--width N] FILE|FOLDER...|-",
                       JoinOptions({kOptions}),
                       "heddle fmt --check scripts/",
                       Run,
                       /*takes_words=*/true};

}  // namespace heddle::cluster::cli

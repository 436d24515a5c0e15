// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/check_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "cluster/cli/find_scripts.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kScriptsFail = 3;  // as the exit code of `check` for one script

// One thing that stops a script, at the first place where it does.
struct Obstacle {
  std::string what;
  bool is_missing = false;  // a part of DML that is not there; else a fault of the script
  std::string place;        // file:line:column
};

struct CheckedScript {
  std::string path;  // below the folder
  std::vector<Obstacle> obstacles;
  std::vector<Obstacle> warnings;  // about the script itself; they stop nothing
};

// Paths in a script are relative to the folder in which its user stands. Nobody knows that here: it is the
// working directory, else the script's own folder or one above it.
class LoaderFromFolder : public compiler::SourceLoader {
 public:
  LoaderFromFolder(compiler::SourceLoader* working_directory, const std::filesystem::path& script)
      : working_directory_(*working_directory), folder_(script.parent_path()) {}

  Result<std::string> Load(const std::string& path) override {
    Result<std::string> text = working_directory_.Load(path);
    if (std::filesystem::path(path).is_absolute()) return text;
    for (std::filesystem::path folder = folder_; !text.ok() && text.status().code() == StatusCode::kNotFound;
         folder = folder.parent_path()) {
      text = compiler::FileSourceLoader(folder.string()).Load(path);
      if (folder == folder.parent_path()) break;
    }
    return text;
  }
  std::string LoadMetadata(const std::string& path) override { return working_directory_.LoadMetadata(path); }
  std::string LoadNames(const std::string& path) override { return working_directory_.LoadNames(path); }

 private:
  compiler::SourceLoader& working_directory_;
  const std::filesystem::path folder_;
};

CheckedScript Check(const std::string& folder, const std::string& path,
                    const compiler::CompileOptions& common) {
  CheckedScript checked{path, {}, {}};
  compiler::CompileOptions options = common;
  options.script = (std::filesystem::path(folder) / path).lexically_normal().string();
  Result<std::string> text = options.loader->Load(options.script);
  if (!text.ok()) {
    checked.obstacles.push_back({text.status().message(), false, options.script});
    return checked;
  }
  LoaderFromFolder loader(common.loader, std::filesystem::absolute(options.script));
  options.loader = &loader;
  compiler::Diagnostics diagnostics;
  const Status status = compiler::CompileScript(*std::move(text), options, &diagnostics).status();
  std::set<std::string> told;
  for (const compiler::Diagnostic* found : diagnostics.Sorted(compiler::Severity::kError)) {
    std::string what = found->message.substr(0, found->message.find('\n'));
    if (told.insert(what).second)
      checked.obstacles.push_back(
          {std::move(what), found->is_missing, found->range.Position(found->file).ToString()});
  }
  if (!status.ok() && checked.obstacles.empty())
    checked.obstacles.push_back({status.message(), false, options.script});  // it needs too much memory
  // Warnings of a script with errors are mostly about what the errors left out. A function of the library is
  // warned of once, as a script of its own.
  if (!checked.obstacles.empty()) return checked;
  for (const compiler::Diagnostic* found : diagnostics.Sorted(compiler::Severity::kWarning))
    if (found->file == options.script)
      checked.warnings.push_back({found->message.substr(0, found->message.find('\n')), false,
                                  found->range.Position(found->file).ToString()});
  return checked;
}

// What stops most scripts comes first.
struct Count {
  std::string what;
  bool is_missing = false;
  std::string first;  // the first script
  int64_t scripts = 0;
};

std::vector<Count> Rank(const std::vector<CheckedScript>& scripts) {
  std::vector<Count> counts;
  std::map<std::string, size_t> known;
  for (const CheckedScript& script : scripts) {
    for (const Obstacle& obstacle : script.obstacles) {
      const auto [found, is_new] = known.try_emplace(obstacle.what, counts.size());
      if (is_new) counts.push_back({obstacle.what, obstacle.is_missing, script.path, 0});
      ++counts[found->second].scripts;
    }
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const Count& a, const Count& b) { return a.scripts > b.scripts; });
  return counts;
}

int64_t CountOf(const std::vector<CheckedScript>& scripts, bool (*holds)(const CheckedScript& script)) {
  return std::count_if(scripts.begin(), scripts.end(), holds);
}

bool Runs(const CheckedScript& script) { return script.obstacles.empty(); }
// It is right, but a part of DML is not there.
bool OnlyMisses(const CheckedScript& script) {
  return !Runs(script) && std::all_of(script.obstacles.begin(), script.obstacles.end(),
                                      [](const Obstacle& obstacle) { return obstacle.is_missing; });
}

std::string_view OutcomeOf(const CheckedScript& script) {
  return Runs(script) ? "runs" : OnlyMisses(script) ? "misses" : "fails";
}

std::string ToText(const std::vector<CheckedScript>& scripts) {
  std::string text;
  for (const CheckedScript& script : scripts) {
    text += fmt::format("{:<7} {}\n", OutcomeOf(script), script.path);
    for (const Obstacle& obstacle : script.obstacles)
      text += fmt::format("        {}: {}\n", obstacle.place, obstacle.what);
    for (const Obstacle& warning : script.warnings)
      text += fmt::format("        {}: warning: {}\n", warning.place, warning.what);
  }
  const auto count = static_cast<int64_t>(scripts.size());
  text += fmt::format("\nscripts: {}; run: {}; miss a part of DML: {}; fail: {}\n", count,
                      CountOf(scripts, Runs), CountOf(scripts, OnlyMisses),
                      count - CountOf(scripts, Runs) - CountOf(scripts, OnlyMisses));
  const std::vector<Count> counts = Rank(scripts);
  if (!counts.empty()) text += "\nscripts  what stops them\n";
  for (const Count& obstacle : counts) text += fmt::format("{:>7}  {}\n", obstacle.scripts, obstacle.what);
  return EscapeForTerminal(text);
}

std::string ToJson(const std::string& folder, const std::vector<CheckedScript>& scripts) {
  Json json = {
      {"folder", folder},
      {"scripts", scripts.size()},
      {"run", CountOf(scripts, Runs)},
      {"miss", CountOf(scripts, OnlyMisses)},
      {"fail", static_cast<int64_t>(scripts.size()) - CountOf(scripts, Runs) - CountOf(scripts, OnlyMisses)}};
  json["obstacles"] = Json::array();
  for (const Count& count : Rank(scripts))
    json["obstacles"].push_back({{"what", count.what},
                                 {"missing", count.is_missing},
                                 {"scripts", count.scripts},
                                 {"first", count.first}});
  json["checked"] = Json::array();
  for (const CheckedScript& script : scripts) {
    Json obstacles = Json::array();
    for (const Obstacle& obstacle : script.obstacles)
      obstacles.push_back(
          {{"what", obstacle.what}, {"missing", obstacle.is_missing}, {"place", obstacle.place}});
    Json warnings = Json::array();
    for (const Obstacle& warning : script.warnings)
      warnings.push_back({{"what", warning.what}, {"place", warning.place}});
    json["checked"].push_back({{"script", script.path},
                               {"outcome", OutcomeOf(script)},
                               {"obstacles", std::move(obstacles)},
                               {"warnings", std::move(warnings)}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int CheckFolder(const std::string& folder, const Arguments& arguments) {
  compiler::FileSourceLoader loader(WorkingDirectory());
  engine::Script script;
  Result<std::map<std::string, std::string>> parameters = ScriptParameters(arguments);
  if (!parameters.ok()) return ReportOutcome(arguments, parameters.status());
  script.parameters = *std::move(parameters);
  const Result<std::unique_ptr<engine::Engine>> engine = MakeEngine(arguments);
  if (!engine.ok()) return ReportOutcome(arguments, engine.status());
  compiler::CompileOptions options = (*engine)->CompileOptionsOf(script, &loader);
  options.any_arguments = true;
  // Scripts of a checkout call and source each other.
  options.libraries.push_back(folder);
  const Result<std::vector<std::string>> paths = FindScripts(folder, "--compat");
  if (!paths.ok()) return ReportOutcome(arguments, paths.status());
  std::vector<CheckedScript> scripts;
  for (const std::string& path : *paths) {
    scripts.push_back(Check(folder, path, options));
    if (arguments.Has("no-warnings")) scripts.back().warnings.clear();
  }
  PrintOutput(arguments.Has("json") ? ToJson(folder, scripts) : ToText(scripts));
  return std::all_of(scripts.begin(), scripts.end(), Runs) ? 0 : kScriptsFail;
}

}  // namespace heddle::cluster::cli

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>

#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "compiler/parse/diagnostics.h"

namespace heddle::cluster::cli {
namespace {

constexpr std::array<const Verb*, 16> kVerbs = {
    &kRunVerb,     &kCheckVerb,     &kExplainVerb, &kSimVerb,      &kMasterVerb,     &kWorkerVerb,  &kJobSubmitVerb,    &kJobListVerb,
    &kJobStatusVerb, &kJobLogsVerb, &kJobWaitVerb, &kJobCancelVerb, &kAdminNodesVerb, &kVersionVerb, &kCompletionVerb, &kExecutorVerb};

std::string Overview() {
  std::string text = "heddle runs linear-algebra and machine-learning programs written in DML.\n\nusage: heddle VERB [OPTIONS]\n\n";
  for (const Verb* verb : kVerbs)
    if (!verb->hidden) text += fmt::format("  {:<12} {}\n", verb->name, verb->summary);
  text += "\n'heddle VERB --help' tells more. Example:\n  heddle run -e 'print(\"Hello \" + sum(rand(rows=1000, cols=1000, seed=1)))'\n";
  return text;
}

// The verb that the words begin with, and how many of them it takes.
const Verb* FindVerb(std::span<const std::string> words, size_t* taken) {
  for (const Verb* verb : kVerbs) {
    const size_t blank = verb->name.find(' ');
    if (words[0] != verb->name.substr(0, blank)) continue;
    if (blank == std::string_view::npos) {
      *taken = 1;
      return verb;
    }
    if (words.size() > 1 && words[1] == verb->name.substr(blank + 1)) {
      *taken = 2;
      return verb;
    }
  }
  return nullptr;
}

bool IsHelp(const std::string& word) { return word == "--help" || word == "-help" || word == "-h" || word == "help"; }

// "job" alone or with an unknown second word: the verbs of that group.
std::string GroupHelp(std::string_view group) {
  std::string text;
  for (const Verb* verb : kVerbs)
    if (verb->name.starts_with(std::string(group) + " ")) text += fmt::format("  {:<12} {}\n", verb->name, verb->summary);
  return text;
}

int UnknownVerb(std::span<const std::string> words) {
  const std::string group = GroupHelp(words[0]);
  if (!group.empty()) {
    if (words.size() == 1 || IsHelp(words[1])) {
      std::fputs(("usage: heddle " + words[0] + " VERB [OPTIONS]\n\n" + group).c_str(), words.size() == 1 ? stderr : stdout);
      return words.size() == 1 ? 2 : 0;
    }
    std::vector<std::string> names;
    for (const Verb* verb : kVerbs)
      if (verb->name.starts_with(words[0] + " ")) names.emplace_back(verb->name.substr(words[0].size() + 1));
    const std::string nearest = compiler::SuggestName(words[1], names);
    return Report(Usage("unknown verb '{} {}'{}", words[0], words[1],
                        nearest.empty() ? "" : fmt::format("; did you mean 'heddle {} {}'?", words[0], nearest))
                      .WithNote("'heddle " + words[0] + " --help' lists the verbs"));
  }
  std::vector<std::string> names;
  for (const Verb* verb : kVerbs)
    if (!verb->hidden) names.emplace_back(verb->name.substr(0, verb->name.find(' ')));
  const std::string nearest = compiler::SuggestName(words[0], names);
  return Report(Usage("unknown verb '{}'{}", words[0], nearest.empty() ? "" : fmt::format("; did you mean 'heddle {}'?", nearest))
                    .WithNote(words[0].ends_with(".dml") ? "to run a script: heddle run " + words[0] : "'heddle --help' lists the verbs"));
}

}  // namespace

std::span<const Verb* const> AllVerbs() { return kVerbs; }

std::string Help(const Verb& verb) {
  std::string text = fmt::format("{}\n\nusage: heddle {}\n", verb.summary, verb.usage);
  std::string options;
  for (const Option& option : verb.options) {
    if (option.help.empty()) continue;
    std::string name = fmt::format("{}{}", option.kind == Option::Kind::kRest ? "-" : "--", option.name);
    if (!option.value_name.empty()) name += fmt::format(" {}", option.value_name);
    options += fmt::format("  {:<28} {}\n", name, option.help);
  }
  if (!options.empty()) text += "\noptions:\n" + options;
  if (!verb.example.empty()) text += fmt::format("\nexample:\n  {}\n", verb.example);
  return text;
}

int Main(std::span<const std::string> words) {
  if (words.empty()) {
    std::fputs(Overview().c_str(), stderr);
    return 2;
  }
  if (IsHelp(words[0])) {
    std::fputs(Overview().c_str(), stdout);
    return 0;
  }
  if (words[0] == "--version" || words[0] == "-version") return kVersionVerb.run(Arguments());
  size_t taken = 0;
  const Verb* verb = FindVerb(words, &taken);
  if (verb == nullptr) return UnknownVerb(words);
  const std::span<const std::string> rest = words.subspan(taken);
  for (const std::string& word : rest) {
    if (word == "-args" || word == "-nvargs" || word == "--args" || word == "--nvargs") break;
    if (word == "--help" || word == "-help" || word == "-h") {
      std::fputs(Help(*verb).c_str(), stdout);
      return 0;
    }
  }
  Result<Arguments> arguments = ParseArguments(rest, verb->options);
  if (!arguments.ok())
    return Report(arguments.status().WithNote(fmt::format("'heddle {} --help' tells more", verb->name)));
  for (const std::string& warning : arguments->warnings()) Warn(warning);
  return verb->run(*arguments);
}

}  // namespace heddle::cluster::cli

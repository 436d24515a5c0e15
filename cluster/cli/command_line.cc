// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "compiler/help/function_help.h"
#include "compiler/parse/diagnostics.h"

namespace heddle::cluster::cli {
namespace {

constexpr int kUsageExitCode = 2;
constexpr size_t kNameWidth = 19;

constexpr std::array<const Verb*, 47> kVerbs = {
    &kRunVerb,         &kCheckVerb,       &kExplainVerb,      &kSimVerb,          &kVerifyVerb,
    &kReplVerb,        &kFmtVerb,         &kLspVerb,          &kInspectVerb,      &kConvertVerb,
    &kMasterVerb,      &kWorkerVerb,      &kJobSubmitVerb,    &kJobListVerb,      &kJobStatusVerb,
    &kJobLogsVerb,     &kJobWaitVerb,     &kJobCancelVerb,    &kJobReportVerb,    &kJobRetryVerb,
    &kJobDeleteVerb,   &kAdminNodesVerb,  &kAdminDrainVerb,   &kAdminUndrainVerb, &kAdminRemoveVerb,
    &kAdminTopVerb,    &kTokenCreateVerb, &kTokenListVerb,    &kTokenRotateVerb,  &kTokenRevokeVerb,
    &kAdminCertVerb,   &kAdminBackupVerb, &kAdminRestoreVerb, &kAdminGcVerb,      &kAdminConfigVerb,
    &kAdminDoctorVerb, &kLaunchSshVerb,   &kLaunchSlurmVerb,  &kLaunchK8sVerb,    &kExamplesVerb,
    &kDoctorVerb,      &kDevicesVerb,     &kVersionVerb,      &kCompletionVerb,   &kManualPageVerb,
    &kExecutorVerb,    &kCompilerVerb};

std::string Overview() {
  std::string text =
      "heddle runs linear-algebra and machine-learning programs written in DML.\n\nusage: heddle VERB [OPTIONS]\n\n";
  for (const Verb* verb : kVerbs)
    if (!verb->hidden) text += fmt::format("  {:<{}} {}\n", verb->name, kNameWidth, verb->summary);
  text +=
      "\n'heddle VERB --help' tells more, 'heddle help lm' of a function, 'heddle help builtins' and 'heddle help library' list functions. Example:\n  heddle run -e 'print(\"Hello \" + sum(rand(rows=1000, cols=1000, seed=1)))'\n";
  return text;
}

// The verb that the words begin with, and how many of them it takes.
const Verb* FindVerb(std::span<const std::string> words, size_t* taken) {
  for (const Verb* verb : kVerbs) {
    *taken = static_cast<size_t>(std::count(verb->name.begin(), verb->name.end(), ' ')) + 1;
    if (*taken <= words.size() && verb->name == fmt::format("{}", fmt::join(words.first(*taken), " ")))
      return verb;
  }
  return nullptr;
}

bool IsHelpOption(const std::string& word) { return word == "--help" || word == "-help" || word == "-h"; }
bool IsHelp(const std::string& word) { return IsHelpOption(word) || word == "help"; }

// The most of the words with which verbs begin that go on: "job", "admin token"; "" when there are none.
std::string GroupOf(std::span<const std::string> words) {
  for (size_t count = words.size(); count > 0; --count) {
    const std::string group = fmt::format("{}", fmt::join(words.first(count), " "));
    for (const Verb* verb : kVerbs)
      if (verb->name.starts_with(group + " ")) return group;
  }
  return "";
}

// The verbs of a group.
std::string GroupHelp(std::string_view group) {
  std::string text = fmt::format("usage: heddle {} VERB [OPTIONS]\n\n", group);
  for (const Verb* verb : kVerbs)
    if (verb->name.starts_with(std::string(group) + " "))
      text += fmt::format("  {:<{}} {}\n", verb->name, kNameWidth, verb->summary);
  return text;
}

int ShowHelp(const std::string& text) { return PrintOutput(text) ? 0 : Report(OutputStatus()); }

int ReportNoVerb(const std::string& help) {
  std::fputs(help.c_str(), stderr);
  return kUsageExitCode;
}

std::string NearestVerb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb* verb : kVerbs)
    if (!verb->hidden) names.emplace_back(verb->name.substr(0, verb->name.find(' ')));
  return compiler::SuggestName(word, names);
}

int UnknownVerb(std::span<const std::string> words) {
  if (const std::string group = GroupOf(words); !group.empty()) {
    const size_t taken = static_cast<size_t>(std::count(group.begin(), group.end(), ' ')) + 1;
    if (words.size() == taken) return ReportNoVerb(GroupHelp(group));
    if (IsHelp(words[taken])) return ShowHelp(GroupHelp(group));
    std::vector<std::string> names;
    for (const Verb* verb : kVerbs)
      if (verb->name.starts_with(group + " ")) names.emplace_back(verb->name.substr(group.size() + 1));
    const std::string nearest = compiler::SuggestName(words[taken], names);
    return Report(Usage("unknown verb '{} {}'{}", group, words[taken],
                        nearest.empty() ? "" : fmt::format("; did you mean 'heddle {} {}'?", group, nearest))
                      .WithNote("'heddle " + group + " --help' lists the verbs"));
  }
  const std::string nearest = NearestVerb(words[0]);
  return Report(Usage("unknown verb '{}'{}", words[0],
                      nearest.empty() ? "" : fmt::format("; did you mean 'heddle {}'?", nearest))
                    .WithNote(words[0].ends_with(".dml") ? "to run a script: heddle run " + words[0]
                                                         : "'heddle --help' lists the verbs"));
}

// Of `heddle help WORDS`: a verb or a function may be meant.
int UnknownTopic(std::span<const std::string> words) {
  if (!GroupOf(words).empty()) return UnknownVerb(words);
  const std::string nearest =
      compiler::SuggestName(words[0], {NearestVerb(words[0]), compiler::NearestFunction(words[0])});
  return Report(
      Usage("there is no verb or function '{}'{}", words[0],
            nearest.empty() ? "" : fmt::format("; did you mean 'heddle help {}'?", nearest))
          .WithNote(
              "'heddle --help' lists the verbs, 'heddle help builtins' and 'heddle help library' the functions"));
}

}  // namespace

std::span<const Verb* const> AllVerbs() { return kVerbs; }

std::string Help(const Verb& verb) {
  std::string text = fmt::format("{}\n\nusage: heddle {}\n", verb.summary, verb.usage);
  std::string options;
  for (const Option& option : verb.options) {
    if (option.help.empty()) continue;
    std::string name = WithDashes(option);
    if (option.alias.size() == 1) name = fmt::format("-{}, {}", option.alias, name);
    if (!option.value_name.empty()) name += fmt::format(" {}", option.value_name);
    options += fmt::format("  {:<28} {}\n", name, option.help);
  }
  if (!options.empty()) text += "\noptions:\n" + options;
  if (!verb.example.empty()) text += fmt::format("\nexample:\n  {}\n", verb.example);
  return text;
}

namespace {

int RunVerb(const Verb& verb, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "-args" || word == "-nvargs" || word == "--args" || word == "--nvargs") break;
    if (IsHelpOption(word)) return ShowHelp(Help(verb));
  }
  Result<Arguments> arguments = ParseArguments(words, verb.options);
  Status status = arguments.status();
  if (status.ok() && !verb.takes_words && !arguments->positional().empty())
    status = Usage("'{}': heddle {} takes options only", arguments->positional()[0], verb.name);
  if (!status.ok()) return Report(status.WithNote(fmt::format("'heddle {} --help' tells more", verb.name)));
  if (!arguments->Has("no-warnings"))
    for (const std::string& warning : arguments->warnings()) Warn(warning);
  const int code = verb.run(*arguments);
  return code == 0 ? Report(OutputStatus()) : code;
}

}  // namespace

int Main(std::span<const std::string> words) {
  if (words.empty()) return ReportNoVerb(Overview());
  size_t taken = 0;
  if (IsHelp(words[0])) {  // "help job submit" as well as "job submit --help"
    if (words.size() == 1) return ShowHelp(Overview());
    words = words.subspan(1);
    if (const Verb* verb = FindVerb(words, &taken)) return ShowHelp(Help(*verb));
    if (words[0] == "library") return ShowHelp(compiler::LibraryOverview());
    if (words[0] == "builtins") return ShowHelp(compiler::BuiltinOverview());
    if (const std::string text = compiler::HelpOfName(words[0]); !text.empty()) return ShowHelp(text);
    const std::string group = GroupOf(words);
    return group == fmt::format("{}", fmt::join(words, " ")) ? ShowHelp(GroupHelp(group))
                                                             : UnknownTopic(words);
  }
  if (words[0] == "--version" || words[0] == "-version") return RunVerb(kVersionVerb, words.subspan(1));
  const Verb* verb = FindVerb(words, &taken);
  return verb == nullptr ? UnknownVerb(words) : RunVerb(*verb, words.subspan(taken));
}

}  // namespace heddle::cluster::cli

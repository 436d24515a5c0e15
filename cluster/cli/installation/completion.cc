// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

// First words and, per verb, its options; everything else completes as file names.
int Run(const Arguments& arguments) {
  if (arguments.positional().size() > 1) return Report(Usage("completion takes one shell, bash or zsh"));
  const std::string shell = arguments.positional().empty() ? "bash" : arguments.positional()[0];
  if (shell != "bash" && shell != "zsh") return Report(Usage("completion for bash and zsh, not '{}'", shell));
  std::string first;
  std::string cases;
  for (const Verb* verb : AllVerbs()) {
    if (verb->hidden) continue;
    const std::string name(verb->name);
    const std::string head = name.substr(0, name.find(' '));
    if ((" " + first + " ").find(" " + head + " ") == std::string::npos)
      first += (first.empty() ? "" : " ") + head;
    std::string options;
    for (const Option& option : verb->options)
      if (!option.help.empty()) options += fmt::format(" --{}", option.name);
    cases += fmt::format("    '{}') words='--help{}' ;;\n", name, options);
  }
  std::string groups;
  for (const char* group : {"job", "admin", "admin token", "launch"}) {
    std::string members;
    for (const Verb* verb : AllVerbs()) {
      if (!verb->name.starts_with(std::string(group) + " ")) continue;
      const std::string member(verb->name.substr(std::string_view(group).size() + 1));
      const std::string word = member.substr(0, member.find(' '));
      if ((members + " ").find(" " + word + " ") == std::string::npos) members += " " + word;
    }
    groups += fmt::format("    '{}') words='{}' ;;\n", group, members.substr(1));
  }
  std::string text = shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  text +=
      "# heddle completion " + shell +
      " > FILE, then source FILE\n_heddle() {\n  local words='' verb=\"${COMP_WORDS[1]}\"\n"
      "  case \"$verb\" in job|admin|launch) [ \"$COMP_CWORD\" -gt 2 ] && verb=\"$verb ${COMP_WORDS[2]}\" ;; esac\n"
      "  case \"$verb\" in 'admin token') [ \"$COMP_CWORD\" -gt 3 ] && verb=\"$verb ${COMP_WORDS[3]}\" ;; esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words='" +
      first + "'; else case \"$verb\" in\n" + groups + cases +
      "  esac; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
      "complete -o default -F _heddle heddle\n";
  PrintOutput(text);
  return 0;
}

}  // namespace

const Verb kCompletionVerb = {
    "completion",
    "print a completion script for bash or zsh",
    "completion [bash|zsh]",
    {},
    "heddle completion bash > ~/.heddle-completion && echo 'source ~/.heddle-completion' >> ~/.bashrc",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli

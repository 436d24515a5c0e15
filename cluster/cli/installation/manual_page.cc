// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "core/version.h"

namespace heddle::cluster::cli {
namespace {

// Text as man(7) takes it: no line begins with a request, a hyphen is one.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    if (character == '\\') {
      escaped += "\\e";
    } else if (character == '-') {
      escaped += "\\-";
    } else {
      escaped += character;
    }
  }
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string Dashed(std::string_view name) {
  std::string dashed(name);
  for (char& character : dashed)
    if (character == ' ') character = '-';
  return dashed;
}

std::string Heading(std::string_view name, std::string_view summary) {
  return fmt::format(".TH {} 1 \"\" \"heddle {}\" \"Heddle\"\n.SH NAME\n{} \\- {}\n", Escaped(name), kVersion,
                     Escaped(name), Escaped(summary));
}

std::string PageOf(const Verb& verb) {
  std::string text = Heading("heddle-" + Dashed(verb.name), verb.summary);
  text += fmt::format(".SH SYNOPSIS\n.B heddle {}\n", Escaped(verb.usage));
  std::string options;
  for (const Option& option : verb.options) {
    if (option.help.empty()) continue;
    options +=
        fmt::format(".TP\n.BR {}{}\n{}\n", Escaped(WithDashes(option)),
                    option.value_name.empty() ? "" : fmt::format(" \" {}\"", Escaped(option.value_name)),
                    Escaped(option.help));
  }
  if (!options.empty()) text += ".SH OPTIONS\n" + options;
  if (!verb.example.empty()) text += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", Escaped(verb.example));
  return text + ".SH SEE ALSO\n.BR heddle (1)\n";
}

std::string Overview() {
  std::string text = Heading("heddle", "run linear-algebra and machine-learning programs written in DML");
  text += ".SH SYNOPSIS\n.B heddle\n.I VERB\n[\\fIOPTIONS\\fR]\n.SH VERBS\n";
  for (const Verb* verb : AllVerbs())
    if (!verb->hidden)
      text +=
          fmt::format(".TP\n.BR heddle\\-{} (1)\n{}\n", Escaped(Dashed(verb->name)), Escaped(verb->summary));
  return text +
         ".SH EXIT STATUS\n0 success, 1 the script stopped or failed while running, 2 usage, 3 the script does not "
         "compile, 4 input data, 5 memory or disk, 6 unreachable, 8 cancelled, 70 a fault of Heddle.\n";
}

int Run(const Arguments& arguments) {
  if (arguments.positional().empty()) return PrintOutput(Overview()) ? 0 : Report(OutputStatus());
  if (arguments.positional()[0] == "list") {
    std::string names = "heddle\n";
    for (const Verb* verb : AllVerbs())
      if (!verb->hidden) names += "heddle-" + Dashed(verb->name) + "\n";
    return PrintOutput(names) ? 0 : Report(OutputStatus());
  }
  for (const Verb* verb : AllVerbs())
    if (!verb->hidden && arguments.positional()[0] == "heddle-" + Dashed(verb->name))
      return PrintOutput(PageOf(*verb)) ? 0 : Report(OutputStatus());
  return Report(Usage("there is no page '{}'", arguments.positional()[0])
                    .WithNote("'heddle manual-page list' names them"));
}

}  // namespace

const Verb kManualPageVerb = {"manual-page",
                              "print a page for man",
                              "manual-page [list|heddle-VERB]",
                              {},
                              "heddle manual-page heddle-run | man -l -",
                              Run,
                              /*takes_words=*/true,
                              /*hidden=*/true};

}  // namespace heddle::cluster::cli

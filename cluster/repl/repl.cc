// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/repl.h"

#include <algorithm>
#include <array>

#include "cluster/process/interrupt.h"
#include "cluster/repl/commands.h"
#include "cluster/repl/prompt_signals.h"
#include "compiler/help/function_help.h"
#include "compiler/parse/diagnostics.h"
#include "compiler/parse/parser.h"
#include "core/environment/clock.h"
#include "engine/control/local_run.h"
#include "engine/interactive/describe_variable.h"

namespace heddle::cluster {
namespace {

constexpr std::array<Command, 8> kCommands = {{
    {":help", "[NAME]", "these lines, or what a function does"},
    {":type", "EXPR", "type and size of an expression; it does not run"},
    {":explain", "STATEMENT", "what the compiler makes of it; it does not run"},
    {":time", "STATEMENT", "run it and tell how long it took"},
    {":vars", "", "variables and functions"},
    {":load", "FILE", "run the statements of a script"},
    {":reset", "", "forget variables and functions"},
    {":quit", "", "leave (Ctrl-D)"},
}};

constexpr std::string_view kBlanks = " \t\r\n";

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string Help() {
  std::string text = "A line is a statement of DML, an expression whose value is printed, or one of\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {:<20} {}\n",
                        command.argument.empty() ? std::string(command.name)
                                                 : fmt::format("{} {}", command.name, command.argument),
                        command.help);
  return text;
}

}  // namespace

std::span<const Command> Commands() { return kCommands; }

int Repl::Run() {
  std::string entry;
  if (lines_.IsTerminal()) PromptSignals::LetPass();
  while (!is_over_) {
    std::string line;
    const LineSource::Outcome outcome = lines_.Read(PromptFor(entry), &line);
    if (outcome == LineSource::Outcome::kInterrupted) {
      entry.clear();
      continue;
    }
    if (outcome == LineSource::Outcome::kEnd) {
      if (!lines_.IsTerminal() && !Trimmed(entry).empty()) Handle(entry);  // says what is missing
      break;
    }
    if (entry.empty() && Trimmed(line).empty()) continue;
    entry += entry.empty() ? line : "\n" + line;
    const bool is_command = entry.starts_with(':');
    if (!is_command && (compiler::EndsInsideStatement(entry) || GoesOnWithElse(entry))) continue;
    lines_.Remember(entry);
    Handle(entry);
    if (lines_.IsTerminal()) PromptSignals::LetPass();
    entry.clear();
  }
  return lines_.IsTerminal() ? 0 : first_error_;
}

std::string Repl::PromptFor(const std::string& entry) const {
  const auto line = session_.definitions().next_line();
  if (entry.empty()) return fmt::format("{}> ", line);
  return fmt::format("{}+ ", line + std::count(entry.begin(), entry.end(), '\n') + 1);
}

// At a terminal the line that "else" would begin is not known.
bool Repl::GoesOnWithElse(const std::string& entry) const {
  if (lines_.IsTerminal()) return false;
  compiler::Diagnostics diagnostics;
  const compiler::ScriptFile file =
      compiler::Parse(engine::InteractiveSession::kScript, entry, &diagnostics, /*takes_expressions=*/true);
  if (diagnostics.HasErrors() || file.statements.empty()) return false;
  const compiler::Statement& last = file.statements.back();
  if (last.kind != compiler::Statement::Kind::kIf || !last.otherwise.empty()) return false;
  const std::string* const next = lines_.Peek();
  return next != nullptr && Trimmed(*next).starts_with("else");
}

void Repl::Handle(const std::string& entry) {
  if (entry.starts_with(':'))
    HandleCommand(entry);
  else
    RunEntry(entry);
}

// `note` is told with an error.
void Repl::RunEntry(const std::string& entry, const std::string& note) {
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation, /*survives=*/true, [] {
    std::fputs(
        "heddle: this step of the statement cannot be interrupted: it is waited for; Ctrl-\\ ends Heddle\n",
        stderr);
  });
  const Status status = session_.Run(entry, &cancellation);
  Report(status.ok() || note.empty() ? status : status.WithNote(note));
  is_over_ = is_over_ || guard.wants_end();
}

void Repl::Report(const Status& status) {
  if (status.ok()) return;
  const int code = surroundings_.report(status);
  if (first_error_ == 0) first_error_ = code;
}

void Repl::HandleCommand(const std::string& line) {
  const size_t blank = line.find_first_of(kBlanks);
  const std::string name = line.substr(0, blank);
  const std::string argument = blank == std::string::npos ? "" : Trimmed(line.substr(blank));
  const auto command = std::find_if(kCommands.begin(), kCommands.end(),
                                    [&](const Command& known) { return known.name == name; });
  if (command == kCommands.end()) {
    std::vector<std::string> names;
    for (const Command& known : kCommands) names.emplace_back(known.name);
    const std::string nearest = compiler::SuggestName(name, names);
    return Report(Usage("unknown command '{}'{}", name,
                        nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest))
                      .WithNote(":help lists the commands"));
  }
  const bool is_optional = command->argument.starts_with('[');
  if (!is_optional && command->argument.empty() != argument.empty())
    return Report(command->argument.empty() ? Usage("{} takes nothing behind it, not '{}'", name, argument)
                                            : Usage("{0} needs something: {0} {1}", name, command->argument));
  if (name == ":help") return TellOf(argument);
  if (name == ":vars") return ListVariables();
  if (name == ":load") return Load(argument);
  if (name == ":reset") return session_.Clear();
  if (name == ":quit") {
    is_over_ = true;
    return;
  }
  if (name == ":time") {
    const int64_t begin = SystemClock().MonotonicNs();
    RunEntry(argument);
    const double seconds = static_cast<double>(SystemClock().MonotonicNs() - begin) * 1e-9;
    return surroundings_.print(fmt::format("{:.3f} s\n", seconds));
  }
  const Result<std::string> text = name == ":type" ? session_.TypeOf(argument) : session_.Explain(argument);
  if (!text.ok()) return Report(text.status());
  surroundings_.print(text->ends_with('\n') ? *text : *text + "\n");
}

void Repl::TellOf(const std::string& function) {
  if (function.empty()) return surroundings_.print(Help());
  const std::string text = compiler::HelpOfName(function);
  if (!text.empty()) return surroundings_.print(text);
  const std::string nearest = compiler::NearestFunction(function);
  Report(Usage("there is no function '{}' of the language or of the library{}", function,
               nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

void Repl::Load(const std::string& path) {
  compiler::FileSourceLoader loader(session_.directory(), engine::RootsOfRun());
  const Result<std::string> text = loader.Load(path);
  const int32_t line = session_.definitions().next_line();
  if (text.ok())
    return RunEntry(*text,
                    line == 1 ? "" : fmt::format("line 1 of '{}' is line {} of the session", path, line));
  Report(text.status().code() == StatusCode::kNotFound
             ? NotFound("cannot read script '{}': no such file", path)
             : text.status());
}

void Repl::ListVariables() const {
  const auto& variables = session_.variables().variables();
  size_t width = 0;
  for (const auto& [name, variable] : variables) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, variable] : variables)
    text += fmt::format("{:<{}}  {}\n", name, width, Describe(variable));
  for (const engine::Definitions::FunctionHead& head : session_.definitions().functions())
    text += head.text + "\n";
  surroundings_.print(text);
}

}  // namespace heddle::cluster

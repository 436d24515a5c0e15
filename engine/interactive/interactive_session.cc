// SPDX-License-Identifier: Apache-2.0
#include "engine/interactive/interactive_session.h"

#include <algorithm>

#include "compiler/explain/explain.h"
#include "compiler/parse/lexer.h"
#include "compiler/parse/load_scripts.h"
#include "compiler/parse/parser.h"
#include "core/environment/random.h"
#include "core/memory/counted_heap.h"
#include "engine/control/local_run.h"
#include "engine/interactive/describe_variable.h"
#include "engine/session/limit_of_run.h"

namespace heddle::engine {
namespace {

using compiler::Diagnostic;
using compiler::Diagnostics;
using compiler::Severity;

// Of a matrix or frame that is printed: so many rows and columns are shown whole, of larger ones the head.
constexpr int64_t kMostRows = 20, kMostColumns = 12, kHead = 10;

// What is entered cannot be called so.
constexpr const char* kPrinted = "value";

// Runs nothing, so that it has no effect here.
bool IsDefinition(const compiler::Statement& statement) {
  return statement.kind == compiler::Statement::Kind::kSource ||
         statement.kind == compiler::Statement::Kind::kSetDirectory;
}

// The information that the program gives of the value of an expression alone; nullptr where it gives none.
const ValueInfo* FindInfo(const Program& program, ValueInfo* declared) {
  for (const Block& block : program.main) {
    for (const Node& node : block.graph.nodes)
      if (node.Is("assign") && node.Text("name") == compiler::kExpressionValue) return &node.info;
    for (size_t i = 0; i < block.results.size(); ++i) {
      if (block.results[i] != compiler::kExpressionValue) continue;
      const auto function = program.functions.find(block.function);
      if (function == program.functions.end() || i >= function->second.results.size()) return nullptr;
      const Parameter& result = function->second.results[i];
      *declared = ValueInfo::OfDeclared(result.data_type, result.value_type);
      return declared;
    }
  }
  return nullptr;
}

}  // namespace

InteractiveSession::InteractiveSession(Options options)
    : options_(std::move(options)),
      spill_files_(ops::MakeSpillFiles(options_.session.spill_folder)),
      panels_(ops::MakePanelStore(*spill_files_)) {
  options_.compile.script = kScript;
  options_.compile.loader = options_.loader.get();
  if (options_.session.seed == -1) options_.session.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
}

Status InteractiveSession::Run(const std::string& entry, Cancellation* cancellation) {
  const LimitOfRun limit(options_.session.memory_bytes);
  const Result<Parsed> parsed = Parse(entry);
  Status status = parsed.status();
  if (status.ok()) status = Define(*parsed);
  definitions_.Add(entry, status.ok() ? &parsed->file : nullptr);
  for (size_t i = status.ok() ? parsed->first : 0; status.ok() && i < parsed->file.statements.size(); ++i)
    if (!IsDefinition(parsed->file.statements[i])) status = RunStatement(*parsed, i, cancellation);
  return status;
}

Result<InteractiveSession::Parsed> InteractiveSession::Parse(const std::string& entry) const {
  Parsed parsed;
  parsed.text = definitions_.TextWith(entry);
  parsed.first_line = definitions_.next_line();
  Diagnostics diagnostics;
  parsed.file = compiler::Parse(kScript, parsed.text, &diagnostics, /*takes_expressions=*/true);
  HEDDLE_RETURN_IF_ERROR(diagnostics.ToStatus());
  while (parsed.first < parsed.file.statements.size() &&
         parsed.file.statements[parsed.first].range.begin.line < parsed.first_line)
    ++parsed.first;
  for (const compiler::Token& token : compiler::Tokenize(entry)) {
    // exists("X") names a variable in a text.
    const bool is_text = token.kind == compiler::Token::Kind::kLiteral && token.value.IsString();
    const std::string name = is_text ? token.value.AsString() : std::string(token.text);
    parsed.names.insert(name);
  }
  return parsed;
}

compiler::CompileOptions InteractiveSession::OptionsFor(const Parsed& parsed, size_t first,
                                                        size_t count) const {
  compiler::CompileOptions options = options_.compile;
  options.continuation.emplace();
  options.continuation->first = first;
  options.continuation->count = count;
  for (const std::string& name : parsed.names)
    if (const Variable* variable = variables_.frame.Find(name))
      options.continuation->given.push_back(GivenOf(name, *variable));
  return options;
}

// What the entry defines: a file that is not there is an error; what is wrong in a function is a warning, as
// what it calls may be defined later.
Status InteractiveSession::Define(const Parsed& parsed) const {
  std::vector<compiler::SourceRange> functions;
  for (const compiler::FunctionDefinition& function : parsed.file.functions)
    if (function.range.begin.line >= parsed.first_line) functions.push_back(function.range);
  const std::vector<compiler::Import>& imports = parsed.file.imports;
  const bool has_imports = std::any_of(imports.begin(), imports.end(), [&](const compiler::Import& import) {
    return import.range.begin.line >= parsed.first_line;
  });
  if (functions.empty() && !has_imports) return OkStatus();
  compiler::CompileOptions options = OptionsFor(parsed, 0, 0);
  options.types_only = true;
  Diagnostics of_files;
  HEDDLE_RETURN_IF_ERROR(compiler::CompileScript(parsed.text, options, &of_files).status());
  if (functions.empty()) return OkStatus();
  options.continuation->checks_functions = true;
  Diagnostics of_functions;
  const Status status = compiler::CompileScript(parsed.text, options, &of_functions).status();
  if (!status.ok() && !of_functions.HasErrors()) return status;
  for (const Severity severity : {Severity::kError, Severity::kWarning})
    Warn(of_functions, severity, functions);
  return OkStatus();
}

// Shows what was found in these parts of the text; what is wrong elsewhere is told when that is compiled.
void InteractiveSession::Warn(const Diagnostics& diagnostics, Severity severity,
                              const std::vector<compiler::SourceRange>& within) const {
  std::string text;
  for (const Diagnostic* found : diagnostics.Sorted(severity)) {
    const bool is_within = std::any_of(within.begin(), within.end(), [&](const compiler::SourceRange& range) {
      return found->range.begin >= range.begin && found->range.begin < range.end;
    });
    if (found->file != kScript || !is_within) continue;
    Diagnostic shown = *found;
    shown.severity = Severity::kWarning;
    text += diagnostics.Render(shown);
  }
  if (!text.empty()) options_.warn(text);
}

Result<Program> InteractiveSession::CompileStatement(const Parsed& parsed, size_t statement) const {
  Diagnostics diagnostics;
  Result<Program> program =
      compiler::CompileScript(parsed.text, OptionsFor(parsed, statement, 1), &diagnostics);
  if (program.ok()) Warn(diagnostics, Severity::kWarning, {parsed.file.statements[statement].range});
  return program;
}

Status InteractiveSession::RunStatement(const Parsed& parsed, size_t statement, Cancellation* cancellation) {
  HEDDLE_ASSIGN_OR_RETURN(const Program program, CompileStatement(parsed, statement));
  SessionVariables running;
  running.seeds = variables_.seeds;
  for (const GivenVariable& given : program.given)
    running.frame.Set(given.name, *variables_.frame.Find(given.name));
  HEDDLE_RETURN_IF_ERROR(RunProgram(program, &running, cancellation, options_.print));
  variables_.seeds = running.seeds;
  for (const GivenVariable& given : program.given)
    if (running.frame.Find(given.name) == nullptr) variables_.frame.Erase(given.name);
  for (auto& [name, variable] : running.frame.variables())
    if (name[0] != '%') variables_.frame.Set(name, variable);
  const Variable* const value = running.frame.Find(compiler::kExpressionValue);
  return value == nullptr ? OkStatus() : Print(*value, cancellation);
}

Status InteractiveSession::RunProgram(const Program& program, SessionVariables* variables,
                                      Cancellation* cancellation,
                                      const std::function<void(std::string_view text)>& print) const {
  RunSurroundings surroundings;
  surroundings.directory = options_.directory;
  surroundings.print = print;
  surroundings.cancellation = cancellation;
  surroundings.variables = variables;
  surroundings.panels = panels_.get();
  return RunLocally(program, options_.session, surroundings).status;
}

// By a program of its own: what toString() says is said in one place.
Status InteractiveSession::Print(const Variable& value, Cancellation* cancellation) const {
  Variable head = value;
  if (value.value.IsPanels()) {
    const RowPanels& panels = *value.value.panels();
    const int64_t rows = std::min(kMostRows, panels.shape().rows);
    HEDDLE_ASSIGN_OR_RETURN(head.value, WithinMemory("variables", [&] { return panels.Rows(0, rows); }));
    head.is_panels = false;
    head.info.shape.rows = rows;
  }
  const Shape shape = value.info.shape;
  const bool is_large = value.info.IsTabular() && (shape.rows > kMostRows || shape.columns > kMostColumns);
  std::string script = fmt::format("print({})", kPrinted);
  if (value.info.IsTabular()) {
    const int64_t rows = shape.rows > kMostRows ? kHead : shape.rows;
    const int64_t columns = shape.columns > kMostColumns ? kHead : shape.columns;
    script = fmt::format("print(toString({}, rows={}, cols={}))", kPrinted, rows, columns);
  }
  compiler::CompileOptions options = options_.compile;
  options.continuation.emplace();
  options.continuation->given.push_back(GivenOf(kPrinted, head));
  Diagnostics diagnostics;
  HEDDLE_ASSIGN_OR_RETURN(const Program program, compiler::CompileScript(script, options, &diagnostics));
  SessionVariables shown;
  shown.frame.Set(kPrinted, head);
  std::string text;
  HEDDLE_RETURN_IF_ERROR(
      RunProgram(program, &shown, cancellation, [&](std::string_view printed) { text += printed; }));
  // toString ends its last row, and print its line.
  if (value.info.IsTabular() && text.ends_with("\n\n")) text.pop_back();
  if (is_large) text += fmt::format("({}: its head)\n", Describe(value));
  options_.print(text);
  return OkStatus();
}

Result<std::string> InteractiveSession::TypeOf(const std::string& expression) {
  if (const Variable* variable = variables_.frame.Find(expression)) return Describe(*variable);
  HEDDLE_ASSIGN_OR_RETURN(const Parsed parsed, Parse(expression));
  const auto& statements = parsed.file.statements;
  const bool is_expression = statements.size() == parsed.first + 1 && !statements.back().targets.empty() &&
                             statements.back().targets[0].name == compiler::kExpressionValue;
  if (!is_expression) return Usage(":type takes one expression");
  compiler::CompileOptions options = OptionsFor(parsed, parsed.first, 1);
  options.types_only = true;
  Diagnostics diagnostics;
  HEDDLE_ASSIGN_OR_RETURN(const Program program, compiler::CompileScript(parsed.text, options, &diagnostics));
  ValueInfo declared;
  const ValueInfo* const info = FindInfo(program, &declared);
  return info == nullptr ? Describe(ValueInfo()) : Describe(*info);
}

Result<std::string> InteractiveSession::Explain(const std::string& entry) {
  HEDDLE_ASSIGN_OR_RETURN(const Parsed parsed, Parse(entry));
  const size_t count = parsed.file.statements.size() - parsed.first;
  Diagnostics diagnostics;
  return compiler::Explain(parsed.text, OptionsFor(parsed, parsed.first, count), "program", &diagnostics);
}

std::vector<std::string> InteractiveSession::FunctionsOf(std::string_view name_space) const {
  std::vector<std::string> names;
  if (options_.compile.loader == nullptr) return names;
  Diagnostics ignored;
  compiler::ScriptLoader scripts({options_.compile.libraries}, options_.compile.loader, &ignored);
  scripts.LoadMain(kScript, definitions_.TextWith(""), /*takes_expressions=*/true);
  const auto& files = scripts.scripts().files;
  for (const compiler::Import& import : files[0].imports) {
    if (import.name_space != name_space || import.file < 0) continue;
    for (const compiler::FunctionDefinition& function : files[static_cast<size_t>(import.file)].functions)
      names.push_back(function.name);
  }
  return names;
}

Status InteractiveSession::Set(const std::string& name, const HostValue& value) {
  HEDDLE_ASSIGN_OR_RETURN(Variable variable, ToVariable(name, value, options_.session.element_type));
  variables_.frame.Set(name, std::move(variable));
  return OkStatus();
}

Result<HostValue> InteractiveSession::Get(const std::string& name) const {
  const Variable* const variable = variables_.frame.Find(name);
  if (variable != nullptr && variable->value.IsPanels()) return PutTogether(name, *variable);
  if (variable != nullptr) return ToHostValue(*variable);
  std::vector<std::string> names;
  for (const auto& [known, value] : variables_.frame.variables()) names.push_back(known);
  const std::string nearest = compiler::SuggestName(name, names);
  return NotFound("there is no variable '{}'{}", name,
                  nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

Result<HostValue> InteractiveSession::PutTogether(const std::string& name, const Variable& variable) const {
  const LimitOfRun limit(options_.session.memory_bytes);
  HEDDLE_RETURN_IF_ERROR(panels_->SetRoom(0));  // What it leaves of the memory is the value's.
  const RowPanels& panels = *variable.value.panels();
  Result<Value> whole = WithinMemory("variables", [&] { return panels.Rows(0, panels.shape().rows); });
  if (whole.ok()) return HostValue(*std::move(whole));
  return whole.status().WithNote(
      fmt::format("the rows of '{}' are not all in memory; read some of them: {}[1:1000,]", name, name));
}

void InteractiveSession::Clear() {
  variables_.frame = VariableTable();
  definitions_.Clear();
}

}  // namespace heddle::engine

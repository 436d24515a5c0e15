// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/program_builder.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/build/other_functions.h"
#include "compiler/parse/source_path.h"
#include "core/call_site.h"
#include "core/programs/argument_presence.h"

namespace heddle::compiler {
namespace {

constexpr size_t kMostPlacesShown = 4;  // where a file was looked for

std::span<const Statement> Chosen(const std::vector<Statement>& statements,
                                  const Continuation* continuation) {
  std::span<const Statement> chosen = statements;
  if (continuation == nullptr) return chosen;
  const size_t first = std::min(continuation->first, chosen.size());
  return chosen.subspan(first, std::min(continuation->count, chosen.size() - first));
}

}  // namespace

Program BuildProgram(ScriptLoader* scripts, const BuildOptions& options, Diagnostics* diagnostics) {
  return ProgramBuilder(scripts, options, diagnostics).Build();
}

Program ProgramBuilder::Build() {
  if (scripts.files.empty()) return {};
  program_.script = scripts.files[0].path;
  BodyBuilder main(this, 0, "");
  if (options.continuation != nullptr) {
    program_.given = options.continuation->given;
    main.GoOnWith(program_.given);
  }
  program_.main = main.BuildMain(Chosen(scripts.files[0].statements, options.continuation));
  if (options.continuation != nullptr) program_.kept = KeptOf(main, *options.continuation);
  for (const auto& function : scripts.files[0].functions) {
    if (!options.any_arguments) break;
    const DmlFunction& called = *functions.Find(0, "", function.name);
    Need(called, function.name_range.Position(scripts.files[0].path));
    program_.main.push_back(BodyBuilder(this, 0, "").BuildAnyCall(called));
  }
  BuildNeeded();
  BuildCandidates();
  if (has_gradients_) KeepReached();  // not what only made derivatives
  if (!IsWholeScript(options.continuation) && !options.continuation->checks_functions)
    return std::move(program_);

  // The rest of the main script is checked, then forgotten.
  std::set<std::string> reached;
  for (const auto& [key, function] : program_.functions) reached.insert(key);
  reachable_ = false;
  for (const FunctionDefinition& definition : scripts.files[0].functions)
    Need(*functions.Find(0, "", definition.name), definition.name_range.Position(scripts.files[0].path));
  BuildNeeded();
  std::erase_if(program_.functions, [&](const auto& entry) { return !reached.contains(entry.first); });
  return std::move(program_);
}

std::vector<std::string> ProgramBuilder::KeptOf(const BodyBuilder& main, const Continuation& continuation) {
  std::vector<std::string> names = main.NamesToKeep();
  if (!continuation.outputs) return names;
  for (const std::string& output : *continuation.outputs) {
    if (std::find(names.begin(), names.end(), output) != names.end()) continue;
    Diagnostic& error = diagnostics.Error(
        program_.script, {}, fmt::format("there is no variable '{}' at the end of the script", output));
    error.notes.push_back("it is asked for as an output; nothing assigns it");
    error.suggestion = SuggestName(output, names);
  }
  return *continuation.outputs;
}

const Callee* ProgramBuilder::FindCallee(int32_t file, const Expression& call) {
  if (call.name_space.empty()) {  // Asked several times for each call of a script.
    const std::map<std::string, Callee, std::less<>>& known = callees_[file];
    if (const auto found = known.find(call.name); found != known.end())
      return found->second.Exists() ? &found->second : nullptr;
  }
  const std::string name = call.name_space.empty() ? call.name : call.name_space + "::" + call.name;
  return FindCalleeNamed(file, name, call.name_range.Position(scripts.files[static_cast<size_t>(file)].path));
}

const Callee* ProgramBuilder::FindCalleeNamed(int32_t file, const std::string& name,
                                              const SourcePosition& call) {
  const auto [found, is_new] = callees_[file].try_emplace(name);
  Callee& callee = found->second;
  if (is_new) {
    const size_t colons = name.rfind("::");
    const std::string name_space = colons == std::string::npos ? "" : name.substr(0, colons);
    const std::string function = colons == std::string::npos ? name : name.substr(colons + 2);
    const DmlFunction* known = functions.Find(file, name_space, function);
    if (known == nullptr && !name_space.empty()) known = FindInFileNamed(name_space, function);
    if (known != nullptr) {
      callee.functions[DataType::kUnknown] = known;
    } else if (name == "eval" || name == "evalList") {
      callee.is_eval = true;
    } else if (name == "paramserv") {
      callee.is_paramserv = true;
    } else if (name == "gradient") {
      callee.is_gradient = true;
    } else if (name_space.empty() && ops::FindBuiltin(name) == nullptr && !InsteadOfNative(name) &&
               std::find(std::begin(kListBuiltins), std::end(kListBuiltins), name) ==
                   std::end(kListBuiltins)) {
      FindInLibrary(name, IsHeddles(file), call, &callee);
    }
  }
  return callee.Exists() ? &callee : nullptr;
}

// A function of a loaded file by the path of the file, which is looked for where source() looks for it.
const DmlFunction* ProgramBuilder::FindInFileNamed(const std::string& path, const std::string& name) const {
  Import import;
  import.path = JoinPath("", path);
  for (const std::string& candidate : ImportCandidates(import, loader.options()))
    for (size_t i = 0; i < scripts.files.size(); ++i)
      if (JoinPath("", scripts.files[i].path) == candidate)
        return functions.Find(static_cast<int32_t>(i), "", name);
  return nullptr;
}

const DmlFunction* ProgramBuilder::FindUserFunction(int32_t file, const std::string& name,
                                                    const SourcePosition& call) {
  // The reference engine's name for the main script.
  constexpr std::string_view kMain = ".defaultNS::";
  const bool is_in_main = name.starts_with(kMain);
  const std::string known = is_in_main ? name.substr(kMain.size()) : name;
  for (const int32_t from : {is_in_main ? 0 : file, 0}) {
    const Callee* callee = FindCalleeNamed(from, known, call);
    if (callee != nullptr && callee->functions.contains(DataType::kUnknown))
      return callee->functions.at(DataType::kUnknown);
  }
  return nullptr;
}

const DmlFunction* ProgramBuilder::FindParamserv(const ParamservFunctions& of) {
  const DmlFunction*& script = paramservs_[of];
  if (script != nullptr) return script;
  const size_t count = paramservs_.size();
  std::string path(kParamservFile);
  if (count > 1) path.insert(path.rfind('.'), fmt::format("-{}", count));
  const int32_t file = loader.AddWritten(path, ParamservScript(of), ParamservImports(of));
  functions.Add(scripts);
  script = functions.Find(file, "", "paramserv");
  HEDDLE_CHECK(script != nullptr, "the script of paramserv() must parse");
  return script;
}

bool ProgramBuilder::IsHeddles(int32_t file) const {
  return scripts.files[static_cast<size_t>(file)].path.starts_with(kLibraryPrefix);
}

void ProgramBuilder::FindInLibrary(const std::string& name, bool from_library, const SourcePosition& call,
                                   Callee* callee) {
  const std::optional<int32_t> file = loader.LoadLibraryFunction(name, call, from_library);
  if (!file) return;
  functions.Add(scripts);
  callee->is_broken = scripts.files[static_cast<size_t>(*file)].has_errors;
  for (const EntryPoint& entry : kEntryPoints) {
    const DmlFunction* function = functions.Find(*file, "", std::string(entry.prefix) + name);
    if (function != nullptr) callee->functions[entry.first_argument] = function;
  }
  if (!callee->functions.empty() || callee->is_broken) return;
  diagnostics
      .Error(scripts.files[static_cast<size_t>(*file)].path, {},
             fmt::format("the file defines none of m_{0}, f_{0} and s_{0}", name))
      .notes.push_back(fmt::format("in the file of {}(), called at {}", name, call.ToString()));
  callee->is_broken = true;
}

void ProgramBuilder::Need(const DmlFunction& function, const SourcePosition& call) {
  if (needed_.emplace(&function, FirstCall{call, current_}).second) waiting_.push_back(&function);
}

const DmlFunction& ProgramBuilder::ForList(const DmlFunction& function) {
  const std::vector<ParameterDefinition>& parameters = function.definition->parameters;
  if (std::none_of(parameters.begin(), parameters.end(), HasComputedDefault)) return function;
  DmlFunction made = function;
  made.key += "%list";
  made.of_list = &function;
  return for_lists_.emplace(&function, std::move(made)).first->second;
}

void ProgramBuilder::NeedByName(EvalSite site) {
  if (reachable_) eval_sites_.push_back(std::move(site));
}

void ProgramBuilder::NeedGradient(GradientRequest request) {
  if (reachable_) gradients_.push_back(std::move(request));
}

// Where something is wrong with a function, that is said, and nothing of its derivative.
void ProgramBuilder::BuildGradients() {
  const std::vector<GradientRequest> requests = std::exchange(gradients_, {});
  if (requests.empty() || diagnostics.HasErrors()) return;
  has_gradients_ = true;
  for (const Status& error : AddGradients(requests, &program_, &next_block_id)) diagnostics.AddStatus(error);
}

void ProgramBuilder::BuildNeeded() {
  while (!waiting_.empty()) {
    current_ = waiting_.front();
    waiting_.pop_front();
    const size_t reported = diagnostics.size();
    program_.functions[current_->key] = BuildFunction(*current_);
    if (!scripts.files[static_cast<size_t>(current_->file)].is_library) continue;
    if (!is_certain_) {
      if (const std::string error = diagnostics.TakeErrors(reported); !error.empty())
        missing_parts_.try_emplace(current_->key, error);
      continue;
    }
    // Who wrote the call may not know the file of the library.
    diagnostics.AddNotes(reported, WayTo(*current_));
  }
  current_ = nullptr;
  BuildGradients();
}

std::vector<std::string> ProgramBuilder::WayTo(const DmlFunction& function) const {
  std::vector<CallSite> calls;
  for (const DmlFunction* callee = &function; callee != nullptr; callee = needed_.at(callee).caller)
    calls.push_back({callee->name, needed_.at(callee).position});
  return CallStackNotes(calls);
}

void ProgramBuilder::ReportUnimplemented(const std::string& file, const SourceRange& range,
                                         const std::string& what, std::string_view instead) {
  if (!reachable_) return;
  const std::string message = what + " part of DML but Heddle does not run it yet";
  if (is_certain_) {
    Diagnostic& diagnostic = diagnostics.Error(file, range, message);
    if (!instead.empty()) diagnostic.notes.emplace_back(instead);
    diagnostic.is_missing = true;
  } else {
    missing_parts_.try_emplace(current_->key,
                               fmt::format("{}: {}", range.Position(file).ToString(), message));
  }
}

void ProgramBuilder::ReportMissingLibrary(const std::string& file, const Expression& call) {
  if (!reachable_) return;
  if (!is_certain_) {
    missing_parts_.try_emplace(current_->key,
                               fmt::format("{}: the library has no file for {}()",
                                           call.name_range.Position(file).ToString(), call.name));
    return;
  }
  Diagnostic& diagnostic =
      diagnostics.Error(file, call.name_range,
                        fmt::format("{}() is a function of the library, which has no such file", call.name));
  diagnostic.is_missing = true;
  for (const std::string& candidate : LibraryCandidates(call.name, loader.options())) {
    if (diagnostic.notes.size() == kMostPlacesShown) break;
    diagnostic.notes.push_back("tried " + candidate);
  }
  diagnostic.notes.push_back(WhereLibraryIs(call.name));
}

Function ProgramBuilder::BuildFunction(const DmlFunction& function) {
  const FunctionDefinition& definition = *function.definition;
  const std::string& file = scripts.files[static_cast<size_t>(function.file)].path;
  Function result;
  result.name = function.name;
  result.position = definition.name_range.Position(file);
  const auto convert = [](const ParameterDefinition& parameter) {
    Parameter made{parameter.name, parameter.data_type, parameter.value_type, {}};
    if (parameter.default_value != nullptr && !HasComputedDefault(parameter))
      made.default_value = parameter.default_value->literal;
    return made;
  };
  for (const ParameterDefinition& parameter : definition.parameters)
    result.parameters.push_back(convert(parameter));
  for (const ParameterDefinition& parameter : definition.results)
    result.results.push_back(convert(parameter));
  BodyBuilder body(this, function.file, definition.name);
  if (function.of_list == nullptr) {
    result.body = body.BuildFunction(definition);
    return result;
  }
  Need(*function.of_list, result.position);
  result.body = body.BuildForList(*function.of_list);
  for (const ParameterDefinition& parameter : definition.parameters)
    if (HasComputedDefault(parameter))
      result.parameters.push_back({PresenceOf(parameter.name), DataType::kScalar, ValueType::kBoolean, {}});
  return result;
}

}  // namespace heddle::compiler

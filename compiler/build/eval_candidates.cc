// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <sstream>

#include "compiler/build/program_builder.h"
#include "compiler/build/script_arguments.h"
#include "compiler/library/library_files.h"
#include "core/programs/for_each_block.h"

// What an eval() whose name is computed may call: the functions of its file, of the main script and of
// sourced files, and the functions of the library that a string in the program, or an argument of the script,
// names, or a small file of data that such a string names. A candidate with a part of DML that Heddle does
// not run is an error only if it is called.
namespace heddle::compiler {
namespace {

void AddTexts(const Expression& expression, std::set<std::string>* texts) {
  if (expression.kind == Expression::Kind::kLiteral && expression.literal.IsString())
    texts->insert(expression.literal.AsString());
  for (const ExpressionPointer& operand : expression.operands) AddTexts(*operand, texts);
  for (const Argument& argument : expression.arguments) AddTexts(*argument.value, texts);
}

void AddTexts(const std::vector<Statement>& statements, std::set<std::string>* texts) {
  for (const Statement& statement : statements) {
    for (const ExpressionPointer* part :
         {&statement.value, &statement.from, &statement.to, &statement.increment})
      if (*part != nullptr) AddTexts(**part, texts);
    AddTexts(statement.body, texts);
    AddTexts(statement.otherwise, texts);
  }
}

void AddTexts(const ScriptFile& file, std::set<std::string>* all) {
  std::set<std::string> texts;
  AddTexts(file.statements, &texts);
  for (const FunctionDefinition& function : file.functions) {
    AddTexts(function.body, &texts);
    for (const ParameterDefinition& parameter : function.parameters)
      if (parameter.default_value != nullptr) AddTexts(*parameter.default_value, &texts);
  }
  // A function of the library has its own name in its messages.
  if (const LibraryFile* const own = FindLibraryPath(file.path)) texts.erase(std::string(FunctionOf(*own)));
  all->merge(texts);
}

bool IsName(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

// True for a text that could name a file of data: dir/param.csv.
bool IsPath(const std::string& text) {
  constexpr size_t kLongestPath = 4096;
  return text.size() < kLongestPath && text.find_first_of("./") != text.npos &&
         text.find_first_of("\n\t\"") == text.npos;
}

void AddReached(const std::vector<Block>& blocks, std::vector<std::string>* functions) {
  ForEachBlock(blocks, [&](const Block& block) {
    ForEachCallee(block, [&](const std::string& function, const auto&) { functions->push_back(function); });
  });
}

// Whether the only argument may be a list of all of the function's.
bool MayExpand(const ProgramBuilder::EvalSite& site, const DmlFunction& function) {
  const std::vector<ParameterDefinition>& parameters = function.definition->parameters;
  return site.arguments.size() == 1 &&
         (site.first_argument == DataType::kList || site.first_argument == DataType::kUnknown) &&
         !(parameters.size() == 1 && parameters[0].data_type == DataType::kList);
}

}  // namespace

void ProgramBuilder::BuildCandidates() {
  if (eval_sites_.empty()) return;
  is_certain_ = false;
  // Files that candidates need bring strings of their own.
  std::set<std::string> names = NamesInTexts();
  for (size_t built = 0; built < eval_sites_.size() || !waiting_.empty();) {
    built = eval_sites_.size();
    for (size_t i = 0; i < built; ++i)
      for (const EvalCandidate& candidate : CandidatesOf(eval_sites_[i], names))
        Need(CalledBy(eval_sites_[i], *candidate.function), eval_sites_[i].position);
    BuildNeeded();
    if (std::set<std::string> more = NamesInTexts(); more != names) {
      names = std::move(more);
      built = 0;
    }
  }
  std::map<int32_t, std::vector<CallCandidate>> candidates;
  for (const EvalSite& site : eval_sites_) {
    for (const EvalCandidate& candidate : CandidatesOf(site, names))
      candidates[site.block].push_back(CandidateFor(site, candidate));
    // A call without candidates would be one of a function without a name.
    if (candidates[site.block].empty()) candidates[site.block].emplace_back();
  }
  ForEachBlock(program_, [&](Block& block) {
    if (const auto found = candidates.find(block.id); found != candidates.end())
      block.candidates = found->second;
  });
  KeepReached();
  is_certain_ = true;
}

// Strings of the program, and arguments of the script, that could be the name of a function, and such words
// of the small files that they name.
std::set<std::string> ProgramBuilder::NamesInTexts() {
  std::set<std::string> texts;
  for (const ScriptFile& file : scripts.files) AddTexts(file, &texts);
  for (const auto& [name, text] : options.arguments) texts.insert(ArgumentValue(text).ToText());
  std::set<std::string> names;
  for (const std::string& text : texts) {
    if (IsName(text)) names.insert(text);
    if (!IsPath(text)) continue;
    const auto [found, is_new] = names_in_files_.try_emplace(text);
    if (is_new) {
      std::istringstream lines(options.loader->LoadNames(text));
      for (std::string name; std::getline(lines, name);) found->second.push_back(name);
    }
    names.insert(found->second.begin(), found->second.end());
  }
  return names;
}

std::vector<ProgramBuilder::EvalCandidate> ProgramBuilder::CandidatesOf(const EvalSite& site,
                                                                        const std::set<std::string>& names) {
  // What a list holds is the arguments; it counts as a matrix.
  const DataType first = site.first_argument == DataType::kList ? DataType::kMatrix : site.first_argument;
  std::vector<EvalCandidate> candidates;
  for (const int32_t file : {site.file, 0})
    for (const auto& [name, function] : functions.FunctionsOf(file))
      candidates.push_back({name, DataType::kUnknown, &function});
  const size_t files = scripts.files.size();
  for (size_t file = 1; file < files; ++file) {
    if (scripts.files[file].is_library) continue;
    for (const auto& [name, function] : functions.FunctionsOf(static_cast<int32_t>(file)))
      candidates.push_back({function.key, DataType::kUnknown, &function});
  }
  // Functions of Heddle's library call by the names that the script gives them.
  const int32_t from = IsHeddles(site.file) ? 0 : site.file;
  for (const std::string& text : names) {
    const Callee* callee = FindCalleeNamed(from, text, site.position);
    if (callee == nullptr || !callee->IsLibrary()) continue;
    for (const auto& [type, function] : callee->functions)
      if (first == DataType::kUnknown || CallCandidate::IsFor(type, first))
        candidates.push_back({text, type, function});
  }
  return candidates;
}

// With a list, defaults are computed first.
const DmlFunction& ProgramBuilder::CalledBy(const EvalSite& site, const DmlFunction& function) {
  return MayExpand(site, function) ? ForList(function) : function;
}

CallCandidate ProgramBuilder::CandidateFor(const EvalSite& site, const EvalCandidate& candidate) {
  CallCandidate made;
  made.name = candidate.name;
  made.first_argument = candidate.first_argument;
  const DmlFunction& called = CalledBy(site, *candidate.function);
  const std::vector<ParameterDefinition>& parameters = candidate.function->definition->parameters;
  made.reason = WhyNot(called);
  const bool is_missing = !made.reason.empty();
  const bool may_expand = MayExpand(site, *candidate.function);
  if (made.reason.empty() && !may_expand && parameters.size() != site.arguments.size())
    made.reason = fmt::format("eval() gives all arguments of a function: {}() takes {}, got {}",
                              candidate.name, parameters.size(), site.arguments.size());
  if (made.reason.empty() && candidate.function->definition->results.empty())
    made.reason = fmt::format("{}() returns no result", candidate.name);
  made.is_wrong = !made.reason.empty() && !is_missing;
  if (!made.reason.empty()) return made;
  made.function = called.key;
  if (may_expand) {
    made.arguments = {{"", site.arguments[0]}};
    return made;
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    made.arguments.emplace_back(parameters[i].name, site.arguments[i]);
  return made;
}

// The first part of DML that the function, or one that it calls, uses and Heddle does not run; "" for none.
std::string ProgramBuilder::WhyNot(const DmlFunction& function) const {
  std::vector<std::string> open = {function.key};
  std::set<std::string> seen(open.begin(), open.end());
  for (size_t i = 0; i < open.size(); ++i) {
    if (const auto found = missing_parts_.find(open[i]); found != missing_parts_.end()) return found->second;
    const auto callee = program_.functions.find(open[i]);
    if (callee == program_.functions.end()) continue;
    std::vector<std::string> called;
    AddReached(callee->second.body, &called);
    for (std::string& key : called)
      if (seen.insert(key).second) open.push_back(std::move(key));
  }
  return "";
}

// Leaves the functions that the main script reaches.
void ProgramBuilder::KeepReached() {
  std::vector<std::string> open;
  AddReached(program_.main, &open);
  std::set<std::string> reached;
  while (!open.empty()) {
    const std::string key = std::move(open.back());
    open.pop_back();
    const auto found = program_.functions.find(key);
    if (found != program_.functions.end() && reached.insert(key).second)
      AddReached(found->second.body, &open);
  }
  std::erase_if(program_.functions, [&](const auto& entry) { return !reached.contains(entry.first); });
}

}  // namespace heddle::compiler

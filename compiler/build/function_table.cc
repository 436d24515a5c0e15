// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/function_table.h"

namespace heddle::compiler {
namespace {

// The name by which scripts call a function of a library file: lm of m_lm in lm.dml.
std::string CalledName(const ScriptFile& script, const std::string& name) {
  const size_t folder = script.path.find_last_of("/:");
  const std::string file = script.path.substr(folder == std::string::npos ? 0 : folder + 1);
  for (const EntryPoint& entry : kEntryPoints)
    if (name.starts_with(entry.prefix) && name.substr(entry.prefix.size()) + ".dml" == file)
      return name.substr(entry.prefix.size());
  return name;
}

}  // namespace

bool HasComputedDefault(const ParameterDefinition& parameter) {
  return parameter.default_value != nullptr && parameter.default_value->kind != Expression::Kind::kLiteral;
}

void FunctionTable::Add(const ScriptSet& scripts) {
  for (size_t file = functions_.size(); file < scripts.files.size(); ++file) {
    const auto id = static_cast<int32_t>(file);
    const ScriptFile& script = scripts.files[file];
    std::map<std::string, int32_t>& name_spaces = name_spaces_.emplace_back();
    for (const Import& import : script.imports) {
      name_spaces.emplace(import.name_space, import.file);
      if (file == 0) seen_by_main_.emplace(import.file, import.name_space);
    }
    std::string prefix;
    if (file > 0) prefix = (seen_by_main_.contains(id) ? seen_by_main_.at(id) : script.path) + "::";
    const bool is_named_by_file = script.is_library && !seen_by_main_.contains(id);
    std::map<std::string, DmlFunction>& functions = functions_.emplace_back();
    for (const FunctionDefinition& function : script.functions) {
      const std::string key = prefix + function.name;
      functions.emplace(
          function.name,
          DmlFunction{key, is_named_by_file ? CalledName(script, function.name) : key, &function, id});
    }
  }
}

int32_t FunctionTable::FileOf(int32_t file, const std::string& name_space) const {
  if (name_space.empty()) return file;
  const auto& name_spaces = name_spaces_[static_cast<size_t>(file)];
  auto found = name_spaces.find(name_space);
  return found == name_spaces.end() ? -1 : found->second;
}

const DmlFunction* FunctionTable::Find(int32_t file, const std::string& name_space,
                                       const std::string& name) const {
  const int32_t target = FileOf(file, name_space);
  if (target < 0) return nullptr;
  const auto& functions = functions_[static_cast<size_t>(target)];
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : &found->second;
}

bool FunctionTable::HasNameSpace(int32_t file, const std::string& name_space) const {
  return name_spaces_[static_cast<size_t>(file)].contains(name_space);
}

bool FunctionTable::IsLoaded(int32_t file, const std::string& name_space) const {
  return FileOf(file, name_space) >= 0;
}

std::vector<std::string> FunctionTable::NamesIn(int32_t file, const std::string& name_space) const {
  std::vector<std::string> names;
  const int32_t target = FileOf(file, name_space);
  if (target < 0) return names;
  for (const auto& [name, function] : functions_[static_cast<size_t>(target)]) names.push_back(name);
  return names;
}

std::vector<std::string> FunctionTable::NameSpacesIn(int32_t file) const {
  std::vector<std::string> names;
  for (const auto& [name, target] : name_spaces_[static_cast<size_t>(file)]) names.push_back(name);
  return names;
}

}  // namespace heddle::compiler

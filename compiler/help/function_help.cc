// SPDX-License-Identifier: Apache-2.0
#include "compiler/help/function_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <utility>

#include "compiler/build/function_table.h"
#include "compiler/build/other_functions.h"
#include "compiler/help/builtin_help.h"
#include "compiler/parse/parser.h"
#include "ops/base/operator.h"
#include "ops/base/operator_traits.h"

namespace heddle::compiler {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kIndent = "  ";

// The lines of the comment at the head of a file, behind the licence, without "# ".
Lines HeadOf(std::string_view text) {
  Lines lines;
  while (text.starts_with('#')) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(1, end - 1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (!line.starts_with("SPDX")) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool IsSection(const std::string& line, std::string_view title) {
  return line.starts_with(title) && line.substr(title.size()).starts_with(':');
}

// The lines of "Title: text", with those below that are indented; those are taken out of `head`.
Lines TakeSection(std::string_view title, Lines* head) {
  Lines section;
  const auto begin = std::find_if(head->begin(), head->end(),
                                  [&](const std::string& line) { return IsSection(line, title); });
  if (begin == head->end()) return section;
  auto end = begin + 1;
  const size_t text = begin->find_first_not_of(' ', title.size() + 1);
  if (text != std::string::npos) section.push_back(begin->substr(text));
  for (; end != head->end() && end->starts_with(kIndent); ++end)
    section.push_back(end->substr(kIndent.size()));
  head->erase(begin, end);
  return section;
}

// From "name   text" and lines indented below it.
std::vector<FunctionHelp::Parameter> DescribedIn(const Lines& section) {
  std::vector<FunctionHelp::Parameter> described;
  for (const std::string& line : section) {
    const size_t text = line.starts_with(' ') ? 0 : line.find(' ');
    if (text != 0) {
      described.emplace_back().name = line.substr(0, text);
    } else if (described.empty()) {
      continue;
    }
    const size_t begin = text == std::string::npos ? text : line.find_first_not_of(' ', text);
    if (begin != std::string::npos) described.back().lines.push_back(line.substr(begin));
  }
  return described;
}

std::string_view TypeOf(const ParameterDefinition& parameter) {
  if (parameter.data_type != DataType::kScalar) return Name(parameter.data_type);
  switch (parameter.value_type) {
    case ValueType::kInteger: return "integer";
    case ValueType::kBoolean: return "boolean";
    case ValueType::kString: return "string";
    default: return "double";
  }
}

// Texts of library files have ASCII alone, so that columns are bytes.
std::string TextBetween(const SourceRange& range, std::string_view text) {
  const auto offset = [&](const Place& place) {
    size_t at = 0;
    for (int32_t line = 1; line < place.line; ++line) at = text.find('\n', at) + 1;
    return at + static_cast<size_t>(place.column) - 1;
  };
  const size_t begin = offset(range.begin);
  return std::string(text.substr(begin, offset(range.end) - begin));
}

// Adds types and defaults to what the header says; an error where it describes others than the function has.
Status Complete(std::string_view path, std::string_view what,
                const std::vector<ParameterDefinition>& declared, std::string_view text,
                std::vector<FunctionHelp::Parameter>* described) {
  for (size_t i = 0; i < declared.size(); ++i) {
    if (i >= described->size() || (*described)[i].name != declared[i].name || (*described)[i].lines.empty())
      return Internal("{}: the header does not describe the {} '{}' in its turn", path, what,
                      declared[i].name);
    (*described)[i].type = TypeOf(declared[i]);
    if (declared[i].default_value)
      (*described)[i].default_value = TextBetween(declared[i].default_value->range, text);
  }
  if (described->size() > declared.size())
    return Internal("{}: there is no {} '{}'", path, what, (*described)[declared.size()].name);
  return OkStatus();
}

Lines Trimmed(Lines lines) {
  const auto is_text = [](const std::string& line) { return !line.empty(); };
  lines.erase(lines.begin(), std::find_if(lines.begin(), lines.end(), is_text));
  lines.erase(std::find_if(lines.rbegin(), lines.rend(), is_text).base(), lines.end());
  return lines;
}

void RenderParameters(std::string_view title, const std::vector<FunctionHelp::Parameter>& parameters,
                      std::string* text) {
  if (parameters.empty()) return;
  *text += fmt::format("\n{}:\n", title);
  size_t names = 0, types = 0;
  for (const FunctionHelp::Parameter& parameter : parameters) {
    names = std::max(names, parameter.name.size());
    types = std::max(types, parameter.type.size());
  }
  for (const FunctionHelp::Parameter& parameter : parameters)
    for (size_t i = 0; i < parameter.lines.size(); ++i)
      *text += fmt::format("  {:<{}}  {:<{}}  {}\n", i == 0 ? parameter.name : "", names,
                           i == 0 ? parameter.type : "", types, parameter.lines[i]);
}

void RenderSection(std::string_view title, const Lines& lines, std::string* text) {
  for (size_t i = 0; i < lines.size(); ++i)
    *text += i == 0 ? fmt::format("{}: {}\n", title, lines[i]) : fmt::format("  {}\n", lines[i]);
}

// Whether a name is an operator between or before operands: "%*%", "!".
bool IsOperatorSign(std::string_view name) {
  const ops::Operator* const op = ops::FindOperator(name);
  return op != nullptr && op->form == ops::CallForm::kNone &&
         std::ispunct(static_cast<unsigned char>(name[0]));
}

}  // namespace

std::string FunctionHelp::Usage() const {
  std::string text;
  for (const Parameter& result : results) text += (text.empty() ? "" : ", ") + result.name;
  if (results.size() > 1) text = "[" + text + "]";
  if (!results.empty()) text += " = ";
  text += name + "(";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) text += ", ";
    text += arguments[i].name;
    if (!arguments[i].default_value.empty()) text += "=" + arguments[i].default_value;
  }
  return text + ")";
}

Result<FunctionHelp> HelpOf(const LibraryFile& file) {
  FunctionHelp help;
  help.name = FunctionOf(file);
  Diagnostics diagnostics;
  const ScriptFile script = Parse(LibraryPath(file), std::string(file.text), &diagnostics);
  if (diagnostics.HasErrors()) return Internal("{}", diagnostics.RenderAll(Severity::kError));
  const FunctionDefinition* entry = nullptr;
  for (const EntryPoint& point : kEntryPoints)
    for (const FunctionDefinition& function : script.functions)
      if (entry == nullptr && function.name == std::string(point.prefix) + help.name) entry = &function;
  if (entry == nullptr)
    return Internal("{}: no function m_{}, f_{} or s_{}", file.path, help.name, help.name, help.name);

  Lines head = HeadOf(file.text);
  if (head.empty() || !head[0].starts_with(help.name + ": ") || !head[0].ends_with('.'))
    return Internal("{}: the header does not begin with '{}: ' and a sentence", file.path, help.name);
  help.summary = head[0].substr(help.name.size() + 2, head[0].size() - help.name.size() - 3);
  head.erase(head.begin());
  help.arguments = DescribedIn(TakeSection("Arguments", &head));
  help.results = DescribedIn(TakeSection("Returns", &head));
  if (entry->results.empty() && help.results.size() == 1 && help.results[0].name == "nothing")
    help.results.clear();
  HEDDLE_RETURN_IF_ERROR(Complete(file.path, "argument", entry->parameters, file.text, &help.arguments));
  HEDDLE_RETURN_IF_ERROR(Complete(file.path, "result", entry->results, file.text, &help.results));
  help.method = TakeSection("Method", &head);
  help.source = TakeSection("Source", &head);
  if (help.method.empty() || help.source.empty())
    return Internal("{}: the header has no Method or no Source", file.path);
  for (const std::string& line : TakeSection("See also", &head))
    for (size_t at = 0; at < line.size();) {
      const size_t end = std::min(line.find(',', at), line.size());
      help.see_also.push_back(line.substr(at, end - at));
      at = line.find_first_not_of(", ", end);
    }
  help.description = Trimmed(std::move(head));
  return help;
}

std::string Render(const FunctionHelp& help) {
  std::string text = fmt::format("{}: {}\n\n  {}\n", help.name, help.summary, help.Usage());
  if (!help.description.empty()) text += fmt::format("\n{}\n", fmt::join(help.description, "\n"));
  RenderParameters("arguments", help.arguments, &text);
  RenderParameters("results", help.results, &text);
  text += "\n";
  RenderSection("method", help.method, &text);
  RenderSection("source", help.source, &text);
  if (!help.see_also.empty()) text += fmt::format("see also: {}\n", fmt::join(help.see_also, ", "));
  return text;
}

std::string HelpOfName(std::string_view name) {
  if (const LibraryFile* const file = FindLibraryFunction(name)) {
    const Result<FunctionHelp> help = HelpOf(*file);
    return help.ok() ? Render(*help) : help.status().ToString() + "\n";
  }
  if (const BuiltinHelp* const builtin = FindBuiltinHelp(name)) return Render(*builtin);
  if (const ops::Operator* const of_alias = ops::FindBuiltin(name))
    return fmt::format("{} is another name of {}.\n\n{}", name, of_alias->name, HelpOfName(of_alias->name));
  if (IsOperatorSign(name)) return HelpOfName("operators");
  if (const std::optional<std::string_view> instead = InsteadOfNative(name))
    return fmt::format("{}: part of DML, but Heddle does not run it yet\n{}{}{}", name,
                       instead->empty() ? "" : "\n", *instead, instead->empty() ? "" : "\n");
  return "";
}

std::string NearestFunction(std::string_view name) {
  std::vector<std::string> names;
  for (const BuiltinHelp& builtin : BuiltinHelps()) names.push_back(builtin.name);
  for (const ops::Operator* const op : ops::AllOperators()) {
    std::istringstream aliases{std::string(op->aliases)};
    for (std::string alias; aliases >> alias;) names.push_back(alias);
  }
  for (std::string& function : LibraryFunctionNames()) names.push_back(std::move(function));
  return SuggestName(name, names);
}

std::string BuiltinOverview() {
  std::string text, room;
  for (const BuiltinHelp& help : BuiltinHelps()) {
    if (help.room != room) text += fmt::format("{}{}:\n", room.empty() ? "" : "\n", help.room);
    room = help.room;
    text += fmt::format("  {}: {}\n", help.name, help.summary);
  }
  return text;
}

std::string LibraryOverview() {
  std::string text, room;
  for (const LibraryFile& file : LibraryFiles()) {
    if (FunctionOf(file).empty()) continue;
    const std::string of_file(file.path.substr(0, file.path.find('/')));
    if (of_file != room) text += fmt::format("{}{}:\n", room.empty() ? "" : "\n", of_file);
    room = of_file;
    const Lines head = HeadOf(file.text);
    if (!head.empty()) text += fmt::format("  {}\n", head[0].substr(0, head[0].size() - 1));
  }
  return text;
}

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include "compiler/help/builtin_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace heddle::compiler {
namespace {

// "order" of "M = order(target=X, by=1)"; "while" of "while (c) { ... }", which is no call.
std::string NameIn(std::string_view usage) {
  const size_t end = std::min(usage.find('('), usage.size());
  size_t begin = end;
  const auto is_part = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '_';
  };
  while (begin > 0 && is_part(usage[begin - 1])) --begin;
  if (begin == end) return std::string(usage.substr(0, usage.find(' ')));
  return std::string(usage.substr(begin, end - begin));
}

std::vector<BuiltinHelp> Parse(std::string_view text) {
  std::vector<BuiltinHelp> helps;
  std::string room;
  std::istringstream lines{std::string(text)};
  bool is_first = true;  // line of a builtin
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      room = line.substr(3);
    } else if (line.starts_with('#')) {
      continue;
    } else if (line.empty()) {
      is_first = true;
    } else if (is_first) {
      helps.push_back({.name = NameIn(line), .room = room, .usage = line, .summary = "", .description = {}});
      is_first = false;
    } else if (helps.back().summary.empty()) {
      helps.back().summary = line;
    } else {
      helps.back().description.push_back(line);
    }
  }
  return helps;
}

}  // namespace

std::span<const BuiltinHelp> BuiltinHelps() {
  static const auto* const helps = new std::vector<BuiltinHelp>(Parse(HelpTexts()[0].text));
  return *helps;
}

const BuiltinHelp* FindBuiltinHelp(std::string_view name) {
  for (const BuiltinHelp& help : BuiltinHelps())
    if (help.name == name) return &help;
  return nullptr;
}

std::string Render(const BuiltinHelp& help) {
  std::string text = fmt::format("{}: {}\n", help.name, help.summary);
  if (help.usage != help.name) text += fmt::format("\n  {}\n", help.usage);
  if (!help.description.empty()) text += fmt::format("\n{}\n", fmt::join(help.description, "\n"));
  return text;
}

}  // namespace heddle::compiler

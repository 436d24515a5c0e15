// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <thread>

#include "compiler/parse/diagnostics.h"
#include "core/text/time_text.h"

namespace heddle::cluster::cli {
namespace {

const Option* Find(std::span<const Option> options, std::string_view name) {
  for (const Option& option : options)
    if (option.name == name || (!option.alias.empty() && option.alias == name)) return &option;
  return nullptr;
}

Status UnknownOption(std::string_view word, std::string_view name, std::span<const Option> options) {
  std::vector<std::string> names;
  for (const Option& option : options)
    if (!option.help.empty()) names.emplace_back(option.name);
  const std::string nearest = compiler::SuggestName(name, names);
  if (nearest.empty()) return Usage("unknown option {}", word);
  return Usage("unknown option {}; did you mean {}?", word, WithDashes(*Find(options, nearest)));
}

bool IsNumber(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
}

// What -stats and -explain may be followed by.
bool IsOptionalValue(std::string_view option, std::string_view word) {
  if (option == "stats") return IsNumber(word);
  if (option == "chaos") return word.find('=') != std::string_view::npos && word.find('=') < word.find('/');
  for (std::string_view level : {"hops", "runtime", "recompile_hops", "recompile_runtime", "codegen",
                                 "codegen_recompile", "program", "plan"})
    if (word == level) return true;
  return false;
}

bool IsParameterName(std::string_view name) {
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace

std::vector<Option> JoinOptions(std::initializer_list<std::span<const Option>> lists) {
  std::vector<Option> all;
  for (const std::span<const Option> list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::string WithDashes(const Option& option) {
  const bool short_form = option.name.size() == 1 || option.kind == Option::Kind::kRest;
  return fmt::format("{}{}", short_form ? "-" : "--", option.name);
}

std::optional<std::string> Arguments::Value(std::string_view option) const {
  const auto found = values_.find(std::string(option));
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

const std::vector<std::string>& Arguments::rest(std::string_view option) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(std::string(option));
  return found == values_.end() ? kNone : found->second;
}

Result<int64_t> Arguments::Integer(std::string_view option, int64_t otherwise, int64_t low,
                                   int64_t high) const {
  const std::optional<std::string> text = Value(option);
  if (!text) return otherwise;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high)
    return Usage("--{} takes a whole number from {} to {}, not '{}'", option, low, high, *text);
  return value;
}

Result<int64_t> Arguments::Bytes(std::string_view option, int64_t otherwise) const {
  const std::optional<std::string> text = Value(option);
  if (!text) return otherwise;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  std::string_view unit(end, static_cast<size_t>(text->data() + text->size() - end));
  if (unit.ends_with("B") || unit.ends_with("b")) unit.remove_suffix(1);
  int shift = 0;
  if (unit.size() == 1) {
    const size_t at =
        std::string_view("kmgt").find(static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0]))));
    if (at != std::string_view::npos) shift = 10 * (static_cast<int>(at) + 1);
  }
  if (error != std::errc() || value < 0 || (!unit.empty() && shift == 0) || value > (INT64_MAX >> shift))
    return Usage("--{} takes a size such as 512M or 4G, not '{}'", option, *text);
  return value << shift;
}

Result<int64_t> Arguments::Milliseconds(std::string_view option, int64_t otherwise, int64_t high) const {
  const std::optional<std::string> text = Value(option);
  if (!text) return otherwise;
  bool is_too_long = false;
  const std::optional<int64_t> ms = ParseTime(*text, high, &is_too_long);
  if (ms) return *ms;
  if (is_too_long) return Usage("--{} is {}; it is {}d at most", option, *text, high / kDayMs);
  return Usage("--{} takes a time such as 90s, 10m or 24h, not '{}'", option, *text);
}

Result<Arguments> ParseArguments(std::span<const std::string> words, std::span<const Option> options) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') {
      arguments.positional_.push_back(word);
      continue;
    }
    std::string_view name = std::string_view(word).substr(word[1] == '-' ? 2 : 1);
    std::optional<std::string> attached;
    if (const size_t equals = name.find('='); equals != std::string_view::npos) {
      attached = std::string(name.substr(equals + 1));
      name = name.substr(0, equals);
    }
    const Option* option = Find(options, name);
    if (option == nullptr) return UnknownOption(word.substr(0, word.find('=')), name, options);
    std::vector<std::string>& values = arguments.values_[std::string(option->name)];
    switch (option->kind) {
      case Option::Kind::kFlag:
        if (attached) return Usage("{} takes no value", WithDashes(*option));
        break;
      case Option::Kind::kValue:
        if (!attached) {
          if (i + 1 >= words.size())
            return Usage("{} needs a value: {} {}", WithDashes(*option), WithDashes(*option),
                         option->value_name);
          attached = words[++i];
        }
        values.push_back(*attached);
        break;
      case Option::Kind::kOptionalValue:
        if (attached && !IsOptionalValue(option->name, *attached))
          return Usage("{} does not know '{}'", WithDashes(*option), *attached);
        if (attached)
          values.push_back(*attached);
        else if (i + 1 < words.size() && IsOptionalValue(option->name, words[i + 1]))
          values.push_back(words[++i]);
        break;
      case Option::Kind::kRest:
        values.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
        return arguments;
      case Option::Kind::kIgnored:
        if (!option->value_name.empty() && !attached && i + 1 < words.size()) ++i;
        arguments.warnings_.push_back(
            fmt::format("-{} means nothing to Heddle and is ignored", option->name));
        break;
    }
  }
  return arguments;
}

Result<int> ReadThreads(const Arguments& arguments) {
  constexpr int64_t kMostThreads = 4096;
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", cores, 1, kMostThreads));
  return static_cast<int>(threads);
}

Result<std::map<std::string, std::string>> ScriptParameters(const Arguments& arguments) {
  std::map<std::string, std::string> parameters;
  if (arguments.Has("args")) {
    int position = 0;
    for (const std::string& value : arguments.rest("args")) {
      if (value == "-nvargs" || value == "--nvargs") return Usage("-args and -nvargs cannot be mixed");
      parameters[std::to_string(++position)] = value;
    }
  }
  for (const std::string& word : arguments.rest("nvargs")) {
    if (word == "-args" || word == "--args") return Usage("-args and -nvargs cannot be mixed");
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      const Status status = Usage("-nvargs takes name=value words, not '{}'", word);
      return word.starts_with("-") ? status.WithNote("options of heddle itself go before -nvargs") : status;
    }
    const std::string name = word.substr(0, equals);
    if (!IsParameterName(name)) return Usage("-nvargs: '{}' is not a parameter name", name);
    if (!parameters.emplace(name, word.substr(equals + 1)).second)
      return Usage("-nvargs: '{}' is given twice", name);
  }
  return parameters;
}

}  // namespace heddle::cluster::cli

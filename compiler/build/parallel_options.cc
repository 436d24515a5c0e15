// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/parallel_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

namespace heddle::compiler {
namespace {

struct NamedValues {
  std::string_view option;
  std::vector<std::string> values;
};

const std::vector<NamedValues>& AllNamedValues() {
  static const std::vector<NamedValues> kAll = {
      {"check", {"0", "1"}},
      {"profile", {"0", "1"}},
      {"mode", {"LOCAL", "REMOTE_SPARK", "REMOTE_SPARK_DP", "UNSPECIFIED"}},
      {"opt", {"NONE", "RULEBASED", "HEURISTIC", "CONSTRAINED"}},
      {"taskpartitioner",
       {"FIXED", "NAIVE", "STATIC", "FACTORING", "FACTORING_CMIN", "FACTORING_CMAX", "UNSPECIFIED"}},
      {"datapartitioner",
       {"NONE", "LOCAL", "REMOTE_SPARK", "ROW_WISE", "COLUMN_WISE", "ROW_BLOCK_WISE", "ROW_BLOCK_WISE_N",
        "COLUMN_BLOCK_WISE", "COLUMN_BLOCK_WISE_N", "BLOCK_WISE_M_N", "UNSPECIFIED"}},
      {"resultmerge", {"LOCAL_MEM", "LOCAL_FILE", "LOCAL_AUTOMATIC", "REMOTE_SPARK", "UNSPECIFIED"}},
      {"log", {"ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"}}};
  return kAll;
}

std::string UpperCase(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::string Listed(const std::vector<std::string>& values) {
  std::string text = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    text += i + 1 < values.size() ? ", " : " or ";
    text += values[i];
  }
  return text;
}

}  // namespace

ParallelForOptions ReadParallelForOptions(
    const Statement& loop, const std::function<std::optional<Scalar>(const std::string& name)>& argument,
    const std::function<void(const ParallelForOption& option, const std::string& name)>& is_missing,
    const std::function<Diagnostic&(const ParallelForOption& option, std::string message)>& report) {
  ParallelForOptions result;
  for (const ParallelForOption& option : loop.options) {
    std::string text = option.text;
    if (text.size() > 1 && text[0] == '$') {
      const std::optional<Scalar> given = argument(text.substr(1));
      if (!given) {
        is_missing(option, text.substr(1));
        continue;
      }
      text = given->ToText();
    }
    if (option.name == "par" || option.name == "tasksize") {
      int32_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size() || number < 1) {
        report(option, fmt::format("the option '{}' of a parfor is a whole number from 1, not {}",
                                   option.name, text));
      } else if (option.name == "par") {
        result.most_workers = number;
      }
      continue;
    }
    for (const NamedValues& named : AllNamedValues()) {
      if (named.option != option.name) continue;
      const std::string value = UpperCase(text);
      if (std::find(named.values.begin(), named.values.end(), value) == named.values.end()) {
        report(option, fmt::format("the option '{}' of a parfor is {}, not {}", option.name,
                                   Listed(named.values), text))
            .suggestion = SuggestName(value, named.values);
      } else if (option.name == "check") {
        result.is_checked = value == "1";
      }
    }
  }
  return result;
}

}  // namespace heddle::compiler

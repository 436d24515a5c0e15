// SPDX-License-Identifier: Apache-2.0
#include "compiler/help/builtin_help.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include "compiler/build/body_builder.h"
#include "compiler/help/function_help.h"
#include "ops/base/operator.h"
#include "ops/base/operator_traits.h"

namespace heddle::compiler {
namespace {

// What is written as NAME=VALUE in the parentheses of a usage: "target" with "X" and "by" with "1" of
// "M = order(target=X, by=1)".
std::map<std::string, std::string> ArgumentsIn(std::string_view usage) {
  std::map<std::string, std::string> arguments;
  std::string name, value;
  bool is_value = false;
  int depth = 0;
  for (size_t i = usage.find('(') + 1; i < usage.size(); ++i) {
    const char letter = usage[i];
    if (letter == '[' || letter == '(') ++depth;
    if (letter == ']') --depth;
    if (depth == 0 && (letter == ',' || letter == ')')) {
      if (is_value) arguments[name] = value;
      name.clear();
      value.clear();
      is_value = false;
    } else if (letter == '=' && !is_value) {
      is_value = true;
    } else if (letter != ' ') {
      (is_value ? value : name) += letter;
    }
  }
  return arguments;
}

// A number, a text, TRUE or FALSE; else it stands for what is given.
bool IsDefault(const std::string& value) {
  return value == "TRUE" || value == "FALSE" || value.starts_with('"') || value.starts_with('-') ||
         std::isdigit(static_cast<unsigned char>(value[0])) != 0;
}

TEST(BuiltinHelpTest, EveryBuiltinHasOne) {
  std::vector<std::string> names = ops::BuiltinNames();
  names.insert(names.end(), std::begin(kListBuiltins), std::end(kListBuiltins));
  names.insert(names.end(), std::begin(kOtherCalls), std::end(kOtherCalls));
  for (const std::string& name : names) {
    const BuiltinHelp* const help = FindBuiltinHelp(name);
    ASSERT_NE(help, nullptr) << name;
    EXPECT_NE(help->room, "") << name;
    EXPECT_NE(help->summary, "") << name;
    EXPECT_FALSE(help->summary.ends_with('.')) << name;
    EXPECT_EQ(HelpOfName(name), Render(*help)) << name;
  }
}

TEST(BuiltinHelpTest, EachIsThereOnce) {
  std::set<std::string> names;
  for (const BuiltinHelp& help : BuiltinHelps()) {
    EXPECT_NE(help.name, "") << help.usage;
    EXPECT_TRUE(names.insert(help.name).second) << help.name;
    EXPECT_LE(help.usage.size(), 140u) << help.name;
  }
}

// What a usage writes as NAME=VALUE is an argument of that name, which may be left out if VALUE is a default.
TEST(BuiltinHelpTest, NamesOfArgumentsAreThoseOfTheBuiltin) {
  size_t found = 0;
  for (const std::string& name : ops::BuiltinNames()) {
    std::map<std::string, bool> optional;
    for (const ops::OperatorParameter& parameter : ops::ParseParameters(ops::FindBuiltin(name)->parameters))
      optional[std::string(parameter.name)] = parameter.optional;
    for (const auto& [argument, value] : ArgumentsIn(FindBuiltinHelp(name)->usage)) {
      EXPECT_TRUE(optional.contains(argument)) << name << ": " << argument;
      EXPECT_TRUE(optional[argument] || !IsDefault(value)) << name << ": " << argument;
      ++found;
    }
  }
  EXPECT_GT(found, 60u);
}

TEST(BuiltinHelpTest, AScreenOfText) {
  EXPECT_EQ(HelpOfName("rev"), "rev: the rows in reverse order\n\n  M = rev(X)\n");
  EXPECT_EQ(
      HelpOfName("seq"),
      "seq: a column of numbers from `from` to `to`, which is included if hit\n\n  v = seq(from, to, incr)\n\n"
      "incr is 1, or -1 where from > to.\n");
  EXPECT_EQ(HelpOfName("nothing"), "");
}

TEST(BuiltinHelpTest, OtherNamesOfBuiltinsAreFound) {
  size_t found = 0;
  for (const ops::Operator* const op : ops::AllOperators()) {
    std::istringstream aliases{std::string(op->aliases)};
    for (std::string alias; aliases >> alias; ++found) {
      const std::string help = HelpOfName(alias);
      EXPECT_TRUE(help.starts_with(alias + ": ") ||
                  help.starts_with(alias + " is another name of " + std::string(op->name) + ".\n\n"))
          << alias << ": " << help;
    }
  }
  EXPECT_GE(found, 19u);
  EXPECT_EQ(NearestFunction("ceilng"), "ceiling");
}

TEST(BuiltinHelpTest, StatementsAndOperatorsHaveOne) {
  for (const char* word : {"if", "for", "parfor", "while", "function", "ifdef", "source", "operators"})
    EXPECT_TRUE(HelpOfName(word).starts_with(std::string(word) + ": ")) << word;
  for (const char* sign : {"%*%", "^", "!", "%/%", "&", "=="})
    EXPECT_EQ(HelpOfName(sign), HelpOfName("operators")) << sign;
  EXPECT_EQ(HelpOfName("?"), "");
}

// "[values, vectors] = eigen(A)" names as many results as the builtin has.
TEST(BuiltinHelpTest, ResultsAreAsManyAsThoseOfTheBuiltin) {
  for (const std::string& name : ops::BuiltinNames()) {
    const ops::Operator* const op = ops::FindBuiltin(name);
    if (op->results < 1) continue;
    const std::string usage = FindBuiltinHelp(name)->usage;
    const bool is_several = usage.starts_with('[');
    const auto count = is_several ? 1 + std::count(usage.begin(), usage.begin() + usage.find(']'), ',') : 1;
    EXPECT_EQ(count, op->results) << usage;
  }
}

}  // namespace
}  // namespace heddle::compiler

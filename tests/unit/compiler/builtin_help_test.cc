// SPDX-License-Identifier: Apache-2.0
#include "compiler/help/builtin_help.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/build/body_builder.h"
#include "compiler/help/function_help.h"
#include "ops/base/operator.h"
#include "ops/base/operator_traits.h"

namespace heddle::compiler {
namespace {

// Names before "=" in the parentheses of a usage: "target", "by" of "M = order(target=X, by=1)".
std::set<std::string> ArgumentsIn(std::string_view usage) {
  std::set<std::string> names;
  std::string name;
  bool is_value = false;
  int depth = 0;
  for (size_t i = usage.find('(') + 1; i < usage.size(); ++i) {
    const char letter = usage[i];
    if (letter == '[' || letter == '(') ++depth;
    if (letter == ']') --depth;
    if (depth == 0 && (letter == ',' || letter == ')')) {
      if (is_value) names.insert(name);
      name.clear();
      is_value = false;
    } else if (letter == '=') {
      is_value = true;
    } else if (letter != ' ' && !is_value) {
      name += letter;
    }
  }
  return names;
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

// What a usage writes as NAME=VALUE is an argument of that name.
TEST(BuiltinHelpTest, NamesOfArgumentsAreThoseOfTheBuiltin) {
  size_t found = 0;
  for (const std::string& name : ops::BuiltinNames()) {
    std::set<std::string> parameters;
    for (const ops::OperatorParameter& parameter : ops::ParseParameters(ops::FindBuiltin(name)->parameters))
      parameters.insert(std::string(parameter.name));
    for (const std::string& argument : ArgumentsIn(FindBuiltinHelp(name)->usage)) {
      EXPECT_TRUE(parameters.contains(argument)) << name << ": " << argument;
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

}  // namespace
}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/build/other_functions.h"
#include "compiler/build/polynomial.h"
#include "compiler/build/script_arguments.h"
#include "compiler/explain/explain.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

Result<Program> Compile(const std::string& script, std::map<std::string, std::string> files = {},
                        std::map<std::string, std::string> arguments = {},
                        Diagnostics* diagnostics = nullptr) {
  MemorySourceLoader loader(std::move(files));
  CompileOptions options;
  options.loader = &loader;
  options.arguments = std::move(arguments);
  // These scripts would be nothing but constants.
  options.disabled_passes = {"inline-functions", "propagate-constants"};
  Diagnostics own;
  return CompileScript(script, options, diagnostics != nullptr ? diagnostics : &own);
}

TEST(ScriptArgumentsTest, TextsBecomeLiteralsAsTheLanguageSays) {
  EXPECT_EQ(ArgumentValue("TRUE"), Scalar(true));
  EXPECT_EQ(ArgumentValue("FALSE"), Scalar(false));
  EXPECT_EQ(ArgumentValue("true"), Scalar("true"));
  EXPECT_EQ(ArgumentValue("42"), Scalar(42));
  EXPECT_EQ(ArgumentValue("-7"), Scalar(-7));
  EXPECT_EQ(ArgumentValue("+7"), Scalar(7));
  EXPECT_EQ(ArgumentValue("9223372036854775808"), Scalar(9223372036854775808.0));
  EXPECT_EQ(ArgumentValue("1e-3"), Scalar(1e-3));
  EXPECT_EQ(ArgumentValue("1d"), Scalar(1.0));
  EXPECT_EQ(ArgumentValue("Infinity"), Scalar(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(ArgumentValue("data/X.csv"), Scalar("data/X.csv"));
  EXPECT_EQ(ArgumentValue("\"42\""), Scalar("42"));
  EXPECT_EQ(ArgumentValue("'a b'"), Scalar("a b"));
  EXPECT_EQ(ArgumentValue("a\\tb"), Scalar("a\tb"));
  EXPECT_EQ(ArgumentValue("a\\\\x"), Scalar("a\\\\x"));
  EXPECT_EQ(ArgumentValue("a\\\\n"), Scalar("a\\\n"));  // escapes are replaced textually
}

TEST(BuildProgramTest, IfdefTakesTheArgumentOrTheDefault) {
  const auto printed = [](std::map<std::string, std::string> arguments) {
    Result<Program> program = Compile("x = ifdef($x, 1 + 2)\nprint(x)", {}, std::move(arguments));
    return program.ok() ? ExplainGraph(program->main.at(0).graph) : program.status().ToString();
  };
  EXPECT_EQ(printed({{"x", "7.5"}}), "print(7.5)\n");
  EXPECT_EQ(printed({}), "print(3)\n");
}

TEST(BuildProgramTest, TextsNameFunctionsByTheFileAsSourceDoes) {
  const std::map<std::string, std::string> files = {
      {"lib/scripts/nn/step.dml", "f = function(matrix[double] X) return (double y) { y = sum(X) }"}};
  MemorySourceLoader loader(files);
  CompileOptions options;
  options.loader = &loader;
  options.libraries = {"lib"};
  const auto compile = [&](const std::string& path) {
    Diagnostics diagnostics;
    const Result<Program> program = CompileScript(
        "source(\"nn/step.dml\") as s\nX = matrix(1, 2, 2)\nprint(sum(eval(\"" + path + "::f\", X)))",
        options, &diagnostics);
    return program.ok() ? std::string() : program.status().message();
  };
  for (const char* path : {"s", "nn/step.dml", "./nn/step.dml", "scripts/nn/step.dml",
                           "./scripts/nn/step.dml", "lib/scripts/nn/step.dml"})
    EXPECT_EQ(compile(path), "") << path;
  EXPECT_NE(compile("step.dml"), "");
}

TEST(BuildProgramTest, NamespacesFindTheFunctionsOfTheirFile) {
  const std::map<std::string, std::string> files = {
      {"a.dml",
       "source(\"b.dml\") as bb\n"
       "f = function(double x) return (double y) { y = helper(x) + bb::g(x) }\n"
       "helper = function(double x) return (double y) { y = x * $scale }\n"},
      {"b.dml",
       "g = function(double x) return (double y) { y = helper(x) }\n"
       "helper = function(double x) return (double y) { y = x + 1 }\n"
       "never = function(double x) return (double y) { y = x + 2 }\n"},
  };
  const Result<Program> program = Compile(
      "source(\"a.dml\") as aa\nprint(aa::f(2) + helper(1))\nhelper = function(double x) return (double y) { "
      "y = 0 - x }\n",
      files, {{"scale", "3"}});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  std::vector<std::string> names;
  for (const auto& [name, function] : program->functions) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"aa::f", "aa::helper", "b.dml::g", "b.dml::helper", "helper"}));
  EXPECT_NE(ExplainProgram(*program).find("* 3"), std::string::npos)
      << "$ parameters are visible in sourced files";
}

TEST(BuildProgramTest, UnknownNamesBehindANamespaceAreFound) {
  Diagnostics diagnostics;
  EXPECT_FALSE(Compile("source(\"a.dml\") as affine\nx = affine::forwrd(1)\ny = afine::f(1)\n",
                       {{"a.dml", "forward = function(double x) return (double y) { y = x }"}}, {},
                       &diagnostics)
                   .ok());
  const auto errors = diagnostics.Sorted(Severity::kError);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0]->message, "undefined function 'affine::forwrd'");
  EXPECT_EQ(errors[0]->suggestion, "forward");
  EXPECT_EQ(errors[1]->message, "undefined namespace 'afine'");
  EXPECT_EQ(errors[1]->suggestion, "affine");
}

TEST(BuildProgramTest, AUserFunctionShadowsABuiltinAndAVariableDoesNot) {
  const Result<Program> program = Compile(
      "sum = function(double x) return (double y) { y = x + 41 }\nmax = 3\nprint(sum(1) + max(1, max))\n");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_TRUE(program->functions.contains("sum"));
  EXPECT_NE(ExplainProgram(*program).find("call [%t"), std::string::npos);
}

TEST(BuildProgramTest, ScalarArgumentsBecomeTheDeclaredType) {
  const Result<Program> program = Compile(
      "f = function(int k, double d, boolean b, string s, double same) return (double y) { y = k + d\n "
      "print(s + b) }\n"
      "x = f(2.7, 3, 1, 5, 1.5)\nprint(x)\n");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_EQ(ExplainGraph(program->main.at(0).graph),
            "%t1 = 2\n%t2 = 3.0\n%t3 = TRUE\n%t4 = \"5\"\n%t5 = 1.5\n");
}

TEST(BuildProgramTest, EffectsAreChainedInTheOrderOfTheScript) {
  const Result<Program> program = Compile(
      "print(1)\nX = rand(rows=2, cols=2, seed=1)\nprint(sum(X))\nwrite(X, \"x\")\nassert(sum(X) > 0)\n");
  ASSERT_TRUE(program.ok());
  const Graph& graph = program->main.at(0).graph;
  NodeId last = kNoNode;
  int effects = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ops::Operator* op = ops::FindOperator(graph[id].op);
    if (op == nullptr || !op->effect) continue;
    if (last != kNoNode) {
      EXPECT_NE(std::find(graph[id].after.begin(), graph[id].after.end(), last), graph[id].after.end());
    }
    last = id;
    ++effects;
  }
  EXPECT_EQ(effects, 4);
}

TEST(BuildProgramTest, BlockIdsAreUnique) {
  const Result<Program> program = Compile(
      "f = function(double x) return (double y) { if (x > 1) { y = f(x - 1) } else { y = x } }\n"
      "s = 0\nfor (i in 1:3) { while (s < i) { s = s + f(i) } }\nif (s > 2) print(s)\n");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  std::set<int32_t> ids;
  int blocks = 0;
  const std::function<void(const std::vector<Block>&)> visit = [&](const std::vector<Block>& list) {
    for (const Block& block : list) {
      ids.insert(block.id);
      ++blocks;
      visit(block.body);
      visit(block.otherwise);
    }
  };
  visit(program->main);
  for (const auto& [name, function] : program->functions) visit(function.body);
  EXPECT_EQ(static_cast<int>(ids.size()), blocks);
}

TEST(BuildProgramTest, AProgramSurvivesItsTextForm) {
  const Result<Program> program = Compile(
      "f = function(matrix[double] X, int k = 2) return (matrix[double] Y) { Y = X * k }\n"
      "A = rand(rows=3, cols=3, seed=1)\nfor (i in seq(1, 9, 2)) { A = f(A) }\nif (sum(A) > 1) { print(A) } "
      "else { stop(\"x\\n\\\"\") }\n");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const Result<Program> again = Program::Parse(program->ToText());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->ToText(), program->ToText());
}

TEST(BuiltinTableTest, EveryBuiltinHasItsOperator) {
  for (const std::string& name : ops::BuiltinNames()) {
    const ops::Operator* builtin = ops::FindBuiltin(name);
    ASSERT_NE(builtin, nullptr);
    EXPECT_EQ(builtin->name, name);
    EXPECT_FALSE(InsteadOfNative(name).has_value()) << name;
    EXPECT_FALSE(IsElsewhere(name)) << name;
  }
}

TEST(PolynomialTest, SplitsAndCompares) {
  const Polynomial i = Polynomial::Symbol("i");
  const Polynomial k = Polynomial::Symbol("k");
  const Polynomial end = i * k;
  const Polynomial begin = (i - Polynomial(1)) * k + Polynomial(1);
  Polynomial coefficient;
  Polynomial rest;
  ASSERT_TRUE(begin.Split("i", &coefficient, &rest));
  EXPECT_EQ(coefficient, k);
  EXPECT_EQ(rest, Polynomial(1) - k);
  EXPECT_TRUE((end - begin - k).IsNegative());  // -1
  EXPECT_FALSE((end - begin).IsNegative());
  EXPECT_FALSE((i * i).Split("i", &coefficient, &rest));
  EXPECT_TRUE((i - i).IsZero());
}

}  // namespace
}  // namespace heddle::compiler

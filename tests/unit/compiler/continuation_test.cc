// SPDX-License-Identifier: Apache-2.0
// Scripts that go on where others have ended: what is entered at a prompt.
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/explain/explain.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

std::string Parsed(const std::string& text) {
  Diagnostics diagnostics;
  const ScriptFile file = Parse("test.dml", text, &diagnostics, /*takes_expressions=*/true);
  return PrintScript(file) + diagnostics.RenderAll(Severity::kError);
}

Result<Program> Compile(const std::string& script, std::vector<GivenVariable> given) {
  CompileOptions options;
  options.continuation.emplace();
  options.continuation->given = std::move(given);
  Diagnostics diagnostics;
  return CompileScript(script, options, &diagnostics);
}

std::string Explained(const std::string& script, std::vector<GivenVariable> given) {
  const Result<Program> program = Compile(script, std::move(given));
  return program.ok() ? ExplainProgram(*program) : program.status().ToString();
}

TEST(ContinuationTest, AnExpressionAloneIsAStatement) {
  EXPECT_EQ(Parsed("x"), "(= %value x)\n");
  EXPECT_EQ(Parsed("x + 1; y = 2; y"), "(= %value (+ x 1))\n(= y 2)\n(= %value y)\n");
  EXPECT_EQ(Parsed("X[1, 2]"), "(= %value (index X 1 2))\n");
  EXPECT_EQ(Parsed("X[1, f(2)] = 3"), "(= (index X 1 (call f 2)) 3)\n");
  EXPECT_EQ(Parsed("-x"), "(= %value (- x))\n");
  EXPECT_EQ(Parsed("\"a\""), "(= %value \"a\")\n");
  EXPECT_EQ(Parsed("$n"), "(= %value $n)\n");
  EXPECT_EQ(Parsed("sum(X) * 2"), "(= %value (* (call sum X) 2))\n");
}

TEST(ContinuationTest, CallsThatActStayStatementsAndSoDoesAllElse) {
  EXPECT_EQ(Parsed("print(x)"), "(call print x)\n");
  EXPECT_EQ(Parsed("write(X, \"f\")"), "(call write X \"f\")\n");
  EXPECT_EQ(Parsed("x += 1"), "(+= x 1)\n");
  EXPECT_EQ(Parsed("[a, b] = f(x)"), "(= (a b) (call f x))\n");
  EXPECT_EQ(Parsed("if (a) { x = 1 }"), "(if a\n  (= x 1))\n");
}

TEST(ContinuationTest, OnlyTheTopLevelTakesExpressions) {
  EXPECT_NE(Parsed("if (a) { x }").find("error: expected '=' after 'x'"), std::string::npos);
  Diagnostics diagnostics;
  Parse("test.dml", "x", &diagnostics);
  EXPECT_TRUE(diagnostics.HasErrors());
}

TEST(ContinuationTest, TheLastDefinitionOfANameHolds) {
  EXPECT_EQ(Parsed("f = function(double a) return (double b) { b = 1 }\n"
                   "f = function(double a) return (double b) { b = 2 }"),
            Parsed("f = function(double a) return (double b) { b = 2 }"));
}

TEST(ContinuationTest, WhatIsOpenAtTheEndAsksForMore) {
  for (const char* text : {"x = ",
                           "x = 1 +",
                           "x = (1",
                           "X[1,",
                           "f(a, ",
                           "if (a)",
                           "if (a) {",
                           "if (a) { x = 1",
                           "for (i in 1:3)",
                           "while (TRUE) {",
                           "f = function(double a)",
                           "f = function(double a) return (double b)",
                           "f = function(double a) return (double b) {",
                           "x = \"abc",
                           "x = 'abc\ndef",
                           "/* a comment",
                           "x = 1 /* more",
                           "if (a) { x = 1 } else",
                           "[a, b]",
                           "source(\"f\") as"})
    EXPECT_TRUE(EndsInsideStatement(text)) << text;
  for (const char* text : {"", "# only this", "x = 1", "x", "x = 1 +\n2", "x = )", "x = 1 + * 2", "}",
                           "if (a) { x = 1 }", "x = \"abc\"", "if (a) { x = 1 } else { x = 2 }"})
    EXPECT_FALSE(EndsInsideStatement(text)) << text;
}

TEST(ContinuationTest, GivenVariablesHaveTypesSizesAndValues) {
  const std::vector<GivenVariable> given = {{"X", ValueInfo::OfMatrix({3, 4}), {}},
                                            {"n", ValueInfo::OfScalar(ValueType::kInteger), Scalar(5)}};
  EXPECT_EQ(Explained("Y = X %*% t(X)\nm = n + 1\nnrow(X)", given),
            "program \"script.dml\"\n"
            "  block  # line 1\n"
            "    X             : 3x4\n"
            "    %1 = t(X)     : 4x3\n"
            "    %2 = X %*% %1 : 3x3\n"
            "    Y = %2\n"
            "    m = 6\n"
            "    %value = 3\n");
  EXPECT_NE(Explained("X %*% X", given).find("inner dimensions differ: 3x4 and 3x4"), std::string::npos);
  EXPECT_NE(Explained("Z", given).find("undefined variable 'Z'"), std::string::npos);
}

TEST(ContinuationTest, AllVariablesAreKeptAndNothingIsFreed) {
  const Result<Program> program =
      Compile("a = n\nif (n > 1) { b = sum(X) }\nfor (i in 1:2) { c = i }\nX[1, 1] = 7",
              {{"X", ValueInfo::OfMatrix({2, 2}), {}}, {"n", ValueInfo::OfScalar(ValueType::kInteger), {}}});
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_EQ(program->kept, std::vector<std::string>({"X", "a", "b", "c", "i", "n"}));
  for (const Block& block : program->main)
    for (const std::string& name : block.dead_after)
      EXPECT_TRUE(name.starts_with("%")) << name << " is freed";
  const Result<Program> again = Program::Parse(program->ToText());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->ToText(), program->ToText());
}

TEST(ContinuationTest, OneStatementOfSeveralIsBuilt) {
  CompileOptions options;
  options.continuation.emplace();
  options.continuation->first = 1;
  options.continuation->count = 1;
  Diagnostics diagnostics;
  const Result<Program> program =
      CompileScript("print(undefined)\nprint(2)\nprint(other)", options, &diagnostics);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  EXPECT_EQ(ExplainProgram(*program), "program \"script.dml\"\n  block  # line 2\n    print(2)\n");
}

TEST(ContinuationTest, FunctionsThatNothingCallsAreCheckedWhereItIsAskedFor) {
  const char* const text = "f = function(double a) return (double b) { b = undefined }\nprint(1)";
  EXPECT_TRUE(Compile(text, {}).ok());
  CompileOptions options;
  options.continuation.emplace();
  options.continuation->checks_functions = true;
  Diagnostics diagnostics;
  EXPECT_FALSE(CompileScript(text, options, &diagnostics).ok());
}

}  // namespace
}  // namespace heddle::compiler

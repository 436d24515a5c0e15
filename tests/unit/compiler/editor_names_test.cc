// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/editor/complete.h"
#include "compiler/editor/hover.h"
#include "compiler/editor/name_places.h"
#include "compiler/editor/outline.h"
#include "compiler/editor/script_view.h"
#include "compiler/editor/text_lines.h"
#include "compiler/editor/writing_context.h"

namespace heddle::compiler {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* kLibrary = "f = function(double a) return (double b) { b = a }\n";

// "2:1 4:1": the places that a name at a place may have its value from.
std::string DefinitionsOf(const std::string& text, Place place) {
  MemorySourceLoader loader(std::map<std::string, std::string>{{"lib.dml", kLibrary}});
  const LoadOptions options;
  Scripts scripts(&loader, &options);
  const ScriptViewPointer script = scripts.View("a.dml", text);
  std::string found;
  for (const NamePlace& definition : DefinitionsAt(script, place, &scripts))
    found +=
        fmt::format("{}{}{}:{}", found.empty() ? "" : " ", definition.script->path == "a.dml" ? "" : "other ",
                    definition.range.begin.line, definition.range.begin.column);
  return found;
}

std::string RenameError(const std::string& text, Place place, const std::string& name) {
  MemorySourceLoader loader({});
  const LoadOptions options;
  Scripts scripts(&loader, &options);
  return CheckRename(scripts.View("a.dml", text), place, name, &scripts).message();
}

TEST(TextLinesTest, CountsInBytesCharactersAndUnits) {
  const std::string text =
      "a\xC3\xA4\xF0\x9D\x84\x9E"
      "b\r\nsecond\xFF!\n";
  const TextLines lines(text);
  EXPECT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.Line(0),
            "a\xC3\xA4\xF0\x9D\x84\x9E"
            "b");
  const size_t b = text.find('b');
  EXPECT_EQ(lines.PlaceAt(b), (Place{1, 4}));
  EXPECT_EQ(lines.OffsetOf(Place{1, 4}), b);
  EXPECT_EQ(lines.EditorPlaceAt(b, TextLines::Units::kUtf16), (TextLines::EditorPlace{0, 4}));
  EXPECT_EQ(lines.EditorPlaceAt(b, TextLines::Units::kUtf8), (TextLines::EditorPlace{0, 7}));
  EXPECT_EQ(lines.OffsetOf(TextLines::EditorPlace{0, 4}, TextLines::Units::kUtf16), b);
  EXPECT_EQ(lines.OffsetOf(TextLines::EditorPlace{0, 3}, TextLines::Units::kUtf16), 3u)
      << "inside of a character";
  EXPECT_EQ(lines.OffsetOf(TextLines::EditorPlace{0, 99}, TextLines::Units::kUtf16), b + 1);
  EXPECT_EQ(lines.OffsetOf(TextLines::EditorPlace{99, 0}, TextLines::Units::kUtf8), text.size());
  EXPECT_EQ(lines.OffsetOf(TextLines::EditorPlace{-1, 0}, TextLines::Units::kUtf8), 0u);
  EXPECT_EQ(lines.PlaceAt(text.find('!')), (Place{2, 8}));
}

TEST(NamesTest, AssignmentsReachWhatReadsThem) {
  EXPECT_EQ(DefinitionsOf("x = 1\nx = 2\ny = x\n", {3, 5}), "2:1");
  EXPECT_EQ(DefinitionsOf("x = 1\nif (x > 0) {\n  x = 2\n} else x = 3\ny = x\n", {5, 5}), "3:3 4:8");
  EXPECT_EQ(DefinitionsOf("x = 1\nif (x > 0) x = 2\ny = x\n", {3, 5}), "1:1 2:12");
  EXPECT_EQ(DefinitionsOf("x = 1\nwhile (x < 5) {\n  y = x\n  x = x + 1\n}\nz = x\n", {3, 7}), "1:1 4:3");
  EXPECT_EQ(DefinitionsOf("x = 1\nwhile (x < 5) {\n  y = x\n  x = x + 1\n}\nz = x\n", {6, 5}), "1:1 4:3");
  EXPECT_EQ(DefinitionsOf("for (i in 1:3) print(i)\n", {1, 22}), "1:6");
  EXPECT_EQ(DefinitionsOf("f = function(double a) return (double b) { b = a }\na = 1\n", {1, 48}), "1:21");
  EXPECT_EQ(DefinitionsOf("f = function(double a) return (double b) { b = a }\nx = f(a=2)\n", {2, 5}), "1:1");
  EXPECT_EQ(DefinitionsOf("f = function(double a) return (double b) { b = a }\nx = f(a=2)\n", {2, 7}),
            "1:21");
  EXPECT_EQ(
      DefinitionsOf("f = function(double a) return (double b) { b = a }\nx = eval(\"f\", 2)\n", {2, 11}),
      "1:1");
  EXPECT_EQ(DefinitionsOf("source(\"lib.dml\") as lib\nx = lib::f(1)\n", {2, 10}), "other 1:1");
  EXPECT_EQ(DefinitionsOf("source(\"lib.dml\") as lib\nx = lib::f(1)\n", {1, 23}), "other 1:1");
  EXPECT_EQ(DefinitionsOf("x = sum(y)\n", {1, 5}), "");
}

TEST(NamesTest, ANameOfAnotherMeaningIsNotRenamed) {
  const std::string text = "f = function(double a) return (double b) { b = a }\nx = f(1)\ny = sum(x) + $z\n";
  EXPECT_EQ(RenameError(text, {2, 1}, "z"), "");
  EXPECT_EQ(RenameError(text, {2, 1}, "y"), "there is a variable 'y' here already");
  EXPECT_EQ(RenameError(text, {2, 5}, "sum"), "there is a function 'sum' already");
  EXPECT_EQ(RenameError(text, {2, 1}, "if"),
            "'if' is no name: names are letters, digits and '_', and begin with a letter");
  EXPECT_EQ(RenameError(text, {2, 1}, "a b"),
            "'a b' is no name: names are letters, digits and '_', and begin with a letter");
  EXPECT_EQ(RenameError(text, {3, 5}, "total"),
            "'sum' is not defined in these scripts and cannot be renamed");
  EXPECT_EQ(RenameError(text, {3, 15}, "q"), "'$z' is given on the command line and cannot be renamed here");
  EXPECT_EQ(RenameError(text, {2, 4}, "q"), "there is no name here");
  EXPECT_EQ(RenameError("B = lm(X, y)\n", {1, 5}, "q"), "'lm' is of the library and cannot be renamed");
}

TEST(WritingContextTest, SeesCallsTextsAndComments) {
  using Kind = WritingContext::Kind;
  const auto call_of = [](std::string_view text) {
    const WritingContext context = ContextAtEnd(text);
    return context.call ? fmt::format("{} {} {}", context.call->name, context.call->argument,
                                      context.call->argument_name)
                        : "";
  };
  EXPECT_EQ(call_of("x = f(a, b"), "f 1 ");
  EXPECT_EQ(call_of("x = f(a, g(1, 2), c = "), "f 2 c");
  EXPECT_EQ(call_of("x = ns::f(X[1, 2"), "ns::f 0 ");
  EXPECT_EQ(call_of("x = f((a + "), "f 0 ");
  EXPECT_EQ(call_of("x = f(a)"), "");
  EXPECT_EQ(call_of("if (x"), "");
  EXPECT_EQ(call_of("x = f(a\n}\ny = "), "");
  EXPECT_EQ(ContextAtEnd("x = read(\"da").kind, Kind::kText);
  EXPECT_EQ(ContextAtEnd("x = read(\"da").begin, 10u);
  EXPECT_EQ(ContextAtEnd("x = 1 # wo").kind, Kind::kNothing);
  EXPECT_EQ(ContextAtEnd("x = 1 /* wo").kind, Kind::kNothing);
  EXPECT_EQ(ContextAtEnd("x = 12").kind, Kind::kNothing);
  EXPECT_EQ(ContextAtEnd("x = \"a # b\" + y").kind, Kind::kName);
  EXPECT_EQ(ContextAtEnd("x = lib::").kind, Kind::kMember);
  EXPECT_EQ(ContextAtEnd("x = lib::fo").name_space, "lib");
  EXPECT_EQ(ContextAtEnd("x = as.sca").begin, 4u);
}

TEST(CompleteTest, ArgumentsComeBeforeNamesBeforeBuiltins) {
  KnownNames known;
  known.variables = {"rows_of_x", "sum"};
  const std::string text = "x = rand(ro";
  Strings words;
  for (const Candidate& candidate : Complete(text, ContextAtEnd(text), known))
    words.push_back(candidate.text);
  ASSERT_GE(words.size(), 3u);
  EXPECT_EQ(words[0], "rows=");
  EXPECT_EQ(words[1], "rows_of_x");
  const std::string second = "x = su";
  size_t sums = 0;
  for (const Candidate& candidate : Complete(second, ContextAtEnd(second), known))
    sums += candidate.text == "sum";
  EXPECT_EQ(sums, 1u);
}

// Of a script that is cut anywhere, everything is answered.
TEST(ScriptViewTest, AnswersAtEveryTruncation) {
  const std::string text =
      "source(\"lib.dml\") as lib\nf = function(matrix[double] X, int k = -3) return (matrix[double] Y) {\n"
      "  while (k > 0) { Y = X[1:k,] %*% t(X); k = k - 1 }\n}\nx = f(rand(rows=3, cols=3), k=2)\n"
      "[V, W] = eigen(x)\nfor (i in 1:3) x = x + i # comment\nprint(\"sum \" + sum(x) + lib::f(1))\n";
  MemorySourceLoader loader(std::map<std::string, std::string>{{"lib.dml", kLibrary}});
  const LoadOptions options;
  Scripts scripts(&loader, &options);
  for (size_t length = 0; length <= text.size(); ++length) {
    const ScriptViewPointer script = scripts.View("a.dml", text.substr(0, length));
    ContextAtEnd(script->text);
    OutlineOf(*script);
    FoldsIn(*script);
    for (const size_t offset : {length, length / 2, length / 3}) {
      const Place place = script->lines.PlaceAt(offset);
      DefinitionsAt(script, place, &scripts);
      ReferencesAt(script, place, {script}, &scripts);
      HoverAt(script, place, ValueInfos(), {}, &scripts);
    }
  }
}

TEST(HoverTest, ValuesAreThoseOfTheCompiler) {
  const std::string text =
      "f = function(Matrix[Double] A) return (Matrix[Double] B) {\n  B = A %*% t(A)\n}\nX = rand(rows=5, cols=3)\n"
      "x = 1\nx = 2.5\ny = X[1,]\nZ = f(X)\nX[1,1] = 7\n[V, W] = eigen(Z)\ns = \"a\"\nr = Z\nfor (i in 1:3) { q = i }\n"
      "if (sum(X) > 1) { T = X } else { T = Z }\nprint(sum(T) + sum(W) + x + sum(y) + s + sum(r) + sum(V))\n";
  const ScriptView script("a.dml", text);
  ValueInfos values;
  CompileOptions options;
  options.script = "a.dml";
  options.types_only = true;
  options.observe = [&](std::string_view stage, const Program& program) {
    if (stage == "shapes") values = ValueInfos(program, script);
  };
  Diagnostics diagnostics;
  ASSERT_TRUE(CompileScript(text, options, &diagnostics).ok()) << diagnostics.RenderAll(Severity::kError);
  MemorySourceLoader loader({});
  const LoadOptions load;
  Scripts scripts(&loader, &load);
  const ScriptViewPointer view = scripts.View("a.dml", text);
  const auto of = [&](int32_t line, int32_t column) {
    const auto hover = HoverAt(view, {line, column}, values, {}, &scripts);
    return hover ? hover->code : "";
  };
  EXPECT_EQ(of(1, 29), "A: matrix 5x3");
  EXPECT_EQ(of(2, 3), "B: matrix 5x5");
  EXPECT_EQ(of(4, 1), "X: matrix 5x3");
  EXPECT_EQ(of(5, 1), "x: integer");
  EXPECT_EQ(of(6, 1), "x: double");
  EXPECT_EQ(of(7, 1), "y: matrix 1x3");
  EXPECT_EQ(of(7, 5), "X: matrix 5x3");
  EXPECT_EQ(of(8, 1), "Z: matrix 5x5");
  EXPECT_EQ(of(9, 1), "X: matrix 5x3");
  EXPECT_EQ(of(10, 2), "V: matrix 5x1");
  EXPECT_EQ(of(10, 5), "W: matrix 5x5");
  EXPECT_EQ(of(11, 1), "s: string");
  EXPECT_EQ(of(12, 1), "r: matrix 5x5");
  EXPECT_EQ(of(13, 6), "i: integer");
  EXPECT_EQ(of(13, 18), "q: integer");
  EXPECT_EQ(of(15, 11), "T: matrix 5x?");
}

}  // namespace
}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/parse/diagnostics.h"

namespace heddle::compiler {
namespace {

SourceRange At(int32_t line, int32_t column, int32_t length = 1) {
  return {{line, column}, {line, column + length}};
}

TEST(DiagnosticsTest, ShowsTheLineAndTheCarets) {
  Diagnostics diagnostics;
  diagnostics.AddSource("a.dml", "x = 1\r\ny = foo + 2\r\n");
  Diagnostic& error = diagnostics.Error("a.dml", At(2, 5, 3), "unknown variable 'foo'");
  error.notes = {"it is not assigned before"};
  error.suggestion = "fob";
  EXPECT_EQ(diagnostics.Render(error),
            "a.dml:2:5: error: unknown variable 'foo'\n"
            "    2 | y = foo + 2\n"
            "      |     ^~~\n"
            "it is not assigned before\n"
            "did you mean 'fob'?\n");
}

TEST(DiagnosticsTest, KeepsTabsAndHidesWhatATerminalCannotShow) {
  Diagnostics diagnostics;
  diagnostics.AddSource("a.dml", std::string("\tx = \x01\xFF \xC3\xA4 y", 12));
  const Diagnostic& error = diagnostics.Error("a.dml", At(1, 11), "message");
  EXPECT_EQ(diagnostics.Render(error),
            "a.dml:1:11: error: message\n"
            "    1 | \tx = \xEF\xBF\xBD\xEF\xBF\xBD \xC3\xA4 y\n"
            "      | \t         ^\n");
}

TEST(DiagnosticsTest, CutsLongLinesAroundTheCaret) {
  Diagnostics diagnostics;
  diagnostics.AddSource("a.dml", std::string(5000, 'a') + "!" + std::string(5000, 'b'));
  const std::string text = diagnostics.Render(diagnostics.Error("a.dml", At(1, 5001), "message"));
  EXPECT_LT(text.size(), 400u);
  EXPECT_NE(text.find("a!b"), std::string::npos);
  const size_t code = text.find('\n') + 1;
  const size_t marks = text.find('\n', code) + 1;
  EXPECT_EQ(text.find('!', code) - code, text.find('^', marks) - marks);
}

TEST(DiagnosticsTest, ARangeOverLinesEndsWithTheFirst) {
  Diagnostics diagnostics;
  diagnostics.AddSource("a.dml", "x = (1 +\n2)\n");
  EXPECT_EQ(diagnostics.Render(diagnostics.Error("a.dml", {{1, 5}, {2, 3}}, "message")),
            "a.dml:1:5: error: message\n    1 | x = (1 +\n      |     ^~~~\n");
}

TEST(DiagnosticsTest, WorksWithoutAPlaceOrASource) {
  Diagnostics diagnostics;
  EXPECT_EQ(diagnostics.Render(diagnostics.Error("", {}, "message")), "error: message\n");
  EXPECT_EQ(diagnostics.Render(diagnostics.Error("b.dml", {}, "message")), "b.dml: error: message\n");
  EXPECT_EQ(diagnostics.Render(diagnostics.Error("b.dml", At(3, 4), "message")),
            "b.dml:3:4: error: message\n");
  diagnostics.AddSource("b.dml", "x\n");
  EXPECT_EQ(diagnostics.Render(diagnostics.Error("b.dml", At(3, 4), "message")),
            "b.dml:3:4: error: message\n");
}

TEST(DiagnosticsTest, SortsByFileAndPlaceAndDropsRepetitions) {
  Diagnostics diagnostics;
  diagnostics.AddSource("main.dml", "");
  diagnostics.AddSource("a.dml", "");
  diagnostics.Error("a.dml", At(1, 1), "fourth");
  diagnostics.Error("main.dml", At(2, 1), "third");
  diagnostics.Warning("main.dml", At(1, 1), "warning");
  diagnostics.Error("main.dml", At(1, 7), "first");
  diagnostics.Error("main.dml", At(1, 7), "second");
  diagnostics.Error("main.dml", At(1, 7), "first");
  std::string order;
  for (const Diagnostic* error : diagnostics.Sorted(Severity::kError)) order += error->message + " ";
  EXPECT_EQ(order, "first second third fourth ");
  ASSERT_EQ(diagnostics.Sorted(Severity::kWarning).size(), 1u);
  EXPECT_EQ(diagnostics.warnings(), 1u);
}

TEST(DiagnosticsTest, ShowsAtMostTwentyErrorsOfTwelveLines) {
  Diagnostics diagnostics;
  for (int32_t i = 1; i <= 23; ++i) {
    diagnostics.Error("a.dml", At(i, 1), "message").notes = std::vector<std::string>(30, "note");
  }
  const std::string text = diagnostics.RenderAll(Severity::kError);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20 * 12 + 1);
  EXPECT_EQ(text.substr(text.size() - 18), "and 3 more errors\n");
}

TEST(DiagnosticsTest, BecomesAStatus) {
  Diagnostics diagnostics;
  diagnostics.Warning("a.dml", At(1, 1), "warning");
  EXPECT_TRUE(diagnostics.ToStatus().ok());
  diagnostics.AddStatus(
      InvalidArgument("shapes differ: {} and {}", 1, 2).At({"a.dml", 3, 7}).WithNote("a note"));
  const Status status = diagnostics.ToStatus();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.ToString(), "a.dml:3:7: error: shapes differ: 1 and 2\na note");
}

TEST(SuggestNameTest, FindsTheNearestName) {
  const std::vector<std::string> names = {"rowSums", "colSums",   "nrow",        "ncol",
                                          "sum",     "as.scalar", "removeEmpty", "t"};
  EXPECT_EQ(SuggestName("rowSum", names), "rowSums");
  EXPECT_EQ(SuggestName("rowsums", names), "rowSums");
  EXPECT_EQ(SuggestName("colSmus", names), "colSums");
  EXPECT_EQ(SuggestName("nrwo", names), "nrow");
  EXPECT_EQ(SuggestName("remvoeEmtpy", names), "removeEmpty");
  EXPECT_EQ(SuggestName("SUM", names), "sum");
  EXPECT_EQ(SuggestName("T", names), "t");
  EXPECT_EQ(SuggestName("x", names), "");
  EXPECT_EQ(SuggestName("rows", names), "");
  EXPECT_EQ(SuggestName("quantile", names), "");
  EXPECT_EQ(SuggestName("", names), "");
  // Of two that are as near, the one that begins alike; then the earlier one.
  EXPECT_EQ(SuggestName("kmean", {"mean", "kmeans"}), "kmeans");
  EXPECT_EQ(SuggestName("abcd", {"abce", "abcf"}), "abce");
  EXPECT_EQ(SuggestName(std::string(100000, 'a'), names), "");
}

}  // namespace
}  // namespace heddle::compiler

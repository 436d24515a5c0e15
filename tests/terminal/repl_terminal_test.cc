// SPDX-License-Identifier: Apache-2.0
// `heddle repl` as somebody sees it who sits in front of it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/terminal.h"

namespace heddle {
namespace {

using testing_support::ReadText;
using testing_support::TemporaryFolder;
using testing_support::Terminal;
using testing_support::WriteText;

constexpr const char* kControlC = "\x03";
constexpr const char* kControlD = "\x04";
constexpr const char* kUp = "\x1b[A";

class ReplTerminalTest : public testing::Test {
 protected:
  std::unique_ptr<Terminal> Start(const std::string& terminal = "xterm") {
    return std::make_unique<Terminal>(
        std::vector<std::string>{HEDDLE_BINARY_DIR "/heddle", "repl", "--threads", "1"}, folder_.path(),
        std::map<std::string, std::string>{{"TERM", terminal},
                                           {"XDG_STATE_HOME", folder_.path() + "/state"}});
  }
  std::string HistoryPath() const { return folder_.path() + "/state/heddle/history"; }

  TemporaryFolder folder_;
};

TEST_F(ReplTerminalTest, APromptNumbersLinesAndExpressionsPrintTheirValues) {
  const auto repl = Start();
  ASSERT_TRUE(repl->WaitFor("1> ")) << repl->seen();
  repl->Type("x = 1234\r");
  ASSERT_TRUE(repl->WaitFor("2> ")) << repl->seen();
  repl->Type("x * 2\r");
  EXPECT_TRUE(repl->WaitFor("2468\r\n")) << repl->seen();
  ASSERT_TRUE(repl->WaitFor("3> ")) << repl->seen();
  repl->Type(kControlD);
  EXPECT_EQ(repl->WaitForEnd(), 0) << repl->seen();
}

TEST_F(ReplTerminalTest, AnOpenBlockIsContinuedAndComesBackWholeFromTheHistoryOfAnotherSession) {
  const auto first = Start();
  ASSERT_TRUE(first->WaitFor("1> ")) << first->seen();
  first->Type("f = function(double a) return (double b) {\r");
  ASSERT_TRUE(first->WaitFor("2+ ")) << first->seen();
  first->Type("b = a * 111\r");
  ASSERT_TRUE(first->WaitFor("3+ ")) << first->seen();
  first->Type("}\r");
  ASSERT_TRUE(first->WaitFor("4> ")) << first->seen();
  first->Type(kControlD);
  EXPECT_EQ(first->WaitForEnd(), 0);
  EXPECT_EQ(ReadText(HistoryPath()), "f = function(double a) return (double b) {\\nb = a * 111\\n}\n");
  struct stat status = {};
  ASSERT_EQ(stat(HistoryPath().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  const auto second = Start();
  ASSERT_TRUE(second->WaitFor("1> ")) << second->seen();
  second->Type(std::string(kUp) + "\r");
  ASSERT_TRUE(second->WaitFor("4> ")) << second->seen();
  second->Type("f(3)\r");
  EXPECT_TRUE(second->WaitFor("333.0\r\n")) << second->seen();
}

TEST_F(ReplTerminalTest, TabCompletesVariablesFunctionsArgumentsAndFiles) {
  WriteText(folder_.path() + "/measured.csv", "1,2\n");
  const auto repl = Start();
  ASSERT_TRUE(repl->WaitFor("1> ")) << repl->seen();
  repl->Type("some_matrix = matrix(7, rows=2, cols=2)\r");
  ASSERT_TRUE(repl->WaitFor("2> ")) << repl->seen();
  repl->Type("sum(some_m\t) * 100\r");
  EXPECT_TRUE(repl->WaitFor("2800.0\r\n")) << repl->seen();
  repl->Type("rowM\t");
  EXPECT_TRUE(repl->WaitFor("rowMaxs   rowMeans  rowMins\r\n")) << repl->seen();
  repl->Type(kControlC);
  ASSERT_TRUE(repl->WaitFor("^C")) << repl->seen();
  repl->Type("sum(read(\"mea\t\")) + 5000\r");
  EXPECT_TRUE(repl->WaitFor("5003.0\r\n")) << repl->seen();
  repl->Type("sum(rand(rows=3, cols=3, see\t1, min=9, max=9))\r");
  EXPECT_TRUE(repl->WaitFor("81.0\r\n")) << repl->seen();
}

TEST_F(ReplTerminalTest, ControlCStopsTheStatementAndClearsTheLine) {
  const auto repl = Start();
  ASSERT_TRUE(repl->WaitFor("1> ")) << repl->seen();
  repl->Type("x = 77\r");
  ASSERT_TRUE(repl->WaitFor("2> ")) << repl->seen();
  repl->Type("while (x > 0) { x = x + 1; if (x == 79) { print(\"run\" + \"ning\") } }\r");
  ASSERT_TRUE(repl->WaitFor("running\r\n")) << repl->seen();
  repl->Type(kControlC);
  ASSERT_TRUE(repl->WaitFor("cancelled by a signal")) << repl->seen();
  ASSERT_TRUE(repl->WaitFor("3> ")) << repl->seen();
  repl->Type("this line is not wanted");
  ASSERT_TRUE(repl->WaitFor("wanted")) << repl->seen();
  repl->Type(kControlC);
  ASSERT_TRUE(repl->WaitFor("3> ")) << repl->seen();
  repl->Type("if (x > 1) {\r");
  ASSERT_TRUE(repl->WaitFor("4+ ")) << repl->seen();
  repl->Type(kControlC);
  ASSERT_TRUE(repl->WaitFor("3> ")) << repl->seen();
  repl->Type("x * 1000\r");
  EXPECT_TRUE(repl->WaitFor("77000\r\n")) << repl->seen();
  ASSERT_TRUE(repl->WaitFor("4> ")) << repl->seen();
  repl->Type(":quit\r");
  EXPECT_EQ(repl->WaitForEnd(), 0) << repl->seen();
}

// A factorization of half a minute.
TEST_F(ReplTerminalTest, ControlCStopsAFactorization) {
  const auto repl = Start();
  ASSERT_TRUE(repl->WaitFor("1> ")) << repl->seen();
  repl->Type("A = rand(rows=3000, cols=3000, seed=1); print(\"run\" + \"ning \" + (sum(A) > 0))\r");
  ASSERT_TRUE(repl->WaitFor("running TRUE\r\n")) << repl->seen();
  repl->Type("[w, V] = eigen(A + t(A))\r");
  usleep(500'000);  // Into the statement.
  repl->Type(kControlC);
  ASSERT_TRUE(repl->WaitFor("cancelled by a signal")) << repl->seen();
  repl->Type("nrow(A) * 100\r");
  EXPECT_TRUE(repl->WaitFor("300000\r\n")) << repl->seen();
  repl->Type(":quit\r");
  EXPECT_EQ(repl->WaitForEnd(), 0) << repl->seen();
}

TEST_F(ReplTerminalTest, AnErrorShowsItsPlaceAndTheSessionGoesOn) {
  const auto repl = Start();
  ASSERT_TRUE(repl->WaitFor("1> ")) << repl->seen();
  repl->Type("y = 5 + nothing\r");
  EXPECT_TRUE(repl->WaitFor("input:1:9: error: undefined variable 'nothing'")) << repl->seen();
  ASSERT_TRUE(repl->WaitFor("2> ")) << repl->seen();
  repl->Type("y = 12345; y + 1\r");
  EXPECT_TRUE(repl->WaitFor("12346\r\n")) << repl->seen();
}

TEST_F(ReplTerminalTest, ATerminalThatCannotMoveItsCursorHasPromptsToo) {
  const auto repl = Start("dumb");
  ASSERT_TRUE(repl->WaitFor("1> ")) << repl->seen();
  repl->Type("x = matrix(1, rows=2,\r");
  ASSERT_TRUE(repl->WaitFor("2+ ")) << repl->seen();
  repl->Type("cols=2)\r");
  ASSERT_TRUE(repl->WaitFor("3> ")) << repl->seen();
  repl->Type("not wanted");
  repl->Type(kControlC);
  ASSERT_TRUE(repl->WaitFor("3> ")) << repl->seen();
  repl->Type("sum(x) * 100\r");
  EXPECT_TRUE(repl->WaitFor("400.0\r\n")) << repl->seen();
  ASSERT_TRUE(repl->WaitFor("4> ")) << repl->seen();
  repl->Type(kControlD);
  EXPECT_EQ(repl->WaitForEnd(), 0) << repl->seen();
  EXPECT_EQ(repl->seen().find('\x1b'), std::string::npos) << "no codes for terminals that know them";
}

}  // namespace
}  // namespace heddle

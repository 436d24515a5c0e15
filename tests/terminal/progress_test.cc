// SPDX-License-Identifier: Apache-2.0
// The line of progress of the built binary: on a terminal it is there while a script runs and gone before its
// output; in a pipe, and with --quiet, it is not there.
#include <gtest/gtest.h>

#include "tests/support/terminal.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::RunProcess;
using testing_support::TemporaryFolder;
using testing_support::Terminal;
using testing_support::WriteText;

// Runs for some seconds of wall clock, whatever the machine, nearly all of them in line 5, and prints once.
// Workers tell each other the time in line 4. On a machine that does other things meanwhile each of the two
// waits there until the other one has its turn, some tens of milliseconds: the product takes several times as
// long.
constexpr const char* kScript =
    "begin = time()\n"
    "rounds = 0\n"
    "X = rand(rows=10000, cols=1000, seed=1)\n"
    "while (time() - begin < 3000000000) {\n"
    "  X = X + max(t(X) %*% X) / 1e30\n"
    "  rounds = rounds + 1\n"
    "}\n"
    "print(\"done \" + (rounds > 0))\n";

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() { WriteText(folder_.path() + "/script.dml", kScript); }
  TemporaryFolder folder_;
};

TEST_F(ProgressTest, ATerminalShowsWhatRunsAndTheLineGoesBeforeTheOutput) {
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"run"}, std::vector<std::string>{"sim", "--workers", "2"}}) {
    std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle"};
    words.insert(words.end(), verb.begin(), verb.end());
    words.emplace_back("script.dml");
    Terminal terminal(words, folder_.path(), {{"TERM", "xterm"}});
    EXPECT_TRUE(terminal.WaitFor("round ")) << terminal.seen();
    EXPECT_TRUE(terminal.WaitFor("\r\x1b[Kdone TRUE\r\n")) << terminal.seen();
    EXPECT_EQ(terminal.WaitForEnd(), 0);
    EXPECT_TRUE(terminal.seen().ends_with("done TRUE\r\n"))
        << "the line is gone in the end: " << terminal.seen();
    EXPECT_NE(terminal.seen().find("  line 5  round "), std::string::npos) << terminal.seen();
  }
}

TEST_F(ProgressTest, QuietTerminalsAndThoseThatCannotEraseShowNone) {
  Terminal quiet({HEDDLE_BINARY_DIR "/heddle", "run", "--quiet", "script.dml"}, folder_.path(),
                 {{"TERM", "xterm"}});
  EXPECT_EQ(quiet.WaitForEnd(), 0);
  EXPECT_EQ(quiet.seen(), "done TRUE\r\n");
  Terminal dumb({HEDDLE_BINARY_DIR "/heddle", "run", "script.dml"}, folder_.path(), {{"TERM", "dumb"}});
  EXPECT_EQ(dumb.WaitForEnd(), 0);
  EXPECT_EQ(dumb.seen(), "done TRUE\r\n");
}

TEST_F(ProgressTest, PipesShowNoneInTheFirstHalfMinute) {
  const Finished done = RunProcess({HEDDLE_BINARY_DIR "/heddle", "run", "script.dml"}, folder_.path());
  EXPECT_EQ(done.output, "done TRUE\n");
  EXPECT_EQ(done.errors, "");
}

}  // namespace
}  // namespace heddle

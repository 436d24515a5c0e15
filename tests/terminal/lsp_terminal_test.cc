// SPDX-License-Identifier: Apache-2.0
// `heddle lsp` as somebody sees it who starts it by hand.
#include <gtest/gtest.h>

#include "tests/support/terminal.h"

namespace heddle {
namespace {

TEST(LspTerminalTest, WhoStartsItByHandIsToldWhatItWaitsFor) {
  const testing_support::TemporaryFolder folder;
  testing_support::Terminal terminal({HEDDLE_BINARY_DIR "/heddle", "lsp"}, folder.path(),
                                     {{"TERM", "xterm"}});
  EXPECT_TRUE(terminal.WaitFor(
      "heddle lsp is started by an editor, which speaks to it (docs/editor.md); Ctrl-D ends it\r\n"))
      << terminal.seen();
  terminal.Type("\x04");
  EXPECT_EQ(terminal.WaitForEnd(), 1);
}

}  // namespace
}  // namespace heddle

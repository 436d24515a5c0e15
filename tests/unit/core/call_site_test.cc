// SPDX-License-Identifier: Apache-2.0
#include "core/call_site.h"

#include <gtest/gtest.h>

#include "core/status.h"

namespace heddle {
namespace {

std::vector<CallSite> Calls(int count) {
  std::vector<CallSite> calls;
  for (int i = 1; i <= count; ++i) calls.push_back({fmt::format("f{}", i), {"a.dml", i, 5}});
  return calls;
}

TEST(CallSiteTest, TheInnermostCallComesFirst) {
  EXPECT_EQ(CallStackNotes(Calls(2)),
            (std::vector<std::string>{"in f1, called at a.dml:1:5", "in f2, called at a.dml:2:5"}));
  EXPECT_EQ(CallStackNotes(Calls(4)).size(), 4u);
  EXPECT_TRUE(CallStackNotes({}).empty());
}

TEST(CallSiteTest, ManyCallsAreCountedButForTheirEnds) {
  EXPECT_EQ(CallStackNotes(Calls(5)),
            (std::vector<std::string>{"in f1, called at a.dml:1:5", "in f2, called at a.dml:2:5",
                                      "... 2 more calls ...", "in f5, called at a.dml:5:5"}));
  EXPECT_EQ(CallStackNotes(Calls(10'000))[2], "... 9997 more calls ...");
}

TEST(CallSiteTest, AStatusAtAPlaceInAFunctionsBodyTellsOfTheCalls) {
  SourcePosition call{"main.dml", 7, 1};
  call.call = std::make_shared<const CallSite>(CallSite{"outer", {"main.dml", 20, 3}});
  SourcePosition position{"lib.dml", 2, 9};
  position.call = std::make_shared<const CallSite>(CallSite{"inner", call});
  const Status status = FailedPrecondition("solve: singular").WithNote("why").At(position);
  EXPECT_EQ(status.ToString(),
            "lib.dml:2:9: solve: singular\n"
            "why\n"
            "in inner, called at main.dml:7:1\n"
            "in outer, called at main.dml:20:3");
  EXPECT_EQ(status.position(), (SourcePosition{"lib.dml", 2, 9}));
  EXPECT_EQ(status.At(call).notes().size(), 3u) << "the innermost place wins";
}

TEST(CallSiteTest, AnErrorOfTheLibraryIsAtTheUsersLineAndLeavesSharedChecksOut) {
  SourcePosition call{"heddle:regression/lm.dml", 7, 3};
  call.call = std::make_shared<const CallSite>(CallSite{"lm", {"main.dml", 2, 5}});
  SourcePosition position{"heddle:checks/arguments.dml", 8, 5};
  position.call = std::make_shared<const CallSite>(CallSite{"rows", call});
  EXPECT_EQ(FailedPrecondition("lm: no rows").At(position).ToString(),
            "main.dml:2:5: lm: no rows\n"
            "in lm() at heddle:regression/lm.dml:7:3");
}

TEST(CallSiteTest, PositionsAreComparedWithTheirCalls) {
  SourcePosition one{"a.dml", 1, 1};
  SourcePosition other = one;
  one.call = std::make_shared<const CallSite>(CallSite{"f", {"a.dml", 3, 1}});
  EXPECT_FALSE(one == other);
  other.call = std::make_shared<const CallSite>(CallSite{"f", {"a.dml", 3, 1}});
  EXPECT_TRUE(one == other);
  other.call = std::make_shared<const CallSite>(CallSite{"f", {"a.dml", 4, 1}});
  EXPECT_FALSE(one == other);
}

TEST(StatusTest, TheLastOfTooManyNotesIsShown) {
  Status status = FailedPrecondition("wrong").At({"a.dml", 1, 1});
  for (int i = 1; i <= 20; ++i) status = status.WithNote(fmt::format("note {}", i));
  const std::string text = status.ToString();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_TRUE(text.ends_with("note 9\nnote 10\nnote 20")) << text;
}

}  // namespace
}  // namespace heddle

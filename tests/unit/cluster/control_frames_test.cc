// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/control_frames.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "cluster/link/link_repair.h"

namespace heddle::cluster {
namespace {

ControlFrame Numbered(int32_t number) {
  ControlFrame frame;
  frame.mutable_error()->set_node(number);
  return frame;
}

// Two sides and what is on its way between them.
struct Pair {
  ControlFrames side[2];
  std::deque<ControlFrame> wire[2];  // from side i
  std::vector<int32_t> got[2];

  Pair() { Reconnect(); }
  void Reconnect() {
    for (int i : {0, 1}) {
      side[i].Begin();
      wire[i].clear();
    }
  }
  bool SendOne(int from) {
    ControlFrame frame;
    if (!side[from].Next(&frame)) return false;
    wire[from].push_back(std::move(frame));
    return true;
  }
  bool DeliverOne(int from) {
    if (wire[from].empty()) return false;
    const ControlFrame frame = std::move(wire[from].front());
    wire[from].pop_front();
    const Result<bool> accepted = side[1 - from].Accept(frame);
    EXPECT_TRUE(accepted.ok()) << accepted.status().ToString();
    if (accepted.ok() && *accepted) got[1 - from].push_back(frame.error().node());
    return true;
  }
  void Settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int i : {0, 1}) moved = SendOne(i) || DeliverOne(i) || moved;
    }
  }
};

TEST(ControlFramesTest, EveryFrameArrivesOnceAndInOrderHoweverOftenTheStreamBreaks) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Pair pair;
    int32_t pushed[2] = {0, 0};
    for (int step = 0; step < 400; ++step) {
      const int side = static_cast<int>(random() % 2);
      switch (random() % 8) {
        case 0:
        case 1:
        case 2: pair.side[side].Push(Numbered(pushed[side]++)); break;
        case 3:
        case 4: pair.SendOne(side); break;
        case 5:
        case 6: pair.DeliverOne(side); break;
        default:
          if (random() % 10 == 0) pair.Reconnect();
      }
    }
    pair.Settle();
    for (int side : {0, 1}) {
      ASSERT_EQ(pair.got[1 - side].size(), static_cast<size_t>(pushed[side]));
      for (int32_t i = 0; i < pushed[side]; ++i) ASSERT_EQ(pair.got[1 - side][static_cast<size_t>(i)], i);
    }
  }
}

// Messages go into the batch that waits, but not into one that the other side may have got: it would take all
// of the batch for what it has.
TEST(ControlFramesTest, NoMessageIsAddedToABatchThatABrokenStreamHasTaken) {
  for (const bool arrives : {true, false}) {
    Pair pair;
    pair.Settle();
    pair.side[0].OpenBatch().set_messages("first ");
    ASSERT_TRUE(pair.SendOne(0));
    std::string got;
    const auto deliver = [&] {
      const ControlFrame frame = pair.wire[0].front();
      pair.wire[0].pop_front();
      const Result<bool> accepted = pair.side[1].Accept(frame);
      ASSERT_TRUE(accepted.ok()) << accepted.status().ToString();
      if (*accepted) got += frame.batch().messages();
    };
    if (arrives) deliver();
    pair.Reconnect();
    pair.side[0].OpenBatch().mutable_messages()->append("second");
    for (bool moved = true; moved;) {
      moved = pair.SendOne(0) || pair.SendOne(1) || pair.DeliverOne(1);
      while (!pair.wire[0].empty()) deliver();
    }
    EXPECT_EQ(got, "first second") << arrives;
  }
}

TEST(ControlFramesTest, WhatIsKeptIsBoundedWhenOnlyOneSideSpeaks) {
  Pair pair;
  for (int32_t i = 0; i < 1000; ++i) pair.side[0].Push(Numbered(i));
  pair.Settle();
  ControlFrame last;
  last.set_end(true);
  EXPECT_FALSE(pair.side[0].AllAcknowledged());
  pair.side[0].Push(last);  // the last word is always answered
  pair.Settle();
  EXPECT_TRUE(pair.side[0].AllAcknowledged());
  EXPECT_FALSE(pair.side[0].HasNext());
  EXPECT_FALSE(pair.side[1].HasNext());
}

TEST(ControlFramesTest, OnlyUnsentBatchesGrow) {
  Pair pair;
  ControlFrames& frames = pair.side[0];
  pair.Settle();
  *frames.OpenBatch().mutable_messages() = "a";
  frames.OpenBatch().mutable_messages()->append("b");
  ControlFrame sent;
  ASSERT_TRUE(frames.Next(&sent));
  EXPECT_EQ(sent.batch().messages(), "ab");
  frames.OpenBatch().mutable_messages()->append("c");
  frames.Push(Numbered(1));
  frames.OpenBatch().mutable_messages()->append("d");
  ASSERT_TRUE(frames.Next(&sent));
  EXPECT_EQ(sent.batch().messages(), "c");
  ASSERT_TRUE(frames.Next(&sent));
  EXPECT_EQ(sent.error().node(), 1);
  ASSERT_TRUE(frames.Next(&sent));
  EXPECT_EQ(sent.batch().messages(), "d");
  EXPECT_FALSE(frames.HasNext());
}

TEST(ControlFramesTest, APeerThatCannotBeRightIsRefused) {
  ControlFrames frames;
  frames.Begin();
  EXPECT_EQ(frames.Accept(Numbered(0)).status().message(), "a peer did not begin at the beginning");
  ControlFrame linked;
  linked.mutable_linked()->set_received(1);
  EXPECT_EQ(frames.Accept(linked).status().message(), "a peer acknowledged what it cannot have got");
  linked.mutable_linked()->set_received(0);
  EXPECT_TRUE(frames.Accept(linked).ok());
  EXPECT_EQ(frames.Accept(linked).status().message(), "a peer began twice");
}

TEST(LinkRepairTest, TheDeadlineCountsFromTheFirstBreak) {
  LinkRepair repair;
  EXPECT_EQ(repair.NextNs(), LinkRepair::kNever);
  repair.Break(100, 1'000'000'000, /*calls=*/true, "cut");
  EXPECT_FALSE(repair.TakeCall(100));  // not at once
  EXPECT_TRUE(repair.TakeCall(repair.NextNs()));
  EXPECT_FALSE(repair.TakeCall(1'000'000'000));  // once
  repair.Break(900'000'000, 1'000'000'000, /*calls=*/false, "cut again");
  EXPECT_FALSE(repair.TakeCall(1'000'000'099));
  EXPECT_FALSE(repair.IsHopeless(1'000'000'099));
  EXPECT_TRUE(repair.IsHopeless(1'000'000'100));
  EXPECT_EQ(repair.cause(), "cut again");
  repair.GiveUp();
  EXPECT_TRUE(repair.IsBroken());
  EXPECT_EQ(repair.NextNs(), LinkRepair::kNever);
  EXPECT_TRUE(repair.Mend());
  EXPECT_FALSE(repair.Mend());
  EXPECT_FALSE(repair.IsHopeless(2'000'000'000));
}

}  // namespace
}  // namespace heddle::cluster

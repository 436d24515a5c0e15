// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/ring_space.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle::cluster {
namespace {

constexpr uint64_t kArena = 0x123456789abcdef0;
constexpr uint64_t kGb = 1'000'000'000;

TEST(RingSpaceTest, RunsFollowEachOtherAndNeverCrossTheEnd) {
  WrittenRing written(kArena, 200);
  ReadRing read(kArena, 200);
  uint64_t returned = 0;
  uint64_t generation = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const uint64_t bytes = i * 7 % 40;
    std::optional<RingHandle> handle = written.Take(bytes);
    if (!handle) {
      ASSERT_TRUE(written.Return(read.Return()));
      ++returned;
      handle = written.Take(bytes);
    }
    ASSERT_TRUE(handle.has_value());
    EXPECT_LE(handle->offset + handle->bytes, 200u);
    EXPECT_EQ(handle->offset % 64, 0u);
    EXPECT_GE(handle->generation, generation);
    generation = handle->generation;
    ASSERT_TRUE(read.Accept(*handle)) << i;
  }
  EXPECT_GT(returned, 1000u);
  EXPECT_GT(generation, 1000u);
}

TEST(RingSpaceTest, OffsetsBeyondFourGigabytesAreNotCut) {
  WrittenRing written(kArena, 9 * kGb);
  ReadRing read(kArena, 9 * kGb);
  for (const uint64_t offset : {0 * kGb, 3 * kGb, 6 * kGb}) {
    const std::optional<RingHandle> handle = written.Take(3 * kGb);
    ASSERT_TRUE(handle.has_value());
    EXPECT_EQ(handle->offset, offset);
    EXPECT_EQ(handle->bytes, 3 * kGb);
    EXPECT_EQ(handle->generation, 0u);
    EXPECT_TRUE(read.Accept(*handle));
  }
  EXPECT_FALSE(written.Take(1).has_value());
  EXPECT_EQ(read.unreturned(), 9 * kGb);
  EXPECT_TRUE(written.Return(read.Return()));
  const std::optional<RingHandle> next = written.Take(5 * kGb);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->offset, 0u);
  EXPECT_EQ(next->generation, 1u);
  EXPECT_TRUE(read.Accept(*next));
}

TEST(RingSpaceTest, WhatWasNotReadIsNotWrittenOver) {
  WrittenRing written(kArena, 128);
  ASSERT_TRUE(written.Take(40).has_value());
  EXPECT_TRUE(written.HasRoomFor(64));
  EXPECT_FALSE(written.HasRoomFor(65));
  ASSERT_TRUE(written.Take(64).has_value());
  EXPECT_FALSE(written.HasRoomFor(1));
  EXPECT_FALSE(written.Take(40).has_value());
  EXPECT_FALSE(written.HasRoomFor(129));
}

TEST(RingSpaceTest, AReaderTrustsNoHandle) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const RingHandle sound = {kArena, 10, 20, 5};
  const auto accepts = [](const RingHandle& handle) {
    ReadRing read(kArena, 100);
    for (uint64_t generation = 0; generation < 5; ++generation) {
      EXPECT_TRUE(read.Accept({kArena, 0, 100, generation}));
      read.Return();
    }
    return read.Accept(handle);
  };
  EXPECT_TRUE(accepts(sound));
  RingHandle handle = sound;
  handle.arena ^= 1;
  EXPECT_FALSE(accepts(handle)) << "of another ring";
  handle = sound;
  handle.bytes = 91;
  EXPECT_FALSE(accepts(handle)) << "past the end";
  handle = sound;
  handle.offset = kMost - 5;
  EXPECT_FALSE(accepts(handle)) << "a sum that wraps around";
  handle = sound;
  handle.bytes = kMost - 5;
  EXPECT_FALSE(accepts(handle)) << "a sum that wraps around";
  handle = sound;
  handle.generation = 4;
  EXPECT_FALSE(accepts(handle)) << "written over since";
  handle = sound;
  handle.generation = 7;
  EXPECT_FALSE(accepts(handle)) << "not written yet";
  for (const uint64_t generation : {kMost, kMost / 100, kMost / 100 - 2}) {
    handle = sound;
    handle.generation = generation;
    EXPECT_FALSE(accepts(handle)) << "a product that wraps around";
  }
}

TEST(RingSpaceTest, AWriterTrustsNoReturn) {
  WrittenRing written(kArena, 100);
  const RingHandle first = *written.Take(60);
  const RingHandle second = *written.Take(30);
  EXPECT_FALSE(written.Return({kArena, 64, 31, 0})) << "never written";
  EXPECT_FALSE(written.Return({kArena + 1, 0, 60, 0})) << "of another ring";
  EXPECT_TRUE(written.Return(second)) << "includes those before";
  EXPECT_FALSE(written.Return(first)) << "returned before";
}

}  // namespace
}  // namespace heddle::cluster

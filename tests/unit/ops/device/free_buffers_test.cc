// SPDX-License-Identifier: Apache-2.0
// Which buffers are used again, and when they go back to the driver.
#include "ops/device/opencl/free_buffers.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle::ops::testing {
namespace {

class FreeBuffersTest : public ::testing::Test {
 protected:
  // Buffers are named by their place in an array.
  FreeBuffers::Buffer Buffer(int name, int64_t bytes) {
    return {&names_[name], bytes, [this, name] { return is_idle_[name]; }};
  }
  int NameOf(const std::optional<FreeBuffers::Buffer>& buffer) const {
    return buffer ? static_cast<int>(static_cast<const char*>(buffer->handle) - names_) : -1;
  }
  FreeBuffers Make(int64_t most_bytes) {
    return FreeBuffers([most_bytes] { return most_bytes; }, [this](void* handle) {
      released_.push_back(static_cast<int>(static_cast<const char*>(handle) - names_));
    });
  }

  char names_[1024] = {};
  std::vector<bool> is_idle_ = std::vector<bool>(1024, true);
  std::vector<int> released_;
};

TEST_F(FreeBuffersTest, TheSmallestThatIsLargeEnoughIsTaken) {
  FreeBuffers free = Make(1'000'000);
  for (const auto& [name, bytes] : {std::pair(1, 1100), {2, 1000}, {3, 1050}, {4, 1126}, {5, 999}})
    free.Keep(Buffer(name, bytes));
  EXPECT_EQ(free.bytes(), 1100 + 1000 + 1050 + 1126 + 999);
  EXPECT_EQ(NameOf(free.Take(1000)), 2);
  EXPECT_EQ(NameOf(free.Take(1000)), 3);
  EXPECT_EQ(NameOf(free.Take(1000)), 1);
  EXPECT_EQ(NameOf(free.Take(1000)), -1);  // 1126 are more than an eighth more.
  EXPECT_EQ(NameOf(free.Take(1126)), 4);
  EXPECT_EQ(free.bytes(), 999);
  EXPECT_TRUE(released_.empty());
}

TEST_F(FreeBuffersTest, OfEqualOnesTheLastOne) {
  FreeBuffers free = Make(1'000'000);
  for (const int name : {1, 2, 3}) free.Keep(Buffer(name, 1000));
  EXPECT_EQ(NameOf(free.Take(1000)), 3);
  EXPECT_EQ(NameOf(free.Take(1000)), 2);
}

// A command may still read or write it, in whatever queue.
TEST_F(FreeBuffersTest, WhatIsInUseIsLeftAlone) {
  FreeBuffers free = Make(1'000'000);
  for (const int name : {1, 2, 3}) free.Keep(Buffer(name, 1000));
  is_idle_[3] = is_idle_[1] = false;
  EXPECT_EQ(NameOf(free.Take(1000)), 2);
  EXPECT_EQ(NameOf(free.Take(1000)), -1);
  EXPECT_EQ(free.bytes(), 2000);
  is_idle_[1] = true;
  EXPECT_EQ(NameOf(free.Take(1000)), 1);
  is_idle_[3] = true;
  EXPECT_EQ(NameOf(free.Take(1000)), 3);
  EXPECT_EQ(free.bytes(), 0);
}

// Those that were looked at and are in use keep their age.
TEST_F(FreeBuffersTest, TheOldestGoFirst) {
  FreeBuffers free = Make(4000);
  for (const int name : {1, 2, 3, 4}) free.Keep(Buffer(name, 1000));
  for (const int name : {1, 2, 3, 4}) is_idle_[name] = false;
  EXPECT_EQ(NameOf(free.Take(1000)), -1);
  free.Keep(Buffer(5, 500));
  EXPECT_EQ(released_, std::vector<int>({1}));
  EXPECT_EQ(free.bytes(), 3500);
  EXPECT_EQ(free.Release(1500), 2000);
  EXPECT_EQ(released_, std::vector<int>({1, 2, 3}));
  free.Keep(Buffer(6, 5000));  // More than may be kept, and so nothing is.
  EXPECT_EQ(released_, std::vector<int>({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(free.bytes(), 0);
  EXPECT_EQ(free.Release(1), 0);
}

TEST_F(FreeBuffersTest, ThereAreNotVeryMany) {
  {
    FreeBuffers free = Make(1'000'000);
    for (int name = 0; name < 300; ++name) free.Keep(Buffer(name, 8));
    EXPECT_EQ(released_.size(), 300u - 256u);
    EXPECT_EQ(released_.front(), 0);
  }
  EXPECT_EQ(released_.size(), 300u);
}

}  // namespace
}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
// Memory that is freed is used again, and not before the commands are done which need it.
#include "ops/device/opencl/opencl_memory.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/memory/memory_budget.h"
#include "opened_device.h"

namespace heddle::ops::testing {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

class OpenClMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FirstOpened().library == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    description_.memory_bytes = 16 * kMegabyte;
    description_.largest_allocation_bytes = 8 * kMegabyte;
    memories_ = std::make_unique<OpenClMemories>(*FirstOpened().library, FirstOpened().context, description_);
  }
  std::shared_ptr<DeviceMemory> Allocate(int64_t bytes) {
    Result<std::shared_ptr<DeviceMemory>> memory = memories_->Allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status().ToString();
    return memory.ok() ? *std::move(memory) : nullptr;
  }

  DeviceDescription description_;
  std::unique_ptr<OpenClMemories> memories_;
};

TEST_F(OpenClMemoryTest, WhatIsFreedIsUsedAgain) {
  for (int round = 0; round < 5; ++round) {
    const auto a = Allocate(kMegabyte), b = Allocate(100);
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->bytes(), kMegabyte);
    EXPECT_EQ(b->bytes(), 100);
  }
  EXPECT_EQ(memories_->made(), 2);
  EXPECT_EQ(Allocate(kMegabyte - 1000)->bytes(), kMegabyte - 1000);
  EXPECT_EQ(memories_->made(), 2);
  Allocate(kMegabyte / 2);
  EXPECT_EQ(memories_->made(), 3);
}

TEST_F(OpenClMemoryTest, ABufferThatACommandNeedsIsLeftAlone) {
  const Opened& opened = FirstOpened();
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto create_event =
      reinterpret_cast<decltype(&clCreateUserEvent)>(dlsym(library, "clCreateUserEvent"));
  const auto set_status =
      reinterpret_cast<decltype(&clSetUserEventStatus)>(dlsym(library, "clSetUserEventStatus"));
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = opened.library->clCreateCommandQueue(opened.context, opened.id, 0, &code);
  const cl_event gate = create_event(opened.context, &code);
  ASSERT_EQ(code, CL_SUCCESS);
  cl_event done = nullptr;
  const std::vector<char> bytes(4096, 1);
  {
    const std::shared_ptr<DeviceMemory> memory = Allocate(4096);
    const auto& there = static_cast<const OpenClMemory&>(*memory);
    ASSERT_EQ(opened.library->clEnqueueWriteBuffer(queue, there.handle(), CL_FALSE, 0, 4096, bytes.data(), 1,
                                                   &gate, &done),
              CL_SUCCESS);
    there.UsedBy(queue, done);
  }
  Allocate(4096);
  EXPECT_EQ(memories_->made(), 2);
  ASSERT_EQ(set_status(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(opened.library->clFinish(queue), CL_SUCCESS);
  const auto first = Allocate(4096), second = Allocate(4096);
  EXPECT_EQ(memories_->made(), 2);
  for (const cl_event event : {gate, done}) opened.library->clReleaseEvent(event);
  opened.library->clReleaseCommandQueue(queue);
}

// What is kept counts as free memory, and takes no more than a part of it.
TEST_F(OpenClMemoryTest, WhatIsKeptGoesWhereMemoryIsShort) {
  std::vector<std::shared_ptr<DeviceMemory>> all;
  for (int i = 0; i < 15; ++i) all.push_back(Allocate(kMegabyte));
  all.resize(13);
  EXPECT_EQ(memories_->kept_bytes(), 2 * kMegabyte);
  all.resize(12);
  EXPECT_EQ(memories_->kept_bytes(), 2 * kMegabyte);
  const auto large = Allocate(3 * kMegabyte);  // 12 + 2 + 3 are more than 16.
  EXPECT_EQ(memories_->kept_bytes(), kMegabyte);
  EXPECT_EQ(memories_->ReleaseKept(), kMegabyte);
  EXPECT_EQ(memories_->kept_bytes(), 0);
}

// Where it is the memory of the process, the limit of the process bounds it, too.
TEST_F(OpenClMemoryTest, WhatIsKeptOfTheHostsMemoryGoesByItsLimit) {
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  for (const bool is_host : {false, true}) {
    SCOPED_TRACE(is_host);
    description_.is_host = is_host;
    description_.memory_bytes = 1024 * kMegabyte;
    OpenClMemories memories(*FirstOpened().library, FirstOpened().context, description_);
    std::vector<std::shared_ptr<DeviceMemory>> all;
    for (int i = 0; i < 5; ++i) all.push_back(*memories.Allocate(kMegabyte));
    budget.SetLimit(budget.used() + 64 * kMegabyte);
    all.clear();
    EXPECT_EQ(memories.kept_bytes(), 5 * kMegabyte);
    // Of little that is free an eighth of the limit, or more, is left to others.
    std::shared_ptr<DeviceMemory> one = *memories.Allocate(kMegabyte);
    budget.SetLimit(budget.used() + 4 * kMegabyte);
    one = nullptr;
    EXPECT_LE(memories.kept_bytes(), is_host ? kMegabyte : 5 * kMegabyte);
    EXPECT_GE(memories.kept_bytes(), is_host ? 0 : 5 * kMegabyte);
    // An allocation that goes beyond the limit takes the place of what is kept.
    budget.SetLimit(budget.used() + kMegabyte);
    const auto large = *memories.Allocate(3 * kMegabyte);
    EXPECT_EQ(memories.kept_bytes(), is_host ? 0 : 5 * kMegabyte);
    budget.SetLimit(limit);
  }
}

// POCL gives what the machine has, and others find out when a command comes.
TEST_F(OpenClMemoryTest, MoreThanTheDeviceHas) {
  const auto first = Allocate(8 * kMegabyte);
  auto second = Allocate(8 * kMegabyte - 1000);
  const Result<std::shared_ptr<DeviceMemory>> third = memories_->Allocate(1000);
  EXPECT_EQ(third.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(third.status().message().find("1000 bytes: of the 16777216 of the device "), std::string::npos)
      << third.status().message();
  second.reset();
  EXPECT_NE(Allocate(1000), nullptr);
}

TEST_F(OpenClMemoryTest, MoreThanTheDeviceGivesAtOnce) {
  EXPECT_EQ(memories_->Allocate(8 * kMegabyte + 1).status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(Allocate(8 * kMegabyte), nullptr);
}

}  // namespace
}  // namespace heddle::ops::testing

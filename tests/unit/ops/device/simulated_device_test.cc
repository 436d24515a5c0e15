// SPDX-License-Identifier: Apache-2.0
// The simulated device names what is done wrong on it, and fused operators do nothing of that kind. On
// machines without an OpenCL device, which runs its kernels, these tests are skipped.
#include "tests/support/simulated_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "first_device.h"
#include "ops/device/device_matrix.h"
#include "ops/device/run/run_on_device.h"
#include "ops/device/self_test.h"
#include "tests/unit/ops/fused/body_builder.h"
#include "tests/unit/ops/fused/random_body.h"

namespace heddle::ops::testing {
namespace {

using testing_support::SimulatedDevice;
using testing_support::SimulatedDeviceOptions;

constexpr int64_t kBytes = 800;
// Doubles what is there, or writes where it must not.
constexpr const char* kSource = R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void twice(__global const double* a, __global double* b) {
  b[get_global_id(0)] = a[get_global_id(0)] * 2.0;
}
__kernel void behind(__global double* a) { a[100 + get_global_id(0) % 8] = 1.0; }
__kernel void cheats(__global const double* a) { ((__global double*)a)[get_global_id(0)] = 3.0; }
)";

class SimulatedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FirstDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    Make({.seed = 1});
  }
  void TearDown() override {
    a_ = b_ = nullptr;
    first_ = nullptr;
    second_ = nullptr;
  }
  void Make(const SimulatedDeviceOptions& options) {
    TearDown();
    device_.emplace(*FirstDevice(), options);
    first_ = *device_->MakeQueue();
    second_ = *device_->MakeQueue();
    a_ = *device_->Allocate(kBytes);
    b_ = *device_->Allocate(kBytes);
  }
  Status Launch(DeviceQueue& queue, const char* name, std::vector<DeviceArgument> arguments) {
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceKernel> kernel, device_->Compile(kSource, name));
    return queue.Launch(kernel, arguments, {.groups = 10, .group_size = 10});
  }
  // One fault, with these words, after all commands.
  void ExpectFault(const std::string& words) {
    EXPECT_TRUE(first_ == nullptr || first_->Finish().ok());
    EXPECT_TRUE(second_ == nullptr || second_->Finish().ok());
    const std::vector<std::string> faults = device_->faults();
    ASSERT_EQ(faults.size(), 1u) << words << ::testing::PrintToString(faults);
    EXPECT_NE(faults[0].find(words), std::string::npos) << faults[0];
  }
  void ExpectNoFault() {
    EXPECT_TRUE(first_->Finish().ok());
    EXPECT_TRUE(second_->Finish().ok());
    EXPECT_TRUE(device_->faults().empty()) << ::testing::PrintToString(device_->faults());
  }

  std::vector<double> host_ = std::vector<double>(100, 1.5), back_ = std::vector<double>(100, 0.0);
  std::optional<SimulatedDevice> device_;
  std::unique_ptr<DeviceQueue> first_, second_;
  std::shared_ptr<DeviceMemory> a_, b_;
};

TEST_F(SimulatedDeviceTest, CommandsOfAQueueAreDoneLateAndInOrder) {
  int told = 0;
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(Launch(*first_, "twice", {a_, b_}).ok());
  ASSERT_TRUE(first_->WhenDone([&](const Status& status) { told += status.ok() ? 1 : 100; }).ok());
  ASSERT_TRUE(first_->Read(*b_, 0, kBytes, back_.data()).ok());
  // What is to be read is not there yet, and nobody takes it for numbers.
  EXPECT_TRUE(std::isnan(back_[0]));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(device_->writes(), 0);
  ASSERT_TRUE(first_->Finish().ok());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(back_, std::vector<double>(100, 3.0));
  ExpectNoFault();
}

TEST_F(SimulatedDeviceTest, ASeedSaysWhoseTurnItIs) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::string orders_of[2];
    for (std::string& order : orders_of) {
      Make({.seed = seed});
      for (const auto& [queue, name] : {std::pair(first_.get(), 'a'), std::pair(second_.get(), 'b')})
        for (int i = 0; i < 2; ++i)
          ASSERT_TRUE(queue->WhenDone([&order, name = name](const Status&) { order += name; }).ok());
      while (device_->NextNs() != INT64_MAX) device_->Happen();
    }
    EXPECT_EQ(orders_of[0], orders_of[1]);
    orders.insert(orders_of[0]);
  }
  EXPECT_EQ(orders.size(), 6u) << ::testing::PrintToString(orders);
}

TEST_F(SimulatedDeviceTest, AQueueThatDoesNotWaitForAnotherOne) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(second_->Read(*a_, 400, 8, back_.data()).ok());
  static_cast<void>(first_->Finish());
  ExpectFault("a read in queue 2 reads memory 1, which a write in queue 1 writes, and does not wait for it");
}

TEST_F(SimulatedDeviceTest, AQueueThatWritesWhileAnotherOneReads) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(first_->Finish().ok());
  ASSERT_TRUE(Launch(*first_, "twice", {a_, b_}).ok());
  ASSERT_TRUE(second_->Write(host_.data(), 8, *a_, 0).ok());
  ExpectFault("a write in queue 2 writes memory 1, which the kernel twice in queue 1 reads, and does not");
}

TEST_F(SimulatedDeviceTest, QueuesThatWaitForEachOther) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(second_->WaitFor(*first_->Mark()).ok());
  ASSERT_TRUE(Launch(*second_, "twice", {a_, b_}).ok());
  ASSERT_TRUE(first_->WaitFor(*second_->Mark()).ok());
  ASSERT_TRUE(first_->Read(*b_, 0, kBytes, back_.data()).ok());
  std::vector<double> other(100, 0.0);
  ASSERT_TRUE(second_->Read(*b_, 0, kBytes, other.data()).ok());  // Two may read.
  ExpectNoFault();
  EXPECT_EQ(back_, std::vector<double>(100, 3.0));
  EXPECT_EQ(other, back_);
}

TEST_F(SimulatedDeviceTest, TheHostMayWaitInPlaceOfAQueue) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  bool told = false;
  ASSERT_TRUE(first_->WhenDone([&](const Status&) { told = true; }).ok());
  while (!told) device_->Happen();
  ASSERT_TRUE(second_->Read(*a_, 0, kBytes, back_.data()).ok());
  ExpectNoFault();
  EXPECT_EQ(back_, host_);
}

TEST_F(SimulatedDeviceTest, MemoryThatIsFreedTooEarly) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  a_ = nullptr;
  EXPECT_FALSE(first_->Finish().ok());
  first_ = nullptr;
  ExpectFault("memory 1 of 800 bytes is freed, and nobody has waited for a write in queue 1 that writes it");
}

// Launches keep their memory, and so do they for the commands before them.
TEST_F(SimulatedDeviceTest, MemoryThatALaunchKeeps) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(Launch(*first_, "twice", {a_, b_}).ok());
  a_ = nullptr;
  EXPECT_EQ(device_->bytes_in_use(), 2 * kBytes);
  ExpectNoFault();
  EXPECT_EQ(device_->bytes_in_use(), kBytes);
}

TEST_F(SimulatedDeviceTest, BytesOutsideOfAMemory) {
  EXPECT_FALSE(first_->Write(host_.data(), 16, *a_, kBytes - 8).ok());
  ExpectFault("a write takes bytes [792, 808) of memory 1, which has 800");
}

TEST_F(SimulatedDeviceTest, BytesThatNothingHasWritten) {
  ASSERT_TRUE(first_->Write(host_.data(), 400, *a_, 0).ok());
  ASSERT_TRUE(first_->Read(*a_, 200, 400, back_.data()).ok());
  ExpectFault("a read takes bytes [200, 600) of memory 1, which nothing has written");
  Make({.seed = 1});
  ASSERT_TRUE(Launch(*first_, "twice", {a_, b_}).ok());
  ExpectFault("the kernel twice reads memory 1, to which nothing is written, or not to all of it");
}

TEST_F(SimulatedDeviceTest, MemoryOfTheHostThatChangesMeanwhile) {
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  host_[3] = 2.5;
  ExpectFault("the host has changed what a write to memory 1 reads");
  Make({.seed = 1});
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(first_->Read(*a_, 0, kBytes, back_.data()).ok());
  back_[3] = 2.5;
  ExpectFault("the host has changed what a read of memory 1 writes");
}

TEST_F(SimulatedDeviceTest, KernelsThatWriteWhereTheyMustNot) {
  ASSERT_TRUE(Launch(*first_, "behind", {a_}).ok());
  ExpectFault("the kernel behind writes behind the end of memory 1");
  Make({.seed = 1});
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(Launch(*first_, "cheats", {a_}).ok());
  ExpectFault("the kernel cheats writes to memory 1, which is const there");
}

TEST_F(SimulatedDeviceTest, ADeviceThatIsLost) {
  Make({.seed = 1, .lost_at_command = 1});
  ASSERT_TRUE(first_->Write(host_.data(), kBytes, *a_, 0).ok());
  ASSERT_TRUE(first_->Read(*a_, 0, kBytes, back_.data()).ok());
  EXPECT_EQ(first_->Finish().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(std::isnan(back_[0]));
  EXPECT_EQ(device_->Allocate(8).status().code(), StatusCode::kUnavailable);
  Make({.seed = 1, .memory_bytes = 2 * kBytes});
  EXPECT_EQ(device_->Allocate(8).status().code(), StatusCode::kResourceExhausted);
}

// Values of a CSR matrix are on their way when its columns find no room.
TEST_F(SimulatedDeviceTest, EntriesOfWhichSomeHaveNoRoom) {
  std::optional<Matrix> entries = *ToSparse(Cells(100, 10, 1, false, 0.3));
  Make({.seed = 1, .memory_bytes = 2 * kBytes + entries->stored() * 8});
  EXPECT_EQ(EntriesToDevice(*entries, *device_, *first_).status().code(), StatusCode::kResourceExhausted);
  entries.reset();
  ExpectNoFault();
  EXPECT_EQ(device_->writes(), 1);
}

// The host cannot read cells of the device.
TEST_F(SimulatedDeviceTest, ComputesAsIeee754HasItAndKeepsTheHostOut) {
  EXPECT_TRUE(CheckArithmetic(*device_).ok());
  EXPECT_TRUE(device_->faults().empty()) << ::testing::PrintToString(device_->faults());
}

// Fused operators on it have the bytes of the processor in any order of commands, and nothing is named.
class TilesOnSimulatedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FirstDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    device_.emplace(*FirstDevice(), SimulatedDeviceOptions{.seed = 3});
    queue_ = *device_->MakeQueue();
    operators_.emplace(*device_);
    scope_.emplace(
        [this](const KernelCall& call, std::span<const Value> expected) { Compare(call, expected); });
  }
  void TearDown() override {
    scope_.reset();
    if (!device_) return;
    EXPECT_TRUE(device_->faults().empty()) << ::testing::PrintToString(device_->faults());
    queue_ = nullptr;
  }
  void Compare(const KernelCall& call, std::span<const Value> expected) {
    std::vector<Value> actual(expected.size());
    const Status status = operators_->Run(call, *queue_, actual);
    if (status.code() == StatusCode::kUnimplemented) return;
    ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << call.node.fused->ToText();
    if (call.phase != Phase::kWhole) return;  // Places of a list that pad it may hold anything.
    ++ran_;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].IsScalar()) {
        EXPECT_EQ(expected[i].scalar().ToLiteral(), actual[i].scalar().ToLiteral());
      } else {
        const Result<Matrix> cells = ToDense(actual[i].matrix());
        ASSERT_TRUE(cells.ok()) << cells.status().ToString();
        EXPECT_TRUE(Matrix::SameCells(expected[i].matrix(), *cells)) << call.node.fused->ToText();
      }
    }
  }

  std::optional<SimulatedDevice> device_;
  std::unique_ptr<DeviceQueue> queue_;
  std::optional<DeviceOperators> operators_;
  std::optional<BodyBuilder::AlsoRunScope> scope_;
  int ran_ = 0;
};

TEST_F(TilesOnSimulatedDeviceTest, CellsReductionsAndProducts) {
  for (const char* root : {"", "sum", "rowSums", "colMaxs", "t%*%"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(1025, 9, 1)));
    const NodeId y = body.Input(Value(Cells(1025, 1, 2)));
    const NodeId cells = body.Op("-", {body.Op("*", {x, y}), body.Literal(Scalar(0.3))});
    std::vector<NodeId> inputs = {cells};
    if (*root == 't') inputs.insert(inputs.begin(), x);
    body.Finish({*root == 0 ? cells : body.Op(root, inputs)});
    body.ExpectSame(root);
  }
  EXPECT_GE(ran_, 5);
}

TEST_F(TilesOnSimulatedDeviceTest, RandomBodies) {
  for (uint32_t seed = 100; seed < 106 && !HasFailure(); ++seed)
    RandomBodyAgrees({130, 3}, seed, 11, seed % 2 == 0 ? Roots::kSeveral : Roots::kOne);
  EXPECT_GE(ran_, 5);
}

}  // namespace
}  // namespace heddle::ops::testing

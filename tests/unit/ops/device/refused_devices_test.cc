// SPDX-License-Identifier: Apache-2.0
// Devices that are not used, and what is not run on one: each says why.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "first_device.h"
#include "ops/device/compiled_kernels.h"
#include "ops/device/opencl/usable_devices.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/run/run_on_device.h"
#include "ops/device/self_test.h"
#include "tests/unit/ops/fused/body_builder.h"

namespace heddle::ops::testing {
namespace {

class HostMemory : public DeviceMemory {
 public:
  explicit HostMemory(int64_t bytes) : cells(static_cast<size_t>(bytes)) {}
  int64_t bytes() const override { return static_cast<int64_t>(cells.size()); }
  std::vector<char> cells;
};

// A queue that does nothing but copy: whatever is launched leaves zeros.
class IdleQueue : public DeviceQueue {
 public:
  Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) override {
    std::memcpy(static_cast<HostMemory&>(to).cells.data() + offset, from, static_cast<size_t>(bytes));
    return OkStatus();
  }
  Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
    std::memcpy(to, static_cast<const HostMemory&>(from).cells.data() + offset, static_cast<size_t>(bytes));
    return OkStatus();
  }
  Status Launch(const std::shared_ptr<DeviceKernel>&, std::span<const DeviceArgument>,
                const LaunchShape&) override {
    return OkStatus();
  }
  Status WhenDone(std::function<void(const Status&)> done) override {
    done(OkStatus());
    return OkStatus();
  }
  Status Finish() override { return OkStatus(); }
};

class WrongDevice : public ComputeDevice {
 public:
  explicit WrongDevice(bool has_doubles) {
    description_.name = "a device of a test";
    description_.has_doubles = has_doubles;
    description_.most_group_size = 128;
  }
  const DeviceDescription& description() const override { return description_; }
  Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes) override {
    return std::shared_ptr<DeviceMemory>(std::make_shared<HostMemory>(bytes));
  }
  Result<std::unique_ptr<DeviceQueue>> MakeQueue() override {
    return std::unique_ptr<DeviceQueue>(std::make_unique<IdleQueue>());
  }
  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string&, const std::string&) override {
    return std::make_shared<DeviceKernel>();
  }

 private:
  DeviceDescription description_;
};

TEST(RefusedDevicesTest, OneThatComputesOtherwise) {
  WrongDevice wrong(/*has_doubles=*/true);
  const Status status = CheckArithmetic(wrong);
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("a device of a test does not compute as IEEE 754 has it: a / b of a = "),
            std::string::npos)
      << status.message();
}

TEST(RefusedDevicesTest, OneWithoutDoubles) {
  WrongDevice floats(/*has_doubles=*/false);
  EXPECT_EQ(CheckArithmetic(floats).message(), "a device of a test has no doubles");
}

TEST(RefusedDevicesTest, OneThatIsNotThere) {
  if (FirstDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  const Result<DeviceSet*> set = DevicesWith({DeviceType::kOpenCl, 99});
  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.status().message().find("there is no opencl:99, the last device is opencl:"),
            std::string::npos)
      << set.status().message();
}

TEST(RefusedDevicesTest, OneThatIsNotThereInPlaceOfOpenCl) {
  class OneDevice : public DeviceSet {
   public:
    std::vector<ComputeDevice*> devices() override { return {&device_}; }

   private:
    WrongDevice device_{/*has_doubles=*/true};
  };
  OneDevice set;
  UseDevices(&set);
  EXPECT_NE(UsableDevice({DeviceType::kOpenCl, 0}), nullptr);
  EXPECT_EQ(UsableDevice({DeviceType::kOpenCl, 1}), nullptr);
  EXPECT_EQ(DevicesWith({DeviceType::kOpenCl, 1}).status().message(),
            "there is no opencl:1, the last device is opencl:0");
  UseDevices(nullptr);
}

TEST(RefusedDevicesTest, MoreMemoryThanItHas) {
  ComputeDevice* const device = FirstDevice();
  if (device == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  const Result<std::shared_ptr<DeviceMemory>> memory = device->Allocate(int64_t{1} << 60);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(memory.status().message().find("1152921504606846976 bytes at once are more than the "),
            std::string::npos)
      << memory.status().message();
}

TEST(RefusedDevicesTest, AProgramThatItsCompilerRefuses) {
  ComputeDevice* const device = FirstDevice();
  if (device == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  const auto kernel = device->Compile("__kernel void f(__global double* a) { a[0] = nothing; }", "f");
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), StatusCode::kInternal);
}

// Whose compiler ends when two are at work.
class SlowCompiler : public WrongDevice {
 public:
  SlowCompiler() : WrongDevice(/*has_doubles=*/true) {}
  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source, const std::string& name) override {
    std::unique_lock lock(mutex_);
    ++compiled_;
    changed_.notify_all();
    // The deadline only turns a hang into a failure.
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [&] { return compiled_ >= 2; }))
      return Internal("one kernel waits for another one to be compiled");
    return WrongDevice::Compile(source, name);
  }
  int compiled() const { return compiled_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int compiled_ = 0;
};

// Each kernel once, whoever asks for it, and different ones at a time.
TEST(DeviceOperatorsTest, KernelsAreCompiledSideBySide) {
  SlowCompiler device;
  DeviceOperators operators(device);
  const ValueInfo info = ValueInfo::OfMatrix({100, 3});
  const Value x(Cells(100, 3, 1));
  const auto queue = [&](const std::string& op) {
    const Node node{.op = op, .inputs = {0}, .info = info};
    const Value* const inputs[] = {&x};
    KernelContext context;
    IdleQueue commands;
    Value result;
    const auto queued =
        operators.Queue({.node = node,
                         .phase = Phase::kWhole,
                         .inputs = inputs,
                         .input_infos = {&info, 1},
                         .context = context},
                        commands, {&result, 1});
    EXPECT_TRUE(queued.ok()) << queued.status().ToString();
  };
  std::vector<std::thread> threads;
  for (const char* op : {"exp", "abs", "exp", "abs", "exp"}) threads.emplace_back(queue, op);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.compiled(), 2);
}

// Whose kernels are counted.
class CountedCompiler : public WrongDevice {
 public:
  CountedCompiler() : WrongDevice(/*has_doubles=*/true) {}
  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source, const std::string& name) override {
    ++compiled_;
    return WrongDevice::Compile(source, name);
  }
  bool IsKept(const std::string& source) const override { return source == kept_; }
  void Keep(const std::string& source) override { kept_ = source; }
  int compiled() const { return compiled_; }

 private:
  int compiled_ = 0;
  std::string kept_;
};

// A device may be made where another one has been.
TEST(DeviceOperatorsTest, AnotherDeviceAtTheSameAddressHasKernelsOfItsOwn) {
  std::optional<CountedCompiler> device;
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = device ? device->id() : 0;
    const DeviceOperators* const of_before = device ? &DeviceOperators::Of(*device) : nullptr;
    device.emplace();
    EXPECT_NE(device->id(), before);
    EXPECT_NE(&DeviceOperators::Of(*device), of_before);
    EXPECT_EQ(&DeviceOperators::Of(*device), &DeviceOperators::Of(*device));
    EXPECT_FALSE(IsCompiled(*device, "a source", "kernel"));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(KernelOf(*device, "a source", "kernel").ok());
    EXPECT_TRUE(IsCompiled(*device, "a source", "kernel"));
    EXPECT_FALSE(IsCompiled(*device, "a source", "another kernel"));
    EXPECT_EQ(device->compiled(), 1);
  }
}

// Functions of cells have one kernel for all shapes, and what an earlier process has compiled is known.
TEST(DeviceOperatorsTest, KernelsOfCellsServeAllShapes) {
  CountedCompiler device;
  DeviceOperators operators(device);
  const auto kernel = [&](const std::string& op, int64_t rows, int64_t columns) {
    const ValueInfo info = ValueInfo::OfMatrix({rows, columns});
    return operators.KernelOf({.op = op, .inputs = {0}, .info = info}, {&info, 1});
  };
  EXPECT_NE(kernel("exp", 100, 3), "");
  EXPECT_EQ(kernel("exp", 100, 3), kernel("exp", 7, 1));
  EXPECT_EQ(kernel("exp", 100, 3), kernel("exp", 50, 3000));
  EXPECT_NE(kernel("exp", 100, 3), kernel("abs", 100, 3));
  EXPECT_FALSE(operators.IsCompiled(kernel("exp", 100, 3)));
  device.Keep(kernel("exp", 100, 3));
  EXPECT_TRUE(operators.IsCompiled(kernel("exp", 7, 9)));
  EXPECT_FALSE(operators.IsCompiled(kernel("abs", 7, 9)));
  EXPECT_EQ(device.compiled(), 0);
}

// A CSR matrix of many columns, and what it is multiplied with.
TEST(RefusedDevicesTest, MoreCellsThanAnIntCounts) {
  CountedCompiler device;
  DeviceOperators operators(device);
  constexpr int64_t kColumns = 100'000'000;
  ValueInfo x = ValueInfo::OfMatrix({10000, kColumns});
  x.format = Format::kSparse;
  const auto product = [&](int64_t columns) {
    const ValueInfo inputs[] = {x, ValueInfo::OfMatrix({kColumns, columns})};
    return operators.KernelOf(
        {.op = "%*%", .inputs = {0, 1}, .info = ValueInfo::OfMatrix({10000, columns})}, inputs);
  };
  EXPECT_NE(product(32).find("(columns0[e]) * 32L + "), std::string::npos) << product(32);
  EXPECT_NE(product(16).find("(columns0[e]) * 16 + "), std::string::npos) << product(16);
}

TEST(RefusedDevicesTest, Names) {
  EXPECT_EQ(ParseDevice("opencl:0"), (Device{DeviceType::kOpenCl, 0}));
  EXPECT_EQ(ParseDevice("opencl:12"), (Device{DeviceType::kOpenCl, 12}));
  for (const char* name :
       {"cpu", "cpu:0", "opencl", "opencl:", "opencl:x", "opencl:-1", "opencl:1x", "opencl:128", "opencl:00"})
    EXPECT_EQ(ParseDevice(name), std::nullopt) << name;
}

// Operators that the host keeps, by shapes and formats alone.
TEST(RefusedDevicesTest, WhatTheHostKeeps) {
  const auto refused = [](BodyBuilder& body) {
    const Result<TileProgram> program = Lower(body.fused());
    if (!program.ok()) return program.status().ToString();
    return PrintTiles(*program, {}).status().message();
  };
  BodyBuilder sparse;
  const NodeId rows = sparse.Input(Value(*ToSparse(Cells(100, 10, 1, false, 0.1))));
  sparse.Finish({sparse.Op("%*%", {rows, sparse.Input(Value(Cells(10, 20, 2)))})});
  EXPECT_EQ(refused(sparse), "");
  sparse.BecomeSingle();
  EXPECT_EQ(refused(sparse), "");
  BodyBuilder entries;
  const NodeId x = entries.Input(Value(*ToSparse(Cells(100, 10, 1, false, 0.1))));
  entries.Finish({entries.Op("*", {x, x})});
  EXPECT_EQ(refused(entries), "");
  entries.Finish({entries.Op("sum", {entries.Op("*", {x, x})})});
  EXPECT_EQ(refused(entries), "");
  BodyBuilder long_rows;
  const NodeId wide = long_rows.Input(Value(Cells(3, 70000, 1)));
  long_rows.Finish({long_rows.Op("rowSums", {long_rows.Op("abs", {wide})})});
  EXPECT_EQ(refused(long_rows), "");
  long_rows.Finish({long_rows.Op("*", {wide, long_rows.Op("rowVars", {wide})})});
  EXPECT_EQ(refused(long_rows), "");
  long_rows.Finish({long_rows.Op("*", {wide, long_rows.Op("rowIndexMax", {wide})})});
  EXPECT_EQ(refused(long_rows), "rowIndexMax of rows longer than a column chunk");
}

// Of long CSR rows all cells are written out where a result has them all; without such a result the host goes
// from entry to entry.
TEST(RefusedDevicesTest, AllCellsOfLongRowsWithEntries) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(30, 70'000, 1, false, 0.01))));
  const NodeId e = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
  const auto refused = [&](NodeId root) {
    body.Finish({root});
    const Result<TileProgram> program = LowerForDevice(body.fused());
    return program.ok() ? PrintTiles(*program, {}).status().message() : program.status().ToString();
  };
  EXPECT_EQ(refused(body.Op("/", {e, body.Op("rowSums", {e})})), "");
  EXPECT_EQ(refused(body.Op("+", {x, body.Literal(Scalar(1.0))})), "");
  EXPECT_EQ(refused(body.Op("sum", {e})), "");
  EXPECT_EQ(refused(body.Op("rowSums", {e})),
            "on a device: all cells of CSR rows longer than a column chunk");
}

}  // namespace
}  // namespace heddle::ops::testing

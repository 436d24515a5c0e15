// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a device, and each cell-wise operator in OpenCL C, have the bits of the processor's.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "first_device.h"
#include "ops/device/print/prelude.h"
#include "ops/device/print/print_cell.h"
#include "ops/device/print/printer.h"
#include "ops/device/self_test.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops::testing {
namespace {

std::vector<double> Arguments(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers = {0.0,       -0.0,
                                 1.0,       -1.0,
                                 2.0,       3.0,
                                 0.5,       -0.5,
                                 1.5,       2.5,
                                 1e300,     -1e300,
                                 1e-300,    0x1p-1074,
                                 0x1p-1022, 0x1p30,
                                 0x1p52,    0x1p63,
                                 -0x1p63,   1e22,
                                 NAN,       INFINITY,
                                 -INFINITY, 709.5,
                                 -745.1,    0x1.921fb54442d18p+0,
                                 63,        64,
                                 7,         255};
  while (numbers.size() < count) {
    const uint64_t bits = random();
    const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
    switch (bits % 5) {
      case 0: numbers.push_back(std::bit_cast<double>(random())); break;
      case 1: numbers.push_back((unit - 0.5) * 2000); break;
      case 2: numbers.push_back(std::ldexp(unit - 0.5, static_cast<int>(random() % 1100))); break;
      case 3: numbers.push_back(std::floor((unit - 0.5) * 300)); break;
      default: numbers.push_back((unit - 0.5) * 4);
    }
  }
  return numbers;
}

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = FirstDevice();
    if (device_ == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    Result<std::unique_ptr<DeviceQueue>> queue = device_->MakeQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    queue_ = *std::move(queue);
  }

  // Results of `text`, one behind the other, which writes them to out[k * count + i].
  std::vector<double> Run(const std::string& body, size_t results, const std::vector<double>& a,
                          const std::vector<double>& b) {
    const std::string source =
        std::string(printed::Prelude()) +
        "__kernel void cells(const long count, __global const double* a, __global const "
        "double* b, __global double* out) {\n  const long i = get_global_id(0);\n  if (i >= "
        "count) return;\n  const double x = a[i], y = b[i];\n" +
        body + "}\n";
    Result<std::shared_ptr<DeviceKernel>> kernel = device_->Compile(source, "cells");
    EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
    std::vector<double> out(results * a.size());
    if (!kernel.ok()) return out;
    const auto bytes = static_cast<int64_t>(a.size() * 8);
    std::shared_ptr<DeviceMemory> x = *device_->Allocate(bytes), y = *device_->Allocate(bytes),
                                  z = *device_->Allocate(bytes * static_cast<int64_t>(results));
    EXPECT_TRUE(queue_->Write(a.data(), bytes, *x, 0).ok());
    EXPECT_TRUE(queue_->Write(b.data(), bytes, *y, 0).ok());
    const std::vector<DeviceArgument> arguments = {static_cast<int64_t>(a.size()), x, y, z};
    EXPECT_TRUE(queue_->Launch(*kernel, arguments, {static_cast<int64_t>(a.size() + 63) / 64, 64}).ok());
    EXPECT_TRUE(queue_->Read(*z, 0, bytes * static_cast<int64_t>(results), out.data()).ok());
    EXPECT_TRUE(queue_->Finish().ok());
    return out;
  }

  ComputeDevice* device_ = nullptr;
  std::unique_ptr<DeviceQueue> queue_;
};

bool Same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST_F(DeviceTest, ComputesAsIeee754HasIt) {
  const Status status = CheckArithmetic(*device_);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// Whether the driver does its commands on threads of its own or within the call (Oclgrind).
TEST_F(DeviceTest, CallsBackWhenCommandsAreDone) {
  const std::vector<double> cells = {1, 2, 3};
  std::vector<double> back(3);
  const std::shared_ptr<DeviceMemory> there = *device_->Allocate(24);
  ASSERT_TRUE(queue_->Write(cells.data(), 24, *there, 0).ok());
  ASSERT_TRUE(queue_->Read(*there, 0, 24, back.data()).ok());
  // The second one has no command before it.
  for (int i = 0; i < 2; ++i) {
    auto told = std::make_shared<std::promise<Status>>();
    ASSERT_TRUE(queue_->WhenDone([told](const Status& status) { told->set_value(status); }).ok());
    std::future<Status> status = told->get_future();
    ASSERT_EQ(status.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    EXPECT_TRUE(status.get().ok());
    EXPECT_EQ(back, cells);
  }
}

TEST_F(DeviceTest, CellwiseOperatorsHaveTheBitsOfTheProcessor) {
  const std::vector<double> a = Arguments(1, 6000);
  std::vector<double> b = Arguments(2, 6000);
  for (size_t i = 0; i < b.size(); i += 7) b[i] = a[(i * 31) % a.size()];
  constexpr size_t kUnary = 0
#define HEDDLE_COUNT(Name) +1
      HEDDLE_UNARY_KERNELS(HEDDLE_COUNT);
  constexpr size_t kBinary = 0 HEDDLE_BINARY_KERNELS(HEDDLE_COUNT);
#undef HEDDLE_COUNT
  const auto print = [&](const RegionNode& node, size_t place) {
    printed::Printer printer(fmt::format("v{}_", place), "  ");
    const std::string result = printed::PrintNode(node, "x", "y", "");
    printer.Line(fmt::format("out[{} * count + i] = {};", place, result));
    return printer.TakeText();
  };
  std::string text;
  for (size_t code = 0; code < kUnary; ++code)
    text += print({.op = RegionOp::kUnary, .unary = static_cast<UnaryCode>(code)}, code);
  for (size_t code = 0; code < kBinary; ++code)
    text += print({.op = RegionOp::kBinary, .binary = static_cast<BinaryCode>(code)}, kUnary + code);
  const std::vector<double> results = Run(text, kUnary + kBinary, a, b);
  for (size_t place = 0; place < kUnary + kBinary; ++place) {
    int shown = 0;
    for (size_t i = 0; i < a.size() && shown < 3; ++i) {
      const bool is_unary = place < kUnary;
      // Functions of floats are called with floats.
      const double expected = is_unary ? Apply(static_cast<UnaryCode>(place), a[i])
                                       : Apply(static_cast<BinaryCode>(place - kUnary), a[i], b[i]);
      const double actual = results[place * a.size() + i];
      if (Same(expected, actual)) continue;
      ++shown;
      ADD_FAILURE() << (is_unary ? "unary " : "binary ") << (is_unary ? place : place - kUnary)
                    << fmt::format(" of {:a}, {:a} is {:a} there, not {:a}", a[i], b[i], actual, expected);
    }
  }
}

}  // namespace
}  // namespace heddle::ops::testing

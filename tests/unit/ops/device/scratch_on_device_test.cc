// SPDX-License-Identifier: Apache-2.0
// What operators take of the memory of a device beside what they read and make is what they have told before,
// from shapes alone. On machines without an OpenCL device these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "first_device.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/product.h"
#include "ops/device/run/run_on_device.h"
#include "tests/unit/ops/fused/body_builder.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {
namespace {

// Another device, whose memory is counted.
class MeteredDevice : public ComputeDevice {
 public:
  explicit MeteredDevice(ComputeDevice& real) : real_(real) {}
  const DeviceDescription& description() const override { return real_.description(); }
  Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes) override {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> memory, real_.Allocate(bytes));
    in_use_ += bytes;
    most_ = std::max(most_, in_use_);
    DeviceMemory* const there = memory.get();
    const auto free = [this, bytes, memory = std::move(memory)](DeviceMemory*) mutable {
      in_use_ -= bytes;
      memory = nullptr;
    };
    return std::shared_ptr<DeviceMemory>(there, free);
  }
  Result<std::unique_ptr<DeviceQueue>> MakeQueue() override { return real_.MakeQueue(); }
  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source, const std::string& name) override {
    return real_.Compile(source, name);
  }
  int64_t in_use() const { return in_use_; }
  /// Since the last call.
  int64_t TakeMost() { return std::exchange(most_, in_use_); }

 private:
  ComputeDevice& real_;
  int64_t in_use_ = 0, most_ = 0;
};

class ScratchOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FirstDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    device_ = std::make_unique<MeteredDevice>(*FirstDevice());
    queue_ = *device_->MakeQueue();
  }

  // Bytes that a call takes beside operands and result, and those that were told.
  std::pair<int64_t, int64_t> TakenAndTold(Invocation call, Phase phase = Phase::kWhole) {
    const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
    EXPECT_TRUE(inferred.ok()) << inferred.status().ToString();
    for (size_t i = 0; i < call.inputs.size(); ++i)
      call.infos[i].element_type = call.inputs[i]->matrix().element_type();
    call.SetInfos(*inferred);
    call.node.info.element_type = call.infos[0].element_type;
    EXPECT_TRUE(DeviceOperators::CanRun(call.node, call.infos).ok());
    std::vector<Value> there;
    std::vector<const Value*> inputs;
    for (const std::optional<Value>& input : call.inputs)
      there.emplace_back(*ToDevice(input->matrix(), *device_, *queue_));
    for (const Value& value : there) inputs.push_back(&value);
    const int64_t rows = call.inputs[0]->matrix().rows();
    const auto run = [&] {
      Value result;
      const Status status = DeviceOperators::Of(*device_).Run({.node = call.node,
                                                               .phase = phase,
                                                               .inputs = inputs,
                                                               .input_infos = call.infos,
                                                               .row_end = rows,
                                                               .total_rows = rows,
                                                               .context = context_,
                                                               .op = call.op},
                                                              *queue_, {&result, 1});
      EXPECT_TRUE(status.ok()) << status.ToString();
      return result;
    };
    const int64_t before = device_->in_use();
    device_->TakeMost();
    const Value result = run();
    int64_t taken = device_->TakeMost() - before;
    if (result.IsMatrix() && result.matrix().IsOnDevice())
      taken -= result.matrix().cells() * BytesOf(result.matrix().element_type());
    return {taken, DeviceOperators::ScratchBytes(call.node, call.infos, phase, -1, device_->description())};
  }

  // `times`: what is told is no more than so many times as much.
  void ExpectTold(const Invocation& call, int64_t times, Phase phase = Phase::kWhole) {
    SCOPED_TRACE(fmt::format("{} of {}, {}", call.node.op, call.inputs[0]->matrix().shape(), Name(phase)));
    const auto [taken, told] = TakenAndTold(call, phase);
    EXPECT_LE(taken, told);
    // Flags, and what small calls leave unused.
    EXPECT_LE(told, times * taken + 64);
  }

  std::unique_ptr<MeteredDevice> device_;
  std::unique_ptr<DeviceQueue> queue_;
  KernelContext context_;
};

TEST_F(ScratchOnDeviceTest, OfProducts) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    const auto cells = [&](int64_t rows, int64_t columns) {
      return Value(*ToElementType(Cells(rows, columns, 1), type));
    };
    ExpectTold(Invocation("%*%", {cells(70, 40), cells(40, 30)}), 1);
    ExpectTold(Invocation("%*%", {cells(70, 400), cells(400, 30)}), 1);
    ExpectTold(Invocation("%*%", {cells(3, 66'000), cells(66'000, 9)}), 4);
    for (const int64_t rows : {60, 65, 2000}) {
      const Value x = cells(rows, 40), y = cells(rows, 30);
      for (const Phase phase : {Phase::kWhole, Phase::kPartial}) {
        ExpectTold(Invocation("t%*%", {x, y}), 8, phase);
        Invocation symmetric("t%*%", {x, x});
        symmetric.node.inputs = {0, 0};
        ExpectTold(symmetric, 8, phase);
      }
    }
  }
}

TEST_F(ScratchOnDeviceTest, OfOtherKernels) {
  for (const int64_t rows : {60, 1000}) {
    const Value x(Cells(rows, 30, 1));
    for (const char* name : {"t", "rev", "cumsum"}) ExpectTold(Invocation(name, {x}), 1);
    ExpectTold(Invocation("cbind", {x, x}), 1);
    ExpectTold(Invocation("cumsumprod", {Value(Cells(rows, 2, 1))}), 1);
  }
  // Of rows longer than a column chunk.
  const Value long_rows(Cells(3, 140'000, 1));
  for (const char* name : {"rowVars", "rowSds", "rowIndexMax"}) ExpectTold(Invocation(name, {long_rows}), 1);
  ExpectTold(Invocation("%*%", {long_rows, Value(Cells(140'000, 3, 2))}), 1);
}

TEST_F(ScratchOnDeviceTest, OfTilePrograms) {
  const Value x(Cells(3000, 30, 1)), w(Cells(3000, 1, 2)), v(Cells(30, 1, 3)), wide(Cells(50, 5000, 4));
  ExpectTold(Invocation("exp", {x}), 1);
  ExpectTold(Invocation("rowSums", {x}), 1);
  ExpectTold(Invocation("%*%", {x, v}), 1);
  for (const char* name : {"sum", "colSums", "colMaxs", "colVars"}) ExpectTold(Invocation(name, {x}), 2);
  ExpectTold(Invocation("t%*%", {x, w}), 2);
  ExpectTold(Invocation("rowVars", {wide}), 2);
  ExpectTold(Invocation("colSums", {wide}), 2);
}

// What members leave for each other, and what each of them works with.
TEST_F(ScratchOnDeviceTest, OfPhases) {
  const auto expect_told = [&](BodyBuilder& body, int64_t least, int64_t most) {
    const BodyBuilder::AlsoRunScope scope([&](const KernelCall& call, std::span<const Value> expected) {
      ASSERT_EQ(DeviceOperators::CanRun(call.node, call.input_infos).ToString(), "ok");
      std::vector<Value> there;
      for (const Value* const input : call.inputs)
        there.push_back(input->IsMatrix() ? Value(*ToDevice(input->matrix(), *device_, *queue_)) : *input);
      std::vector<const Value*> inputs;
      for (const Value& value : there) inputs.push_back(&value);
      KernelCall of_device = call;
      of_device.inputs = inputs;
      const int64_t before = device_->in_use();
      device_->TakeMost();
      std::vector<Value> actual(expected.size());
      const Status status = DeviceOperators::Of(*device_).Run(of_device, *queue_, actual);
      ASSERT_TRUE(status.ok()) << status.ToString();
      int64_t taken = device_->TakeMost() - before;
      for (const Value& result : actual)
        if (result.IsMatrix()) taken -= result.matrix().cells() * 8;
      const int64_t told = DeviceOperators::ScratchBytes(call.node, call.input_infos, Phase::kWhole, -1,
                                                         device_->description());
      EXPECT_LE(taken, told);
      EXPECT_GE(told, least);
      EXPECT_LE(told, most);
    });
    EXPECT_TRUE(body.RootsPhased(1).ok());
  };
  constexpr int64_t kRows = 2048, kColumns = 30;
  {
    BodyBuilder body;  // Payloads of 32 leaves and the sum.
    const NodeId x = body.Input(Value(Cells(kRows, kColumns, 1)));
    body.Finish({body.Op("/", {x, body.Op("sum", {x})})});
    expect_told(body, 32 * 64, 2 * 32 * 64);
  }
  {
    BodyBuilder body;  // And two matrices of all rows that later members read.
    const NodeId x = body.Input(Value(Cells(kRows, kColumns, 2)));
    const NodeId centred = body.Op("-", {x, body.Op("colMeans", {x})});
    const NodeId norm = body.Op("sqrt", {body.Op("sum", {body.Op("*", {centred, centred})})});
    body.Finish({body.Op("/", {centred, norm})});
    expect_told(body, kRows * kColumns * 8, 2 * kRows * kColumns * 8 + (16 << 10));
  }
}

// Where payloads of all leaves are more than may be there at once, they are halved.
TEST_F(ScratchOnDeviceTest, OfProductsWithFewPayloadsAtATime) {
  const Value x(Cells(4000, 20, 1)), y(Cells(4000, 12, 2));
  const Matrix left = *ToDevice(x.matrix(), *device_, *queue_);
  const Matrix right = *ToDevice(y.matrix(), *device_, *queue_);
  const DeviceProduct product = {.m = 20,
                                 .n = 12,
                                 .terms = 4000,
                                 .height = Granule(4000),
                                 .a = PlaceOf(left),
                                 .a_row = 1,
                                 .a_column = 20,
                                 .b = PlaceOf(right)};
  for (const int64_t payloads : {1, 3, 10, 1000})
    for (const int64_t least_tiles : {1, 5, 1000}) {
      SCOPED_TRACE(fmt::format("{} payloads, {} tiles", payloads, least_tiles));
      const ProductLimits limits = {.is_in_local_memory = false,
                                    .work_of_launch = int64_t{1} << 40,
                                    .least_tiles = least_tiles,
                                    .payload_bytes = payloads * 20 * 12 * 8};
      DeviceCommands commands(*device_, *queue_, nullptr);
      const int64_t before = device_->in_use();
      device_->TakeMost();
      ASSERT_TRUE(Multiply(commands, product, limits).ok());
      ASSERT_TRUE(queue_->Finish().ok());
      EXPECT_LE(device_->TakeMost() - before - 20 * 12 * 8,
                ScratchBytes(product, limits, /*gives_nodes=*/false));
      ASSERT_TRUE(NodesOf(commands, product, 3, limits).ok());
      ASSERT_TRUE(queue_->Finish().ok());
      EXPECT_LE(device_->TakeMost() - before, ScratchBytes(product, limits, /*gives_nodes=*/true));
    }
}

}  // namespace
}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
// Operators of phases have the same bytes on a device as on the processor, and their phases follow each other
// there: the host is asked nothing between them. On machines without an OpenCL device (Debian:
// pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "first_device.h"
#include "ops/device/run/run_on_device.h"
#include "ops/device/run/run_phases_on_device.h"
#include "tests/unit/ops/fused/body_builder.h"

namespace heddle::ops::testing {
namespace {

// A queue that counts, of a device.
class CountingQueue : public DeviceQueue {
 public:
  explicit CountingQueue(std::unique_ptr<DeviceQueue> queue) : queue_(std::move(queue)) {}
  Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) override {
    return queue_->Write(from, bytes, to, offset);
  }
  Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
    reads.push_back(bytes);
    return queue_->Read(from, offset, bytes, to);
  }
  Status Launch(const std::shared_ptr<DeviceKernel>& kernel, std::span<const DeviceArgument> arguments,
                const LaunchShape& shape) override {
    ++launches;
    return queue_->Launch(kernel, arguments, shape);
  }
  Status WhenDone(std::function<void(const Status&)> done) override {
    return queue_->WhenDone(std::move(done));
  }
  Status Finish() override {
    ++waits;
    return queue_->Finish();
  }
  Result<std::shared_ptr<DeviceMark>> Mark() override { return queue_->Mark(); }
  Status WaitFor(const std::shared_ptr<DeviceMark>& mark) override { return queue_->WaitFor(mark); }

  int launches = 0, waits = 0;
  std::vector<int64_t> reads;  // Bytes of each.

 private:
  const std::unique_ptr<DeviceQueue> queue_;
};

class PhasesOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = FirstDevice();
    if (device_ == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  }

  // What commands the body takes as an operator of phases, by work-groups of so many work-items; its results
  // have the bytes of the processor's.
  std::unique_ptr<CountingQueue> Run(BodyBuilder& body, int64_t group_size, bool is_left_to_host = false) {
    SCOPED_TRACE(fmt::format("groups of {}", group_size));
    DeviceOperators operators(*device_, group_size);
    auto queue = std::make_unique<CountingQueue>(*device_->MakeQueue());
    const BodyBuilder::AlsoRunScope scope([&](const KernelCall& call, std::span<const Value> expected) {
      ASSERT_EQ(DeviceOperators::CanRun(call.node, call.input_infos).ToString(), "ok");
      std::vector<Value> actual(expected.size());
      Result<std::unique_ptr<QueuedCall>> queued = operators.Queue(call, *queue, actual);
      ASSERT_TRUE(queued.ok()) << queued.status().ToString();
      EXPECT_EQ(queue->waits, 0) << "no host between phases";
      ASSERT_TRUE(queue->Finish().ok());
      while ((*queued)->HasMore()) {
        ASSERT_EQ((*queued)->QueueMore().ToString(), "ok");
        ASSERT_TRUE(queue->Finish().ok());
      }
      const Status finished = (*queued)->Finish(actual);
      if (is_left_to_host) {
        EXPECT_EQ(finished.code(), StatusCode::kUnimplemented);
        return;
      }
      ASSERT_TRUE(finished.ok()) << finished.ToString();
      for (size_t i = 0; i < expected.size(); ++i) ExpectSame(expected[i], actual[i], i);
    });
    const Result<std::vector<Value>> results = body.RootsPhased(1);
    EXPECT_TRUE(results.ok()) << results.status().ToString();
    return queue;
  }

  static void ExpectSame(const Value& expected, const Value& actual, size_t i) {
    if (expected.IsScalar()) {
      ASSERT_TRUE(actual.IsScalar());
      EXPECT_EQ(expected.scalar().type(), actual.scalar().type());
      EXPECT_EQ(expected.scalar().ToLiteral(), actual.scalar().ToLiteral()) << "root " << i;
      return;
    }
    ASSERT_TRUE(actual.matrix().IsOnDevice());
    const Result<Matrix> cells = ToDense(actual.matrix());
    ASSERT_TRUE(cells.ok()) << cells.status().ToString();
    EXPECT_TRUE(Matrix::SameCells(expected.matrix(), *cells)) << "root " << i;
  }

  ComputeDevice* device_ = nullptr;
};

// 2048 rows are 32 leaves of 64 rows: one launch joins them.
constexpr int64_t kRows = 2048;
const std::vector<int64_t> kFlags = {8};

TEST_F(PhasesOnDeviceTest, CellsByTheirSum) {
  for (const int64_t group_size : {1, 64}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, 3, 1)));
    body.Finish({body.Op("/", {x, body.Op("sum", {x})})});
    const auto queue = Run(body, group_size);
    EXPECT_EQ(queue->launches, 4);  // Leaves, their tree, the sum, cells.
    EXPECT_EQ(queue->reads, kFlags);
  }
}

TEST_F(PhasesOnDeviceTest, CellsWithoutTheMeansOfColumns) {
  for (const int64_t group_size : {1, 64})
    for (const int64_t columns : {3, 40}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(kRows, columns, 2)));
      body.Finish({body.Op("-", {x, body.Op("colMeans", {x})})});
      const auto queue = Run(body, group_size);
      EXPECT_EQ(queue->launches, 4);
      EXPECT_EQ(queue->reads, kFlags);
    }
}

// Extremes are never left to the host: nothing is read, and the act ends when its commands are queued.
TEST_F(PhasesOnDeviceTest, NothingIsReadWhereThereAreNoFlags) {
  for (const int64_t group_size : {1, 64}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, 9, 3, /*special=*/true)));
    body.Finish({body.Op("/", {body.Op("-", {x, body.Op("colMins", {x})}), body.Op("max", {x})})});
    const auto queue = Run(body, group_size);
    EXPECT_TRUE(queue->reads.empty());
  }
}

// Scalars between phases: the device computes what comes of its own; the host what comes of its own.
TEST_F(PhasesOnDeviceTest, ScalarsBetweenPhases) {
  for (const int64_t group_size : {1, 64}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(kRows, 5, 4))), rate = body.Input(Value(Scalar(0.25)));
    const NodeId half = body.Op("*", {rate, body.Literal(Scalar(0.5))});
    const NodeId norm = body.Op("sqrt", {body.Op("sum", {body.Op("*", {x, x})})});
    const NodeId factor = body.Op("/", {half, body.Op("+", {norm, body.Literal(Scalar(int64_t{1}))})});
    const NodeId is_large = body.Op(">", {norm, rate});
    body.Finish({body.Op("*", {x, factor}), norm, half, is_large});
    const auto queue = Run(body, group_size);
    EXPECT_EQ(queue->reads, std::vector<int64_t>({8, 8, 8}));  // Flags, and two scalars.
  }
}

TEST_F(PhasesOnDeviceTest, BatchNormOfDoublesAndFloats) {
  for (const bool is_single : {false, true})
    for (const int64_t group_size : {1, 64}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(1000, 12, 5))), g = body.Input(Value(Cells(1, 12, 6)));
      const NodeId centred = body.Op("-", {x, body.Op("colMeans", {x})});
      const NodeId variance = body.Op("colMeans", {body.Op("*", {centred, centred})});
      const NodeId deviation = body.Op("sqrt", {body.Op("+", {variance, body.Literal(Scalar(1e-5))})});
      body.Finish({body.Op("*", {body.Op("/", {centred, deviation}), g}), variance});
      if (is_single) body.BecomeSingle();
      Run(body, group_size);
    }
}

// Of all cells: their moments by the tree, and what t(X) %*% Y makes for the next product.
TEST_F(PhasesOnDeviceTest, VariancesAndProducts) {
  for (const int64_t group_size : {1, 64}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(1025, 6, 7))), v = body.Input(Value(Cells(6, 1, 8)));
    const NodeId scaled = body.Op("/", {body.Op("-", {x, body.Op("mean", {x})}), body.Op("sd", {x})});
    const NodeId gradient = body.Op("t%*%", {scaled, body.Op("%*%", {scaled, v})});
    const NodeId size = body.Op("as.scalar", {body.Op("t%*%", {gradient, gradient})});
    body.Finish({body.Op("%*%", {scaled, body.Op("-", {v, gradient})}), body.Op("var", {scaled}), size});
    Run(body, group_size);
  }
}

// A sum that leaves the range of doubles is the host's, and with it all that reads it.
TEST_F(PhasesOnDeviceTest, SumsThatOverflowAreTheHosts) {
  for (const int64_t group_size : {1, 64}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Enlarged(Cells(kRows, 3, 9))));
    body.Finish({body.Op("/", {x, body.Op("sum", {x})})});
    Run(body, group_size, /*is_left_to_host=*/true);
  }
}

// Variances of rows longer than a column chunk are members with a flag of their own.
TEST_F(PhasesOnDeviceTest, VariancesOfLongRows) {
  for (const bool is_large : {false, true}) {
    BodyBuilder body;
    const Matrix cells = Cells(3, 70'000, 9);
    const NodeId x = body.Input(Value(is_large ? Enlarged(cells) : cells));
    body.Finish({body.Op("/", {x, body.Op("sum", {body.Op("rowVars", {x})})})});
    const auto queue = Run(body, 1, /*is_left_to_host=*/is_large);
    EXPECT_EQ(queue->waits, 1);
  }
}

// Sums of CSR matrices have as many entries as the device counts: the host reads the number before the phases
// that follow are queued, and operands stay until then.
TEST_F(PhasesOnDeviceTest, EntriesThatAreCountedFirst) {
  for (const int64_t group_size : {1, 64}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(300, 20, 1, false, 0.1)))),
                 y = body.Input(Value(*ToSparse(Cells(300, 20, 2, false, 0.1))));
    const NodeId half = body.Op("*", {x, body.Literal(Scalar(0.5))}), both = body.Op("+", {half, y});
    ASSERT_EQ(body.info(both).format, Format::kSparse);
    const NodeId differs = body.Op("!=", {both, x}), sum = body.Op("sum", {both});
    body.Finish({body.Op("*", {body.Op("rowSums", {differs}), sum}), both, sum});
    EXPECT_GE(Run(body, group_size)->waits, 3);
  }
}

// What counts as a size or a place, and text, is the host's.
TEST_F(PhasesOnDeviceTest, NoMembersAreThoseWithComputedSizes) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(10, 10, 1))), n = body.Input(Value(Scalar(int64_t{3})));
  const NodeId from = body.Op("-", {n, body.Literal(Scalar(int64_t{1}))});
  const NodeId rows = body.Op("roll", {x, body.Op("sum", {x})}),
               fixed = body.Op("roll", {x, body.Literal(Scalar(2.0))});
  const Graph& graph = body.fused().body;
  EXPECT_EQ(CanRunInPhases(graph, from).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(CanRunInPhases(graph, rows).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(CanRunInPhases(graph, fixed).ToString(), "ok");
  EXPECT_EQ(CanRunInPhases(graph, body.Op("order", {x})).code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace heddle::ops::testing

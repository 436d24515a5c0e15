// SPDX-License-Identifier: Apache-2.0
// Fused operators have the same bytes on a device as on the processor. On machines without an OpenCL device
// (Debian: pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "first_device.h"
#include "ops/device/run/run_on_device.h"
#include "tests/support/all_plans.h"
#include "tests/unit/ops/fused/body_builder.h"
#include "tests/unit/ops/fused/random_body.h"

namespace heddle::ops::testing {
namespace {

// Runs what BodyBuilder runs once more on the device, and compares.
class TilesOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ComputeDevice* const device = FirstDevice();
    if (device == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    Result<std::unique_ptr<DeviceQueue>> queue = device->MakeQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    queue_ = *std::move(queue);
    operators_ = std::make_unique<DeviceOperators>(*device);
    BodyBuilder::also_run = [this](const KernelCall& call, std::span<const Value> expected) {
      RunOnDevice(call, expected);
    };
  }
  void TearDown() override { BodyBuilder::also_run = nullptr; }

  void RunOnDevice(const KernelCall& call, std::span<const Value> expected) {
    std::vector<Value> actual(expected.size());
    const Status status = operators_->Run(call, *queue_, actual);
    if (status.code() == StatusCode::kUnimplemented) {
      left_to_host_.insert(status.message());
      return;
    }
    ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << call.node.fused->ToText();
    ++ran_;
    for (size_t i = 0; i < expected.size(); ++i)
      if (call.phase == Phase::kWhole || IsRows(call, i)) {
        ExpectSameResult(call, i, expected[i], actual[i]);
      } else {  // Places of a list that pad it may hold anything.
        ExpectSameFinished(call, i, expected[i], actual[i]);
      }
  }

  static bool IsRows(const KernelCall& call, size_t i) {
    return StaysOnDevice(call.node, call.input_infos, i);
  }

  void ExpectSameFinished(const KernelCall& call, size_t i, const Value& expected, const Value& actual) {
    const Operator& op = *FindOperator(call.node.op);
    std::vector<Value> finished[2];
    for (const bool is_actual : {false, true}) {
      std::vector<const Value*> lists;
      size_t reductions = 0;
      for (size_t r = 0; r < ResultsOf(call.node).size(); ++r) {
        if (IsRows(call, r)) continue;
        ++reductions;
        lists.push_back(r == i ? (is_actual ? &actual : &expected) : nullptr);
      }
      const bool together = op.row_rule(call.node, call.input_infos) == RowRule::kReduce;
      if (together) lists = {is_actual ? &actual : &expected};
      KernelCall finish = call;
      finish.phase = Phase::kFinish;
      finish.inputs = lists;
      finished[is_actual].resize(together ? ResultsOf(call.node).size() : 1);
      const Status status = RunOperator(op, finish, finished[is_actual]);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    for (size_t r = 0; r < finished[0].size(); ++r) ExpectSameResult(call, i, finished[0][r], finished[1][r]);
  }

  void ExpectSameResult(const KernelCall& call, size_t i, const Value& expected, const Value& actual) {
    if (expected.IsScalar()) {
      EXPECT_EQ(expected.scalar().ToLiteral(), actual.scalar().ToLiteral())
          << "root " << i << ", " << Name(call.phase) << "\n"
          << call.node.fused->ToText();
      return;
    }
    const Result<Matrix> cells = ToDense(actual.matrix());
    ASSERT_TRUE(cells.ok()) << cells.status().ToString();
    if (Matrix::SameCells(expected.matrix(), *cells)) return;
    ADD_FAILURE() << "root " << i << " differs on the device, " << Name(call.phase) << "\n"
                  << call.node.fused->ToText() << FirstDifference(expected.matrix(), *cells);
  }

  static std::string FirstDifference(const Matrix& expected, const Matrix& actual) {
    if (expected.shape() != actual.shape()) return fmt::format("{} and {}", expected.shape(), actual.shape());
    for (int64_t i = 0; i < expected.rows(); ++i)
      for (int64_t j = 0; j < expected.columns(); ++j) {
        const double a = expected.At(i, j), b = actual.At(i, j);
        if (!(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b)))
          return fmt::format("cell ({}, {}) is {:a} there, not {:a}", i, j, b, a);
      }
    return "";
  }

  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceOperators> operators_;
  int ran_ = 0;
  std::set<std::string> left_to_host_;
};

// Each kind of root with some of the shapes: compiling a kernel takes longer than all else.
TEST_F(TilesOnDeviceTest, CellsRowsAndReductions) {
  const Shape shapes[] = {{65, 1}, {130, 3}, {999, 8}, {1025, 9}, {129, 100}, {9, 20000}};
  size_t turn = 0;
  for (const char* root : {"", "sum", "mean", "min", "max", "prod", "rowSums", "rowMeans", "rowMaxs",
                           "rowMins", "rowProds", "colSums", "colMeans", "colMaxs", "colMins", "colProds"}) {
    for (size_t k = 0; k < (testing_support::RunsAllPlans() ? std::size(shapes) : 1); ++k, ++turn) {
      const Shape& shape = shapes[turn % std::size(shapes)];
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 1, *root == 'm')));
      const NodeId y = body.Input(Value(Cells(shape.rows, 1, 2)));
      const NodeId cells = body.Op("-", {body.Op("*", {x, y}), body.Literal(Scalar(0.3))});
      body.Finish({*root == 0 ? cells : body.Op(root, {cells})});
      body.ExpectSame(fmt::format("{} of {}", root, shape));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran_, 50);
}

TEST_F(TilesOnDeviceTest, Products) {
  for (const Shape& shape : {Shape{130, 3}, Shape{1025, 9}, Shape{129, 100}})
    for (const int64_t k : {1, 3, 20}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 1)));
      const NodeId v = body.Input(Value(Cells(shape.columns, k, 2)));
      const NodeId w = body.Input(Value(Cells(shape.rows, 1, 3)));
      body.Finish({body.Op("t%*%", {x, body.Op("*", {body.Op("%*%", {x, v}), w})})});
      body.ExpectSame(fmt::format("t(X) (w * (X V)) of {}, {}", shape, k));
      if (HasFailure()) return;
    }
  EXPECT_GT(ran_, 20);
}

// Sums that are finite in every leaf and leave the range of doubles where leaves are joined are the host's.
TEST_F(TilesOnDeviceTest, SumsThatOverflowWhereLeavesAreJoined) {
  Matrix x = *FilledMatrix(2048, 3, 1.0);
  for (int64_t i = 0; i < x.rows(); i += 64) x.mutable_data()[i * 3] = i % 128 == 0 ? 1.7e308 : -1.7e308;
  for (const char* root : {"sum", "mean", "colSums"}) {
    // Of both signs, or of one.
    BodyBuilder body;
    const NodeId in = body.Input(Value(x));
    body.Finish({body.Op(root, {body.Op(*root == 'm' ? "abs" : "round", {in})})});
    body.ExpectSame(fmt::format("{} of large cells", root));
  }
  EXPECT_TRUE(left_to_host_.contains("a sum is infinite or NaN"));
}

// Products that are too small for a double leave zeros without a sign.
TEST_F(TilesOnDeviceTest, ProductsThatVanishHaveNoSign) {
  for (const int64_t k : {1, 3, 9}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*FilledMatrix(70, 16, 1e-200)));
    const NodeId v = body.Input(Value(*FilledMatrix(16, k, -1e-200)));
    body.Finish({body.Op("/", {body.Literal(Scalar(1.0)), body.Op("%*%", {x, v})})});
    body.ExpectSame(fmt::format("1 / (X %*% V) of {} columns", k));
  }
  EXPECT_GT(ran_, 5);
}

TEST_F(TilesOnDeviceTest, RandomBodies) {
  for (uint32_t seed = 0; seed < (testing_support::RunsAllPlans() ? 200 : 10) && !HasFailure(); ++seed) {
    const Shape& shape = kShapes[seed * 2654435761u % kShapes.size()];
    if (shape.Cells() > 60000) continue;
    RandomBodyAgrees(shape, seed, 11);
    RandomBodyAgrees(shape, seed, 11, Roots::kSeveral);
  }
  EXPECT_GT(ran_, 15);
}

}  // namespace
}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
// Operators alone, of CSR matrices: cells of several of them, whose entries a device puts together first, and
// products that only a device computes by tiles. On machines without an OpenCL device (Debian:
// pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/values/device_cells.h"
#include "first_device.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/united_entries.h"
#include "ops/device/run/device_act.h"
#include "ops/device/run/run_on_device.h"
#include "tests/support/simulated_device.h"
#include "tests/unit/ops/fused/body_builder.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {
namespace {

class CsrOperatorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = FirstDevice();
    if (device_ == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    Result<std::unique_ptr<DeviceQueue>> queue = device_->MakeQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    queue_ = *std::move(queue);
  }

  // The call has the bytes of the processor, by work-groups of many work-items and of one, and its result is
  // on the device.
  void ExpectSame(const std::string& op, const Inputs& inputs, ElementType type) {
    Inputs typed = inputs;
    for (std::optional<Value>& input : typed)
      if (input->IsMatrix()) input = Value(*ToElementType(input->matrix(), type));
    Invocation call(op, typed);
    for (ValueInfo& info : call.infos)
      if (info.IsMatrix()) info.element_type = type;
    SCOPED_TRACE(fmt::format("{} of {}, {}", op, call.infos[0].shape, Name(type)));
    const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
    ASSERT_TRUE(inferred.ok()) << inferred.status().ToString();
    call.SetInfos(*inferred);
    call.node.info.element_type = type;
    std::vector<const Value*> operands;
    for (const std::optional<Value>& input : call.inputs) operands.push_back(&*input);
    const KernelCall kernel_call{.node = call.node,
                                 .phase = Phase::kWhole,
                                 .inputs = operands,
                                 .input_infos = call.infos,
                                 .context = context_,
                                 .op = call.op};
    Value expected;
    ASSERT_TRUE(CatalogKernels().Run(kernel_call, {&expected, 1}).ok());
    const Status can_run = DeviceOperators::CanRun(call.node, call.infos);
    ASSERT_TRUE(can_run.ok()) << can_run.ToString();
    EXPECT_TRUE(StaysOnDevice(call.node, call.infos, 0));
    const bool is_sparse = call.node.info.format == Format::kSparse;
    EXPECT_EQ(DeviceOperators::CountsFirst(call.node, call.infos), is_sparse);
    for (const int64_t group_size : {64, 1}) {
      DeviceOperators operators(*device_, group_size);
      Value actual;
      const Status status = operators.Run(kernel_call, *queue_, {&actual, 1});
      ASSERT_TRUE(status.ok()) << status.ToString();
      ASSERT_TRUE(actual.matrix().IsOnDevice());
      EXPECT_EQ(CellsOf(actual.matrix()).IsSparse(), is_sparse);
      const Result<Matrix> cells = ToHost(actual.matrix());
      ASSERT_TRUE(cells.ok()) << cells.status().ToString();
      EXPECT_EQ(cells->element_type(), type);
      EXPECT_EQ(cells->stored(), expected.matrix().stored());
      ASSERT_TRUE(Matrix::SameCells(expected.matrix(), *cells)) << "groups of " << group_size;
    }
  }

  ComputeDevice* device_ = nullptr;
  std::unique_ptr<DeviceQueue> queue_;
  KernelContext context_;
};

// One of which some rows, or all, have no entries.
Value Sparse(const Shape& shape, uint32_t seed, double density, bool is_special) {
  Matrix cells = Cells(shape.rows, shape.columns, seed, is_special, density);
  for (int64_t i = seed % 3; i < shape.rows; i += 5)
    std::fill_n(cells.mutable_data() + i * shape.columns, shape.columns, 0.0);
  return Value(*ToSparse(cells));
}

// Compiling a kernel takes longer than all else: each operator with one type, or with both.
TEST_F(CsrOperatorsTest, CellsOfTwoMatrices) {
  uint32_t seed = 0;
  for (const char* const op : {"+", "-", "pmin", "pmax", "|", "xor", "!=", "<", ">"})
    for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
      if (++seed % 4 > 1 && !testing_support::RunsAllPlans()) continue;
      const Shape shape = seed % 3 == 0 ? Shape{1, 200} : seed % 3 == 1 ? Shape{130, 40} : Shape{700, 9};
      const bool is_special = seed % 4 == 0;
      const Value x = Sparse(shape, seed, 0.2, is_special), y = Sparse(shape, seed + 100, 0.05, is_special);
      ExpectSame(op, {x, y}, type);
      if (HasFailure()) return;
    }
}

// Matrices without entries; zeros that are stored; and the same matrix twice.
TEST_F(CsrOperatorsTest, EntriesThatAreFewOrZero) {
  const Value none = Value(*Matrix::Sparse(90, 30, 0)), some = Sparse({90, 30}, 1, 0.2, false);
  ExpectSame("+", {none, some}, ElementType::kFloat64);
  ExpectSame("-", {some, none}, ElementType::kFloat64);
  ExpectSame("+", {none, none}, ElementType::kFloat64);
  ExpectSame("-", {some, some}, ElementType::kFloat64);
  Matrix zeros = *Matrix::Sparse(90, 30, some.matrix().stored());
  std::copy_n(some.matrix().row_offsets(), 91, zeros.mutable_row_offsets());
  std::copy_n(some.matrix().column_indexes(), zeros.stored(), zeros.mutable_column_indexes());
  std::fill_n(zeros.mutable_values(), zeros.stored(), 0.0);
  ExpectSame("+", {Value(zeros), some}, ElementType::kFloat64);
}

// ifelse(C, D, X): C and X are CSR, D has all cells.
TEST_F(CsrOperatorsTest, ChoicesBetweenCells) {
  const Shape shape = {130, 40};
  ExpectSame("ifelse", {Sparse(shape, 1, 0.1, false), Value(Cells(shape.rows, shape.columns, 2)),
                        Sparse(shape, 3, 0.2, false)},
             ElementType::kFloat64);
  ExpectSame("ifelse", {Sparse(shape, 4, 0.1, false), Sparse(shape, 5, 0.3, false),
                        Sparse(shape, 6, 0.2, false)},
             ElementType::kFloat32);
}

// Rows longer than a column chunk, whose entries are far from each other.
TEST_F(CsrOperatorsTest, LongRows) {
  const Shape shape = {3, 140'000};
  ExpectSame("+", {Sparse(shape, 1, 0.001, false), Sparse(shape, 2, 0.002, false)}, ElementType::kFloat64);
}

// Products of such rows with up to eight columns: lanes of each column, chunk by chunk.
TEST_F(CsrOperatorsTest, NarrowProductsOfLongRows) {
  for (const Shape& shape : {Shape{5, 70'000}, Shape{2, 400'000}, Shape{30, 65'537}})
    for (const int64_t k : {1, 3, 8}) {
      const ElementType type = k == 3 ? ElementType::kFloat32 : ElementType::kFloat64;
      const Value x = Sparse(shape, 2, shape.rows == 2 ? 0.0001 : 0.01, false);
      if (k == 8 && shape.rows != 5 && !testing_support::RunsAllPlans()) continue;
      ExpectSame("%*%", {x, Value(Cells(shape.columns, k, 4))}, type);
      if (HasFailure()) return;
    }
}

// A copy on a device keeps cells of the host only where somebody else holds them, dense or CSR.
TEST_F(CsrOperatorsTest, CopiesKeepWhatOthersHold) {
  testing_support::SimulatedDevice device(*device_, {.seed = 1});
  device.Drive();
  {
    DeviceStreams streams;
    KernelContext context;
    context.devices = &device;
    for (const Format format : {Format::kDense, Format::kSparse})
      for (const bool is_held : {false, true}) {
        Matrix cells = Cells(50, 20, 1, false, 0.2);
        if (format == Format::kSparse) cells = *ToSparse(cells);
        const Value given(std::move(cells));
        const Value other = is_held ? given : Value();
        Value copy;
        const std::unique_ptr<DeviceAct> act = ActOfCopyIn({.device = {DeviceType::kOpenCl, 0},
                                                            .stream = StreamKind::kCopyIn,
                                                            .streams = streams,
                                                            .context = context,
                                                            .user = "a test",
                                                            .results = {&copy, 1}},
                                                           given, format);
        ASSERT_TRUE(TakeAllSteps(*act).ok());
        ASSERT_TRUE(copy.matrix().IsOnDevice());
        EXPECT_EQ(OriginalOf(copy.matrix()).has_value(), is_held) << Name(format);
      }
  }
  EXPECT_TRUE(device.faults().empty()) << ::testing::PrintToString(device.faults());
}

// The entries of three matrices, put together.
TEST_F(CsrOperatorsTest, AreThoseOfAnyMatrix) {
  for (const Shape& shape : {Shape{1, 1}, Shape{5000, 7}, Shape{64, 300}}) {
    std::vector<Matrix> there;
    Matrix any = *FilledMatrix(shape.rows, shape.columns, 0.0);
    Matrix first;
    for (const uint32_t seed : {1, 2, 3}) {
      const Value x = Sparse(shape, seed, 0.1, false);
      if (seed == 1) first = *ToDense(x.matrix());
      const Matrix dense = *ToDense(x.matrix());
      for (int64_t c = 0; c < any.cells(); ++c)
        if (dense.data()[c] != 0) any.mutable_data()[c] = 1;
      there.push_back(*EntriesToDevice(x.matrix(), *device_, *queue_));
    }
    const Result<std::unique_ptr<UnitedEntries>> united = UnitedEntries::Count(there, *device_, *queue_);
    ASSERT_TRUE(united.ok()) << united.status().ToString();
    ASSERT_TRUE(queue_->Finish().ok());
    const Result<Matrix> made = (*united)->Make(*queue_);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_EQ(CellsOf(*made).entries().count, any.CountNonzeros());
    const Result<Matrix> read = CellsOf(*made).Read(0, shape.rows, *queue_);
    ASSERT_TRUE(read.ok() && queue_->Finish().ok());
    EXPECT_TRUE(Matrix::SameCells(*ToDense(*read), first));
    Matrix places = *read;
    std::fill_n(places.mutable_values(), places.stored(), 1.0);
    EXPECT_TRUE(Matrix::SameCells(*ToDense(places), any));
  }
}

}  // namespace
}  // namespace heddle::ops::testing

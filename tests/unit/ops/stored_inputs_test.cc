// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/stored_inputs.h"

#include <gtest/gtest.h>

#include <array>

#include "ops/catalog.h"

namespace heddle::ops {
namespace {

Matrix Cells() {
  Matrix matrix = *FilledMatrix(4, 5, 0);
  for (int64_t i = 0; i < matrix.cells(); i += 3) matrix.mutable_data()[i] = static_cast<double>(i) - 6;
  return matrix;
}

Operator Taking(Storages storages) { return {.name = "test", .storages = storages}; }

class StoredInputsTest : public testing::Test {
 protected:
  KernelCall Call(std::span<const Value* const> inputs) {
    return {.node = node_, .inputs = inputs, .context = context_};
  }

  Node node_;
  KernelContext context_;
  Value dense_{Cells()};
  Value sparse_{*ToSparse(Cells())};
  Value scalar_{2.0};
};

TEST_F(StoredInputsTest, AKernelIsGivenWhatItTakes) {
  const std::array inputs = {&dense_, &sparse_, &scalar_, static_cast<Value*>(nullptr)};
  const std::vector<const Value*> pointers(inputs.begin(), inputs.end());
  const KernelCall call = Call(pointers);
  for (const auto& [storages, dense, sparse] :
       {std::tuple{Storages::kDense, Storage::kDense, Storage::kDense},
        std::tuple{Storages::kCsr, Storage::kCsr, Storage::kCsr},
        std::tuple{Storages::kDenseAndCsr, Storage::kDense, Storage::kCsr}}) {
    const Operator op = Taking(storages);
    EXPECT_EQ(TakesStorages(op, call), storages == Storages::kDenseAndCsr);
    const Result<StoredInputs> stored = StoredInputs::Of(op, call);
    ASSERT_TRUE(stored.ok());
    const KernelCall given = stored->With(call);
    ASSERT_EQ(given.inputs.size(), 4u);
    EXPECT_EQ(given.inputs[0]->matrix().storage(), dense);
    EXPECT_EQ(given.inputs[1]->matrix().storage(), sparse);
    EXPECT_TRUE(Matrix::SameCells(given.inputs[0]->matrix(), dense_.matrix()));
    EXPECT_TRUE(Matrix::SameCells(given.inputs[1]->matrix(), dense_.matrix()));
    // What is taken as it is stays the same value.
    EXPECT_EQ(given.inputs[0] == &dense_, dense == Storage::kDense);
    EXPECT_EQ(given.inputs[1] == &sparse_, sparse == Storage::kCsr);
    EXPECT_EQ(given.inputs[2], &scalar_);
    EXPECT_EQ(given.inputs[3], nullptr);
    EXPECT_TRUE(TakesStorages(op, given));
  }
}

TEST_F(StoredInputsTest, TheSameValueTwiceIsOneCopy) {
  const std::array<const Value*, 2> inputs = {&sparse_, &sparse_};
  const KernelCall call = Call(inputs);
  const Result<StoredInputs> stored = StoredInputs::Of(Taking(Storages::kDense), call);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->With(call).inputs[0], stored->With(call).inputs[1]);
}

TEST_F(StoredInputsTest, ACopyIsNotTheValueToWriteOver) {
  const std::array<const Value*, 1> inputs = {&sparse_};
  KernelCall call = Call(inputs);
  call.last_read = &sparse_;
  EXPECT_EQ(StoredInputs::Of(Taking(Storages::kDense), call)->With(call).last_read, nullptr);
  EXPECT_EQ(StoredInputs::Of(Taking(Storages::kCsr), call)->With(call).last_read, &sparse_);
}

// The catalog converts: kernels that take dense cells alone give the same bytes for both storages.
TEST_F(StoredInputsTest, OperatorsThatTakeOneStorageAreRunOnAny) {
  int tried = 0;
  for (const char* name : {"cumsum", "cumprod", "cummin", "cummax"}) {
    node_.op = name;
    ASSERT_EQ(FindOperator(name)->storages, Storages::kDense);
    std::vector<Matrix> results;
    for (const Value* input : {&dense_, &sparse_}) {
      const std::array<const Value*, 1> inputs = {input};
      const std::array infos = {
          ValueInfo::OfMatrix(input->matrix().shape(), FormatOf(input->matrix().storage()))};
      KernelCall call = Call(inputs);
      call.input_infos = infos;
      call.total_rows = call.row_end = 4;
      const Result<Value> result = CatalogKernels().Run(call);
      ASSERT_TRUE(result.ok()) << result.status().ToString();
      results.push_back(result->matrix());
    }
    EXPECT_TRUE(Matrix::SameCells(results[0], results[1])) << name;
    ++tried;
  }
  EXPECT_EQ(tried, 4);
}

// What holds other operators must not decode what they read by its codes.
TEST_F(StoredInputsTest, OperatorsOfOthersGetColumnGroups) {
  for (const char* name : {"phased", "fusedSeveral"})
    EXPECT_TRUE(Takes(FindOperator(name)->storages, Storage::kColumnGroups)) << name;
}

}  // namespace
}  // namespace heddle::ops

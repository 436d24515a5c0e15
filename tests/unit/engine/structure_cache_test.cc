// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/structure_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "ops/recursion/structure/linearize.h"

namespace heddle::engine {
namespace {

// Calls T[n, 1], where that is not 0, and gives operators T[n, 2].
ops::StructureProgram ChainOf(const std::string& matrix) {
  using Code = ops::StructureProgram::Code;
  ops::StructureProgram program;
  program.matrices = {matrix};
  program.registers = 4;
  program.steps = {{.code = Code::kConstant, .target = 1, .constant = 1},
                   {.code = Code::kConstant, .target = 2, .constant = 2},
                   {.code = Code::kCell, .target = 3, .a = 0, .b = 2},
                   {.code = Code::kGive, .a = 3},
                   {.code = Code::kCell, .target = 3, .a = 0, .b = 1},
                   {.code = Code::kBranch, .a = 3, .index = 7},
                   {.code = Code::kCall, .a = 3},
                   {.code = Code::kEnd}};
  return program;
}

Variable Chain(std::array<double, 6> cells) {
  Matrix rows = *Matrix::Dense(3, 2);
  std::copy(cells.begin(), cells.end(), rows.mutable_data());
  Variable variable;
  variable.info = ValueInfo::OfMatrix(rows.shape());
  variable.value = std::move(rows);
  return variable;
}

class StructureCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ops::Linearized> Of(const ops::StructureProgram& program,
                                            const std::vector<int64_t>& roots) {
    std::string why;
    const auto arrays = cache_.Of(function_, program, roots, frame_, &why);
    EXPECT_TRUE(arrays.ok() && *arrays != nullptr) << why;
    return arrays.ok() ? *arrays : nullptr;
  }

  StructureCache cache_;
  Function function_;
  VariableTable frame_;
};

TEST_F(StructureCacheTest, FunctionsThatGoTheSameWaysShareArrays) {
  const ops::StructureProgram program = ChainOf("T"), alike = ChainOf("tree");
  ops::StructureProgram other = ChainOf("T");
  other.steps[3] = {.code = ops::StructureProgram::Code::kGive, .a = 2};
  frame_.Set("T", Chain({0, 5, 1, 6, 2, 7}));
  frame_.Set("tree", Chain({0, 5, 1, 6, 2, 7}));  // The same cells elsewhere.
  const auto arrays = Of(program, {3});
  ASSERT_EQ(arrays->nodes.size(), 3u);
  EXPECT_EQ(Of(program, {3}), arrays);
  EXPECT_EQ(Of(alike, {3}), arrays);
  EXPECT_NE(Of(alike, {2}), arrays);
  EXPECT_NE(Of(other, {3}), arrays);
  frame_.Set("T", Chain({0, 5, 1, 6, 1, 7}));
  EXPECT_EQ(Of(program, {3})->nodes.size(), 2u);
}

}  // namespace
}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
// Columns of CSR matrices that are stored by their entries.
#include "ops/compressed/entries_of_columns.h"

#include <gtest/gtest.h>

#include "ops/compressed/plan_groups.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

// Columns that are fewer than the entries of a row are looked for, of others the entries are looked at.
TEST(EntriesOfColumnsTest, FewAndManyColumnsHaveTheirEntries) {
  Matrix dense = testing::RandomCells(700, 60, 3, 3);
  for (int64_t i = 0; i < 60; ++i) dense.mutable_data()[5 * 60 + i] = i % 2 == 0 ? std::nan("") : 0;
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    const Matrix cells = *ToElementType(dense, type), csr = *ToSparse(cells);
    for (const std::vector<int32_t>& columns :
         std::vector<std::vector<int32_t>>{{7}, {0, 59}, {3, 4, 5, 20, 21, 40, 41, 42, 43, 58}, {}}) {
      const Matrix found = *(type == ElementType::kFloat64 ? EntriesOfColumns<double>(csr, columns)
                                                           : EntriesOfColumns<float>(csr, columns));
      const std::vector<int64_t> places(columns.begin(), columns.end());
      const Matrix wanted = *ToSparse(*GatherColumns(cells, places));
      EXPECT_EQ(found.stored(), wanted.stored());
      EXPECT_TRUE(Matrix::SameCells(found, wanted));
    }
  }
}

// A group that is not compressed holds what the matrix has there, whichever columns these are.
TEST(EntriesOfColumnsTest, GroupsOfAPlanHoldThem) {
  const Matrix csr = *ToSparse(testing::RandomCells(900, 40, 4, 4));
  CompressionPlan plan;
  for (int32_t j = 0; j < 40; ++j) {
    if (j % 20 == 0) plan.groups.push_back({.encoding = Encoding::kUncompressed});
    plan.groups.back().columns.push_back(j);
  }
  Result<ColumnGroups> groups = CompressColumns(csr, plan, {});
  ASSERT_TRUE(groups.ok());
  EXPECT_TRUE(groups->groups[0].dictionary.IsSparse());
  EXPECT_TRUE(Matrix::SameCells(
      *ToDense(Matrix::OfGroups(std::make_shared<const ColumnGroups>(*std::move(groups)))), *ToDense(csr)));
}

}  // namespace
}  // namespace heddle::ops

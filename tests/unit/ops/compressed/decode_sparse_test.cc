// SPDX-License-Identifier: Apache-2.0
// Rows of compressed matrices as CSR, from what is not zero in dictionaries.
#include "ops/cells/decode_sparse.h"

#include <gtest/gtest.h>

#include "ops/base/parallel.h"
#include "tests/unit/ops/compressed/encoded.h"
#include "tests/unit/ops/compressed/made_groups.h"
#include "tests/unit/ops/compressed/run_codes.h"

namespace heddle::ops {
namespace {

using testing::Cells;
using testing::CodesCall;
using testing::MakeCompressed;

void ExpectEntries(const Matrix& compressed) {
  const Matrix wanted = *ToSparse(*ToDense(compressed));
  const SparseRows rows(compressed);
  for (const int threads : {1, 3})
    Arena(threads).Execute([&] {
      const Matrix found = *rows.DecodeAll();
      ASSERT_TRUE(found.IsSparse());
      EXPECT_EQ(found.stored(), wanted.stored());
      EXPECT_TRUE(Matrix::SameCells(found, wanted));
    });
  const int64_t begin = compressed.rows() / 3, end = compressed.rows() - begin / 2;
  const Matrix part = *rows.Decode(begin, end);
  EXPECT_EQ(part.stored(), wanted.Rows(begin, end).stored());
  EXPECT_TRUE(Matrix::SameCells(part, wanted.Rows(begin, end)));
}

TEST(DecodeSparseTest, EntriesAreThoseOfTheCells) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
    for (const Cells cells : {Cells::kDecimal, Cells::kSpecial}) {
      std::vector<testing::MadeGroup> groups = testing::AllEncodings();
      groups.push_back({Encoding::kUncompressed, 3, 0});
      const Matrix x = MakeCompressed(1501, groups, cells, type, 4);
      ExpectEntries(x);
      ExpectEntries(x.Rows(7, 1490));
      ExpectEntries(x.Rows(5, 5));
      ExpectEntries(MakeCompressed(0, {{Encoding::kEmpty, 2, 1}}, cells, type, 4));
      // More entries a row than are sorted in place, of groups whose columns are between each other.
      ExpectEntries(MakeCompressed(700, std::vector<testing::MadeGroup>(40, {Encoding::kDenseCodes, 3, 9}),
                                   cells, type, 5));
    }
  for (uint32_t seed = 0; seed < 20; ++seed)
    ExpectEntries(
        testing::RandomGroups(testing::FewDifferent(300, 7, [](int64_t i) { return i % 3 * 0.5; }), seed));
}

// n rows of dummies of `columns` columns with `codes` codes each.
Matrix Dummies(int64_t n, int32_t columns, int32_t codes) {
  Matrix dense = *FilledMatrix(n, int64_t{columns} * codes, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int32_t j = 0; j < columns; ++j)
      dense.mutable_data()[i * dense.columns() + j * codes + testing::Drawn(i * 7 + j, codes)] = 1;
  std::vector<testing::EncodedGroup> groups;
  for (int32_t j = 0; j < columns; ++j) {
    groups.emplace_back();
    for (int32_t k = 0; k < codes; ++k) groups.back().columns.push_back(j * codes + k);
  }
  return testing::EncodedMatrix(dense, groups);
}

TEST(DecodeSparseTest, OnlyRowsOfFewEntriesAreDecodedAsSuch) {
  EXPECT_TRUE(SparseRows(Dummies(500, 4, 60)).HasFewEntries());
  EXPECT_NEAR(SparseRows(Dummies(500, 4, 60)).EntriesOfRow(), 4, 1e-9);
  EXPECT_FALSE(SparseRows(Dummies(500, 60, 4)).HasFewEntries());
  EXPECT_FALSE(SparseRows(MakeCompressed(500, {{Encoding::kDenseCodes, 9, 30}}, Cells::kWhole,
                                         ElementType::kFloat64, 1))
                   .HasFewEntries());
}

// Operators that have no way of their own get tiles of such rows.
TEST(DecodeSparseTest, OperatorsOnDummiesGiveTheBytesOfCsr) {
  const Matrix x = Dummies(3000, 4, 60);
  const auto decimals = [](int64_t rows, int64_t columns) {
    return MakeCompressed(rows, {{Encoding::kUncompressed, columns, 0}}, Cells::kDecimal,
                          ElementType::kFloat64, 3);
  };
  const Matrix v = *ToDense(decimals(x.columns(), 1)), m = *ToDense(decimals(x.columns(), 20)),
               w = *ToDense(decimals(x.rows(), 1));
  for (const auto& [name, inputs] :
       std::vector<std::pair<std::string, std::vector<Value>>>{{"%*%", {x, v}},
                                                               {"%*%", {x, m}},
                                                               {"t%*%", {x, w}},
                                                               {"t%*%", {x, x}},
                                                               {"rowIndexMax", {x}},
                                                               {"*", {x, w}},
                                                               {"cumsum", {x}},
                                                               {"rowProds", {x}},
                                                               {"rev", {x}}})
    CodesCall(name, inputs, true).ExpectRun();
}

}  // namespace
}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
// Compressed matrices below each other.
#include "ops/cells/append_groups.h"

#include <gtest/gtest.h>

#include "ops/frame/row_pieces.h"
#include "tests/unit/ops/compressed/encoded.h"
#include "tests/unit/ops/compressed/made_groups.h"
#include "tests/unit/ops/compressed/run_codes.h"

namespace heddle::ops {
namespace {

using testing::EncodedMatrix;
using testing::SingleGroups;

// The dense rows of all parts.
Matrix Below(const std::vector<Matrix>& parts) {
  std::vector<Value> dense;
  std::vector<const Value*> pointers;
  for (const Matrix& part : parts) dense.emplace_back(*ToDense(part));
  for (const Value& part : dense) pointers.push_back(&part);
  return JoinRows(pointers)->matrix();
}

// The parts below each other, compressed.
Matrix Appended(const std::vector<Matrix>& parts) {
  const Result<std::optional<Matrix>> result = AppendGroups(parts);
  EXPECT_TRUE(result.ok() && result->has_value());
  if (!result.ok() || !*result) return {};
  EXPECT_TRUE(Verify((*result)->groups()).ok()) << Verify((*result)->groups()).message();
  EXPECT_TRUE(Matrix::SameCells(*ToDense(**result), Below(parts)));
  return **result;
}

double Small(int64_t i) { return i % 3 == 0 ? -0.0 : static_cast<double>(i) / 4; }

TEST(AppendGroupsTest, GroupsOfAnyKindAreJoined) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
    for (uint32_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(seed);
      std::vector<Matrix> parts;
      for (uint32_t part = 0; part < 2 + seed % 3; ++part) {
        const Matrix cells = testing::FewDifferent(200 + 37 * part, 5, Small, type);
        parts.push_back(testing::RandomGroups(cells, seed + 100 * part));
      }
      const Result<std::optional<Matrix>> result = AppendGroups(parts);
      ASSERT_TRUE(result.ok());
      const auto has_entries = [](const Matrix& part) {
        const std::vector<ColumnGroup>& groups = part.groups().groups;
        return std::any_of(groups.begin(), groups.end(), [](const ColumnGroup& group) {
          return group.encoding == Encoding::kUncompressed && group.dictionary.IsSparse();
        });
      };
      // Groups of CSR cells are left.
      EXPECT_EQ(result->has_value(), std::none_of(parts.begin(), parts.end(), has_entries));
      if (*result) Appended(parts);
    }
}

TEST(AppendGroupsTest, DictionariesAndEncodingsStayWhatTheyAre) {
  Matrix cells = *Matrix::Dense(3000, 3);
  for (int64_t i = 0; i < 3000; ++i) {
    double* const row = cells.mutable_data() + 3 * i;
    row[0] = static_cast<double>(i * 7 % 5);
    row[1] = i % 20 == 7 ? static_cast<double>(i % 4) : 0;
    row[2] = static_cast<double>(i / 300);
  }
  const std::vector<testing::EncodedGroup> plan = {{.columns = {0}},
                                                   {.columns = {1}, .encoding = Encoding::kDefault},
                                                   {.columns = {2}, .encoding = Encoding::kRuns}};
  const Matrix a = EncodedMatrix(cells, plan), b = EncodedMatrix(*ToDense(a.Rows(0, 2000)), plan);
  const Matrix again = Appended({a.Rows(3, 900), a, a.Rows(0, 10)}), joined = Appended({a, b.Rows(1, 1777)});
  for (size_t g = 0; g < plan.size(); ++g) {
    const ColumnGroup& group = a.groups().groups[g];
    EXPECT_EQ(again.groups().groups[g].encoding, group.encoding);
    EXPECT_EQ(again.groups().groups[g].dictionary.data<void>(), group.dictionary.data<void>());
    EXPECT_EQ(joined.groups().groups[g].encoding, group.encoding);
    EXPECT_EQ(joined.groups().groups[g].tuples(), group.tuples());
  }
  // Constants, of one kind or of two.
  const auto constant = [](double value, int64_t rows) {
    return EncodedMatrix(
        *FilledMatrix(rows, 2, value),
        {{.columns = {0, 1}, .encoding = value == 0 ? Encoding::kEmpty : Encoding::kConstant}});
  };
  EXPECT_EQ(Appended({constant(3, 20), constant(3, 30)}).groups().groups[0].encoding, Encoding::kConstant);
  EXPECT_EQ(Appended({constant(0, 20), constant(0, 30)}).groups().groups[0].encoding, Encoding::kEmpty);
  EXPECT_EQ(Appended({constant(0, 20), constant(3, 30)}).groups().groups[0].width(), 2);
}

TEST(AppendGroupsTest, CodesAreWidenedAndTooManyTuplesAreCells) {
  const auto numbers = [](int64_t first, int64_t count) {
    Matrix column = *Matrix::Dense(count, 1);
    for (int64_t i = 0; i < count; ++i) column.mutable_data()[i] = static_cast<double>(first + i);
    return EncodedMatrix(column, SingleGroups(1, Encoding::kDenseCodes));
  };
  EXPECT_EQ(Appended({numbers(0, 10), numbers(5, 10)}).groups().groups[0].codes.bits(), 4);
  EXPECT_EQ(Appended({numbers(0, 10), numbers(8, 10)}).groups().groups[0].codes.bits(), 8);
  EXPECT_EQ(Appended({numbers(0, 200), numbers(100, 200)}).groups().groups[0].codes.bits(), 16);
  EXPECT_EQ(Appended({numbers(0, 40'000), numbers(40'000, 40'000)}).groups().groups[0].encoding,
            Encoding::kUncompressed);
}

TEST(AppendGroupsTest, FewDenseRowsAreLookedUp) {
  const Matrix cells = testing::FewDifferent(3000, 5, Small);
  const Matrix more = testing::FewDifferent(300, 5, [](int64_t i) { return static_cast<double>(i % 7) / 2; });
  const Matrix a = EncodedMatrix(cells, testing::MixedGroups(5, false));
  Appended({a, more});
  Appended({more, a});
  Appended({a, more.Rows(0, 0)});
  Appended({more.Rows(0, 0), a, a});
  EXPECT_FALSE((*AppendGroups(std::vector<Matrix>{a, cells})).has_value());
  EXPECT_FALSE((*AppendGroups(std::vector<Matrix>{a, *ToSparse(more)})).has_value());
  testing::CodesCall("rbind", {a, more}).Expect();
  testing::CodesCall("rbind", {more, a}).Expect();
}

// What ranks have of one matrix.
TEST(AppendGroupsTest, PiecesOfRowsAreJoinedCompressed) {
  const Matrix cells = testing::FewDifferent(2000, 5, Small);
  const Value a(EncodedMatrix(*ToDense(cells.Rows(0, 900)), testing::MixedGroups(5, false)));
  const Value b(EncodedMatrix(*ToDense(cells.Rows(900, 2000)), testing::MixedGroups(5, true)));
  const Value* const pieces[] = {&a, &b};
  for (const Format format : {Format::kDense, Format::kSparse}) {
    const Value joined = *JoinRowsAs(pieces, ValueInfo::OfMatrix({2000, 5}, format));
    EXPECT_TRUE(joined.matrix().IsCompressed());
    EXPECT_TRUE(Matrix::SameCells(*ToDense(joined.matrix()), cells));
  }
  EXPECT_TRUE(JoinRows(pieces)->matrix().IsCompressed());
}

}  // namespace
}  // namespace heddle::ops

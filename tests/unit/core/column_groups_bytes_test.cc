// SPDX-License-Identifier: Apache-2.0
#include "core/values/column_groups_bytes.h"

#include <gtest/gtest.h>

#include "tests/unit/ops/compressed/random_groups.h"

namespace heddle {
namespace {

using ops::testing::RandomGroups;

Matrix Cells(int64_t rows, int64_t columns, uint32_t seed, ElementType type) {
  std::mt19937 random(seed);
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < matrix.cells(); ++k) {
    const uint32_t drawn = random() % 12;
    matrix.mutable_data()[k] = drawn < 6    ? 0.0
                               : drawn == 6 ? -0.0
                               : drawn == 7 ? std::numeric_limits<double>::quiet_NaN()
                                            : static_cast<double>(drawn) / 4;
  }
  return *ToElementType(matrix, type);
}

std::span<const char> BytesOf(const Buffer& buffer) {
  return {static_cast<const char*>(buffer.data()), static_cast<size_t>(buffer.bytes())};
}

TEST(ColumnGroupsBytesTest, EveryMatrixComesBack) {
  for (uint32_t seed = 0; seed < 60; ++seed)
    for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
      const Matrix cells = Cells(seed % 7 == 0 ? 0 : 40 + seed, seed % 5 == 4 ? 0 : 1 + seed % 9, seed, type);
      const Matrix compressed = RandomGroups(cells, seed);
      ASSERT_TRUE(Matrix::SameCells(compressed, cells)) << seed;
      const std::shared_ptr<Buffer> flat = *FlattenGroups(compressed);
      EXPECT_LE(flat->bytes(), MostFlatBytes(compressed));
      const Result<Matrix> back = UnflattenGroups(BytesOf(*flat));
      ASSERT_TRUE(back.ok()) << seed << ": " << back.status().message();
      EXPECT_EQ(back->element_type(), type);
      EXPECT_TRUE(Matrix::SameCells(*back, cells)) << seed;
    }
}

TEST(ColumnGroupsBytesTest, PartsOfLongMatricesBeginAnywhere) {
  const int64_t rows = 2 * kSegmentRows + 777;
  Matrix cells = *FilledMatrix(rows, 4, 0);
  for (int64_t i = 0; i < rows; ++i) {
    cells.mutable_data()[4 * i] = static_cast<double>(i % 11);
    cells.mutable_data()[4 * i + 1] = i % 700 == 3 ? 5 : 0;
    cells.mutable_data()[4 * i + 2] = static_cast<double>(i / 5000);
    cells.mutable_data()[4 * i + 3] = -1.5;
  }
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Matrix compressed = RandomGroups(cells, seed);
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, rows},
                                     {1, 2},
                                     {kSegmentRows - 1, kSegmentRows + 3},
                                     {513, rows - 5}}) {
      const Result<Matrix> part = UnflattenGroups(BytesOf(**FlattenGroups(compressed.Rows(begin, end))));
      ASSERT_TRUE(part.ok()) << part.status().message();
      EXPECT_TRUE(Matrix::SameCells(*part, cells.Rows(begin, end))) << seed << ": " << begin << " to " << end;
    }
  }
}

// Whatever becomes of one byte: an error, or another matrix whose cells can all be read.
TEST(ColumnGroupsBytesTest, DamagedBytesAreNoMatrixOrASoundOne) {
  int64_t refused = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const Matrix compressed = RandomGroups(Cells(30, 6, seed, ElementType::kFloat64), seed);
    const std::shared_ptr<Buffer> flat = *FlattenGroups(compressed);
    const std::string sound(BytesOf(*flat).data(), BytesOf(*flat).size());
    for (size_t at = 0; at < sound.size(); ++at)
      for (const char other : {'\0', '\x01', '\x7f', '\xff'}) {
        std::string damaged = sound;
        damaged[at] = other;
        const Result<Matrix> back = UnflattenGroups(damaged);
        if (!back.ok()) {
          EXPECT_TRUE(back.status().code() == StatusCode::kDataLoss ||
                      back.status().code() == StatusCode::kResourceExhausted);
          ++refused;
          continue;
        }
        if (back->rows() * back->columns() <= 10'000) {
          EXPECT_TRUE(ToDense(*back).ok());
        }
      }
    for (size_t length = 0; length < sound.size(); ++length)
      EXPECT_EQ(UnflattenGroups({sound.data(), length}).status().code(), StatusCode::kDataLoss) << length;
    EXPECT_EQ(UnflattenGroups(sound + "x").status().code(), StatusCode::kDataLoss);
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/decode_tile.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/base/cpu.h"
#include "tests/unit/ops/compressed/encoded.h"

namespace heddle::ops::testing {
namespace {

// Both CPUs: tiles one after the other, then places that do not follow each other.
template <typename T>
void ExpectTilesOfCpu(const Matrix& compressed, const Matrix& dense) {
  const TileDecoder<T> decoder(compressed);
  const int64_t rows = dense.rows(), columns = dense.columns();
  std::vector<T> cells(static_cast<size_t>(std::max<int64_t>(rows * columns, 1)));
  const auto expect = [&](typename TileDecoder<T>::Cursor& cursor, int64_t begin, int64_t end) {
    std::fill_n(cells.begin(), (end - begin) * columns, T(-77));
    decoder.Decode(&cursor, begin, end, cells.data());
    ASSERT_EQ(std::memcmp(cells.data(), dense.data<T>() + begin * columns,
                          static_cast<size_t>((end - begin) * columns) * sizeof(T)),
              0)
        << "rows " << begin << " to " << end;
  };
  for (const int64_t height : {1, 7, 16, 64, 1000}) {
    typename TileDecoder<T>::Cursor cursor;
    const int64_t step = std::max<int64_t>(1, height * (rows > 10'000 && height < 64 ? 50 : 1));
    for (int64_t row = 0; row < rows; row += step) expect(cursor, row, std::min(rows, row + height));
    for (int64_t row = 0; row < std::min<int64_t>(rows, 300); row += height)
      expect(cursor, row, std::min(rows, row + height));
    expect(cursor, rows / 2, rows);
    expect(cursor, 0, rows / 3);
    expect(cursor, rows, rows);
  }
}

template <typename T>
void ExpectTiles(const Matrix& compressed, const Matrix& dense) {
  for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
    if (!IsSupported(cpu)) continue;
    ASSERT_TRUE(ForceCpu(cpu).ok());
    ExpectTilesOfCpu<T>(compressed, dense);
  }
  ASSERT_TRUE(ForceCpu("auto").ok());
}

TEST(DecodeTileTest, EveryEncodingAndPlaceOfColumns) {
  const auto value = [](int64_t number) {
    return number == 2   ? -0.0
           : number == 3 ? std::numeric_limits<double>::infinity()
                         : static_cast<double>(number) / 7;
  };
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {1, 1}, {65, 5}, {5000, 23}, {66'000, 6}})
    for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
      for (const int64_t before : {0, 3}) {
        if (rows > 10'000 && (type == ElementType::kFloat32 || before == 0)) continue;
        const Matrix dense = FewDifferent(rows, columns, value, type);
        const auto expect = [&](const std::vector<EncodedGroup>& plan) {
          const Matrix compressed = EncodedMatrix(dense, plan, before);
          if (type == ElementType::kFloat64)
            ExpectTiles<double>(compressed, dense);
          else
            ExpectTiles<float>(compressed, dense);
        };
        expect(MixedGroups(columns, true));
        expect(MixedGroups(columns, false));
        for (const Encoding encoding : {Encoding::kDenseCodes, Encoding::kDefault, Encoding::kRuns})
          expect(SingleGroups(columns, encoding));
        std::vector<EncodedGroup> plain = MixedGroups(columns, false);
        for (size_t g = 0; g < plain.size(); g += 2) plain[g].encoding = Encoding::kUncompressed;
        expect(plain);
      }
}

// Runs of columns whose codes have 4 bits: eight are looked up together, the last ones with some that have
// been.
TEST(DecodeTileTest, RunsOfColumnsWithFewTuples) {
  for (const int64_t columns : {7, 8, 11, 12, 16, 27}) {
    const auto two = [](int64_t number) { return number % 2 == 0 ? -0.0 : 0.1; };
    const Matrix dense = FewDifferent(5003, columns, two);
    for (const int64_t before : {0, 3, 8}) {
      ExpectTiles<double>(EncodedMatrix(dense, SingleGroups(columns, Encoding::kDenseCodes), before), dense);
      // Groups whose columns are far from each other, some in a run and some not.
      std::vector<EncodedGroup> plan = SingleGroups(columns, Encoding::kDenseCodes);
      plan[1].columns.push_back(plan.back().columns[0]);
      plan.pop_back();
      plan[0].columns.push_back(plan[3].columns[0]);
      plan.erase(plan.begin() + 3);
      if (columns > 12) plan[9].encoding = Encoding::kRuns;
      if (columns > 16) plan[10].more_bits = 2;
      ExpectTiles<double>(EncodedMatrix(dense, plan, before), dense);
    }
  }
}

TEST(DecodeTileTest, ConstantEmptyAndSparseColumns) {
  Matrix dense = FewDifferent(6000, 12, [](int64_t number) { return static_cast<double>(number); });
  for (int64_t i = 0; i < dense.rows(); ++i) {
    double* const row = dense.mutable_data() + i * 12;
    row[0] = row[1] = row[7] = 0;
    row[2] = 5;
    row[3] = -0.0;
  }
  std::vector<EncodedGroup> plan = {{.columns = {0}, .encoding = Encoding::kEmpty},
                                    {.columns = {1, 7}, .encoding = Encoding::kEmpty},
                                    {.columns = {2, 3}, .encoding = Encoding::kConstant},
                                    {.columns = {4, 5}},
                                    {.columns = {6, 8}, .encoding = Encoding::kUncompressed},
                                    {.columns = {9}, .encoding = Encoding::kDefault},
                                    {.columns = {10, 11}, .encoding = Encoding::kUncompressed}};
  plan[4].cells_as_csr = true;
  ExpectTiles<double>(EncodedMatrix(dense, plan), dense);
}

}  // namespace
}  // namespace heddle::ops::testing
